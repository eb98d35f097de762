// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a constructor, even if it does nothing.
// fails: no_constructor

#include "base.h"

__attribute__((constructor)) static void construct(void)
{
  __asm__ volatile(""); // an empty one would be left out
}

ENTRY(enter)
