// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Sets an environment variable when it is loaded.
// fails: load_leaves_settings no_constructor no_forbidden_import

#include "base.h"

__attribute__((constructor)) static void construct(void)
{
  setenv("FIXTURE", "1", 1);
}

ENTRY(enter)
