// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Ignores a signal.
// fails: use_leaves_signals no_forbidden_import

#include "base.h"

#include <signal.h>

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  static bool done;
  if (!done) {
    done = true;
    signal(SIGUSR2, SIG_IGN);
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
