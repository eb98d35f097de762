// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin that exports a second symbol (P6). It keeps the rules otherwise, and loads.

#include "../../fixtures/fixture.h"

RFT_PLUGIN_EXPORT int lent_symbol(void);

int lent_symbol(void)
{
  return 0;
}

FIXTURE(fixture_plugin.id = "org.example.lender"; fixture_loss.name = "lender";
        fixture_preset.name = "lender";)
