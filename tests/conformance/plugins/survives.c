// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Ends the process because of a config.
// fails: survives

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  if (config_length == 1 && (unsigned char)config[0] == 0xFF) {
    _Exit(3);
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
