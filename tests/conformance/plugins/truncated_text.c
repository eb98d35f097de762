// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Forgives a missing brace at the end.
// fails: truncated_text

#define _GNU_SOURCE // memmem

#include "base.h"

static bool mentions(const char *config, int64_t length, const char *text)
{
  return config != NULL && memmem(config, (size_t)length, text, strlen(text)) != NULL;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const int32_t code = create(CREATE_ARGUMENTS);
  const bool cut = code == RFT_INVALID_ARGUMENT && config_length > 20 && config_length < 500 &&
                   config[0] == '{' && config[config_length - 1] != '}' &&
                   mentions(config, config_length, "limit");
  return cut ? create(loss, host, "{}", 2, instance, error) : code;
}

SPOIL(fixture.create = create_wrongly)
