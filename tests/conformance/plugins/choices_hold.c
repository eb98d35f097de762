// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Accepts one choice fewer than its schema lists.
// fails: choices_hold

#include "base.h"

static const char looser[] = SCHEMA("false", LIMIT_TYPE, "[\"plain\"]", "Largest.");

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  (void)host;
  return create_from(looser, loss, config, config_length, instance, error);
}

SPOIL(fixture.create = create_wrongly)
