// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reads a byte 7 at the front of a config as the end of the world.
// fails: random_text

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  if (config_length > 0 && config_length < 30 && config[0] == 7) {
    __builtin_trap();
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
