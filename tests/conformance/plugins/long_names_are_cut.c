// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Cuts messages in the middle of a character.
// fails: long_names_are_cut

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const int32_t code = create(CREATE_ARGUMENTS);
  if (code == RFT_INVALID_ARGUMENT && config_length > 1000 && config_length < 5000) {
    rft_fail(error, code, "config key %.300s\xE2", "\xE2\x82\xAC");
  }
  return code;
}

SPOIL(fixture.create = create_wrongly)
