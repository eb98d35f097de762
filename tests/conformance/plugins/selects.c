// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Counts a token too many.
// fails: selects

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  const int32_t code = finish(FINISH_ARGUMENTS);
  if (code == RFT_OK) {
    ++report->kept_tokens;
  }
  return code;
}

SPOIL(fixture.selection_finish = finish_wrongly)
