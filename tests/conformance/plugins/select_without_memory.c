// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not look whether there was memory.
// fails: select_without_memory

#include "base.h"

static int32_t begin_wrongly(const rft_instance *instance, rft_selection **selection,
                             rft_error *error)
{
  volatile char *const work = malloc(64);
  work[0] = 0;
  const int32_t code = begin(instance, selection, error);
  free((char *)work);
  return code;
}

SPOIL(fixture.selection_begin = begin_wrongly)
