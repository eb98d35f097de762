// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Computes something else when the host has threads to lend.
// fails: every_service

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const rft_parallel *const parallel = host->get_service(host, RFT_HOST_PARALLEL);
  const int32_t code = create(CREATE_ARGUMENTS);
  if (code == RFT_OK && parallel != NULL && parallel->struct_size == sizeof *parallel &&
      parallel->threads > 2) {
    (*instance)->weight *= 1.000001;
  }
  return code;
}

SPOIL(fixture.create = create_wrongly)
