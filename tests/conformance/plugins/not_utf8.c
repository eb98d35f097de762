// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reads what is no UTF-8 as nothing at all.
// fails: not_utf8

#include "base.h"

static bool says(const rft_error *error, const char *text)
{
  return error != NULL && error->struct_size == sizeof *error &&
         strstr(error->message, text) != NULL;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const int32_t code = create(CREATE_ARGUMENTS);
  const bool high = config_length > 4 && config_length < 12 && config[0] == '{' &&
                    (unsigned char)config[2] >= 0x80;
  return code == RFT_INVALID_ARGUMENT && high && !says(error, "is not known")
             ? create(loss, host, "{}", 2, instance, error)
             : code;
}

SPOIL(fixture.create = create_wrongly)
