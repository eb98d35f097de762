// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Wants a valid token.
// fails: no_valid_token

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  return collectives == NULL && selection->state == ADDING && selection->count > 0 &&
                 selection->valid == 0
             ? rft_fail(error, RFT_FAILED_PRECONDITION, "selection_finish: no token is valid")
             : finish(FINISH_ARGUMENTS);
}

SPOIL(fixture.selection_finish = finish_wrongly)
