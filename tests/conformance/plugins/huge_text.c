// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes spaces for an empty config, if they are many.
// fails: huge_text

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  return config_length > 10000 && config[0] == ' ' ? create(loss, host, "{}", 2, instance, error)
                                                   : create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
