// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Calls itself for each level of a config.
// fails: deep_text

#include "base.h"

static int64_t depth_of(const char *text, int64_t length)
{
  volatile char work[64];
  work[0] = text[0];
  return length > 0 && work[0] == '[' ? depth_of(text + 1, length - 1) + work[0] - '[' + 1 : 0;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  (void)host;
  if (config_length > 100000 && config[0] == '[' && depth_of(config, config_length) > 0) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "config: expected an object, found an array");
  }
  return create_from(loss->config_schema, loss, config, config_length, instance, error);
}

SPOIL(fixture.create = create_wrongly)
