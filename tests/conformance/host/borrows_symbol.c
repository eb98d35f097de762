// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin that needs a symbol which only another plugin defines (H2): with RTLD_LOCAL it is not
// to be had.

#include "../../fixtures/fixture.h"

int lent_symbol(void);

FIXTURE(if (lent_symbol() != 0) { return RFT_UNKNOWN; })
