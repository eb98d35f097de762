// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Opens a file when it is loaded.
// fails: load_leaves_files no_constructor

#include "base.h"

#include <fcntl.h>

__attribute__((constructor)) static void construct(void)
{
  (void)!open("/dev/null", O_RDONLY);
}

ENTRY(enter)
