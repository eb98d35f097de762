// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Sets a locale when it is loaded.
// fails: load_leaves_locale no_constructor no_forbidden_import

#include "base.h"

#include <locale.h>

__attribute__((constructor)) static void construct(void)
{
  setlocale(LC_ALL, "C.UTF-8");
}

ENTRY(enter)
