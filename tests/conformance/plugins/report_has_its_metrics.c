// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Forgets its metric.
// fails: report_has_its_metrics

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  const double before =
      report != NULL && report->metrics != NULL ? report->metrics[KEPT_TOKENS] : 0;
  const int32_t code = finish(selection, collectives, report, error);
  if (code == RFT_OK && report->metrics != NULL) {
    report->metrics[KEPT_TOKENS] = before;
  }
  return code;
}

SPOIL(fixture.selection_finish = finish_wrongly)
