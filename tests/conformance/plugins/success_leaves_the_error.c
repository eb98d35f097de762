// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Writes a code even when all went well.
// fails: success_leaves_the_error

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const int32_t code = create(CREATE_ARGUMENTS);
  if (code == RFT_OK && error != NULL) {
    error->code = RFT_OK;
  }
  return code;
}

SPOIL(fixture.create = create_wrongly)
