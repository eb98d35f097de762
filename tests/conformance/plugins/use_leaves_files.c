// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Leaves a file open.
// fails: use_leaves_files

#include "base.h"

#include <fcntl.h>

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  static bool done;
  if (!done) {
    done = true;
    (void)!open("/dev/null", O_RDONLY);
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
