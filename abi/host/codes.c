// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "rft/host.h"

static const char *const NAMES[] = {
    [RFT_OK] = "OK",
    [RFT_CANCELLED] = "CANCELLED",
    [RFT_UNKNOWN] = "UNKNOWN",
    [RFT_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
    [RFT_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
    [RFT_NOT_FOUND] = "NOT_FOUND",
    [RFT_ALREADY_EXISTS] = "ALREADY_EXISTS",
    [RFT_PERMISSION_DENIED] = "PERMISSION_DENIED",
    [RFT_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
    [RFT_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
    [RFT_ABORTED] = "ABORTED",
    [RFT_OUT_OF_RANGE] = "OUT_OF_RANGE",
    [RFT_UNIMPLEMENTED] = "UNIMPLEMENTED",
    [RFT_INTERNAL] = "INTERNAL",
    [RFT_UNAVAILABLE] = "UNAVAILABLE",
    [RFT_DATA_LOSS] = "DATA_LOSS",
};

const char *rft_code_name(int32_t code)
{
  const int32_t count = (int32_t)(sizeof NAMES / sizeof NAMES[0]);
  return code >= 0 && code < count ? NAMES[code] : "UNKNOWN";
}
