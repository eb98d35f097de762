// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Sets a locale.
// fails: use_leaves_locale no_forbidden_import

#include "base.h"

#include <locale.h>

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  static bool done;
  if (!done) {
    done = true;
    setlocale(LC_ALL, "C.UTF-8");
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
