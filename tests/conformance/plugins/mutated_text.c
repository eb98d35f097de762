// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes for granted that a config of its own keys begins with a brace.
// fails: mutated_text

#define _GNU_SOURCE // memmem

#include "base.h"

static bool mentions(const char *config, int64_t length, const char *text)
{
  return config != NULL && memmem(config, (size_t)length, text, strlen(text)) != NULL;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  if (config_length < 500 && mentions(config, config_length, "limit") && config[0] != '{') {
    __builtin_trap();
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
