// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a destructor, even if it does nothing.
// fails: no_destructor

#include "base.h"

__attribute__((destructor)) static void destruct(void)
{
  __asm__ volatile(""); // an empty one would be left out
}

ENTRY(enter)
