// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not let the process end as it wants to.
// fails: exits_cleanly no_exit_handler no_forbidden_import

#include "base.h"

#include <unistd.h>

static void stop(void)
{
  _exit(7);
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  static bool done;
  if (!done) {
    done = true;
    atexit(stop);
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
