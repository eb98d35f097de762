// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes for granted that bodies run in the order of their numbers.
// fails: any_order_of_bodies

#include "base.h"

static void note(void *context, int64_t i)
{
  *(int64_t *)context = i;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const rft_parallel *const parallel = host->get_service(host, RFT_HOST_PARALLEL);
  const int32_t code = create(CREATE_ARGUMENTS);
  int64_t last = 0;
  if (code == RFT_OK && parallel != NULL && parallel->threads == 2) {
    parallel->parallel_for(parallel, 4, note, &last);
    (*instance)->weight *= (double)(last + 1) / 4;
  }
  return code;
}

SPOIL(fixture.create = create_wrongly)
