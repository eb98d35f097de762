// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not look whether a reduction has failed.
// fails: the_group_fails

#include "base.h"

static int32_t reduce_carelessly(const rft_collectives *collectives, uint64_t *values,
                                 int64_t count, rft_error *error)
{
  const rft_collectives *const real = collectives->data;
  real->all_reduce_sum(real, values, count, error);
  return RFT_OK;
}

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  rft_collectives careless = {.struct_size = 0};
  if (collectives != NULL) {
    careless = *collectives;
    careless.data = (void *)collectives;
    careless.all_reduce_sum = reduce_carelessly;
  }
  return finish(selection, collectives == NULL ? NULL : &careless, report, error);
}

SPOIL(fixture.selection_finish = finish_wrongly)
