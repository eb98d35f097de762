// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Accepts a limit that is a string.
// fails: types_hold

#include "base.h"

static const char looser[] =
    SCHEMA("false", "\"type\": [\"number\", \"string\"], \"exclusiveMinimum\": 0", MODE_CHOICES,
           "Largest.");

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  (void)host;
  return create_from(looser, loss, config, config_length, instance, error);
}

SPOIL(fixture.create = create_wrongly)
