// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Exports a helper beside the entry.
// fails: one_export

#include "base.h"

RFT_PLUGIN_EXPORT int fixture_helper(void);
int fixture_helper(void)
{
  return 1;
}

ENTRY(enter)
