// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Wants a config, be it an empty object.
// fails: creates

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  return config_length == 0 ? rft_fail(error, RFT_INVALID_ARGUMENT, "config: there is none")
                            : create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
