// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Clears the whole error, whatever its size.
// fails: error_is_not_overrun

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  if (error != NULL && config_length == 1) {
    memset(error->message, 0, sizeof error->message);
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
