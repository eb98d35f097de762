// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Leaves something behind when it refuses a config.
// fails: refusal_frees_all

#include "base.h"

static void *volatile left_behind;

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const int32_t code = create(CREATE_ARGUMENTS);
  if (code == RFT_INVALID_ARGUMENT) {
    left_behind = malloc(16);
  }
  return code;
}

SPOIL(fixture.create = create_wrongly)
