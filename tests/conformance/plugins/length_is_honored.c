// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Looks for a NUL where a config that is not empty ends.
// fails: length_is_honored

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const bool at_page_end = ((uintptr_t)(config + config_length) & 4095U) == 0;
  if (config_length == 2 && !at_page_end && config[2] != '\0') {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "config: more follows");
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
