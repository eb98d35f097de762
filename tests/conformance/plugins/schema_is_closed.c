// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has an open schema.
// fails: schema_is_closed

#include "base.h"

static int32_t create_well(CREATE_PARAMETERS)
{
  (void)host;
  return create_from(GOOD_SCHEMA, loss, config, config_length, instance, error);
}

SPOIL(fixture.create = create_well;
      fixture.config_schema = SCHEMA("true", LIMIT_TYPE, MODE_CHOICES, "Largest."))
