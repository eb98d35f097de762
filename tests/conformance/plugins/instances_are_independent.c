// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Keeps the weight of the last instance for all.
// fails: instances_are_independent

#include "base.h"

static double weight;

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const int32_t code = create(CREATE_ARGUMENTS);
  if (code == RFT_OK) {
    weight = (*instance)->weight;
  }
  return code;
}

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  (void)instance;
  const rft_instance last = {.weight = weight};
  return evaluate(&last, batch, mask, reduction, output, error);
}

SPOIL(fixture.evaluate = evaluate_wrongly; fixture.create = create_wrongly)
