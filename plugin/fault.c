// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "fault.h"

#include "support/error.h"

#include <inttypes.h>

static const char *expectation(m2po_fault_kind kind)
{
  switch (kind) {
  case M2PO_NOT_FINITE:
    return "expected a finite number at a valid position, found";
  case M2PO_NOT_A_MASK:
    return "expected 0 or 1 in a float mask, found";
  case M2PO_SQUARE_OVERFLOW:
    return "expected a log-ratio whose square is finite, found overflow from the log-ratio";
  case M2PO_RATIO_OVERFLOW:
    return "expected a ratio that fits its type, found overflow from the log-ratio (see "
           "log_ratio_clip)";
  case M2PO_LOSS_OVERFLOW:
    return "expected a loss that is finite, found overflow from the log-ratio";
  case M2PO_GRADIENT_OVERFLOW:
    return "expected a gradient that fits its dtype, found overflow from the log-ratio";
  case M2PO_NO_FAULT:
    break;
  }
  return "no fault";
}

int32_t m2po_fault_report(const m2po_fault *fault, rft_error *error)
{
  if (fault->kind == M2PO_NO_FAULT) {
    return RFT_OK;
  }
  char number[RFT_NUMBER_TEXT_SIZE];
  return rft_fail(error, RFT_OUT_OF_RANGE,
                  "%s at index %" PRId64 " (row %" PRId64 ", column %" PRId64 "): %s %s",
                  fault->tensor, fault->index, fault->index / fault->columns,
                  fault->index % fault->columns, expectation(fault->kind),
                  rft_number_text(number, fault->value));
}
