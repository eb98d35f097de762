// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not look at what it does not know of a report.
// fails: finish_judges_reports

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  if (report != NULL && report->struct_size > sizeof *report) {
    report->struct_size = sizeof *report;
  }
  return finish(FINISH_ARGUMENTS);
}

SPOIL(fixture.selection_finish = finish_wrongly)
