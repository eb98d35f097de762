// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not look whether there was memory.
// fails: create_without_memory

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  volatile char *const work = malloc(64);
  work[0] = 0;
  const int32_t code = create(CREATE_ARGUMENTS);
  free((char *)work);
  return code;
}

SPOIL(fixture.create = create_wrongly)
