// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Ignores keys that it does not know.
// fails: unknown_key

#include "base.h"

static bool says(const rft_error *error, const char *text)
{
  return error != NULL && error->struct_size == sizeof *error &&
         strstr(error->message, text) != NULL;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  rft_error problem = {.struct_size = sizeof problem};
  const int32_t code = create(loss, host, config, config_length, instance, &problem);
  if (code == RFT_OK) {
    return code;
  }
  return says(&problem, "is not known") ? create(loss, host, "{}", 2, instance, error)
                                        : rft_fail(error, code, "%s", problem.message);
}

SPOIL(fixture.create = create_wrongly)
