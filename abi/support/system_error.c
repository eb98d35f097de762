// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // the strerror_r that gives text

#include "system_error.h"

#include <string.h>

const char *rft_system_error(char text[RFT_SYSTEM_ERROR_SIZE], int number)
{
  return strerror_r(number, text, RFT_SYSTEM_ERROR_SIZE);
}
