// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not know one of its own keys.
// fails: defaults_pass

#define _GNU_SOURCE // memmem

#include "base.h"

static bool mentions(const char *config, int64_t length, const char *text)
{
  return config != NULL && memmem(config, (size_t)length, text, strlen(text)) != NULL;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  return mentions(config, config_length, "\"mode\"")
             ? rft_fail(error, RFT_INVALID_ARGUMENT, "config key \"mode\" is not known")
             : create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
