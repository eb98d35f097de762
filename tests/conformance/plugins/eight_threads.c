// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Works in a variable that all threads share.
// fails: eight_threads

#include "base.h"

#include <stdatomic.h>
#include <time.h>

static atomic_int busy;

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const bool alone = busy++ == 0;
  nanosleep(&(const struct timespec){.tv_nsec = 200000}, NULL);
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  --busy;
  if (code == RFT_OK && !alone) {
    output->loss += 1;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
