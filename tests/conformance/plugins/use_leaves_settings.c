// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Changes the current directory.
// fails: use_leaves_settings no_forbidden_import

#include "base.h"

#include <unistd.h>

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  static bool done;
  if (!done) {
    done = true;
    (void)!chdir("/");
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
