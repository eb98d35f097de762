// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Changes the rounding mode when it is loaded.
// fails: load_leaves_floats no_constructor no_forbidden_import

#include "base.h"

#include <fenv.h>

__attribute__((constructor)) static void construct(void)
{
  fesetround(FE_UPWARD);
}

ENTRY(enter)
