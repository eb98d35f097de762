// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not say what a misspelt key might have been.
// fails: nearest_key

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const int32_t code = create(CREATE_ARGUMENTS);
  char *const cut = code != RFT_OK && error != NULL && error->struct_size == sizeof *error
                        ? strstr(error->message, " is not known")
                        : NULL;
  if (cut != NULL) {
    strcpy(cut, " is not known");
  }
  return code;
}

SPOIL(fixture.create = create_wrongly)
