// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Remembers the process that loaded it.
// fails: fork_and_use

#include "base.h"

#include <unistd.h>

static pid_t owner;

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  owner = getpid();
  return create(CREATE_ARGUMENTS);
}

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  return getpid() != owner ? rft_fail(error, RFT_FAILED_PRECONDITION, "evaluate: expected no fork")
                           : evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly; fixture.create = create_wrongly)
