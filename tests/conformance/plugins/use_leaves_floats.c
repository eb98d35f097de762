// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Changes the rounding mode.
// fails: use_leaves_floats no_forbidden_import

#include "base.h"

#include <fenv.h>

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  static bool done;
  if (!done) {
    done = true;
    fesetround(FE_DOWNWARD);
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
