// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Says nothing when it is finished again.
// fails: finish_once

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  return selection->state == FINISHED ? RFT_OK : finish(FINISH_ARGUMENTS);
}

SPOIL(fixture.selection_finish = finish_wrongly)
