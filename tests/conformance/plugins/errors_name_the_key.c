// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not say which value is wrong.
// fails: errors_name_the_key

#include "base.h"

static bool says(const rft_error *error, const char *text)
{
  return error != NULL && error->struct_size == sizeof *error &&
         strstr(error->message, text) != NULL;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const int32_t code = create(CREATE_ARGUMENTS);
  return code != RFT_OK && says(error, "\": expected")
             ? rft_fail(error, code, "config: a value is wrong")
             : code;
}

SPOIL(fixture.create = create_wrongly)
