// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Refuses services of a newer minor version.
// fails: newer_services

#include "base.h"

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const rft_log *const log = host->get_service(host, RFT_HOST_LOG);
  return log != NULL && log->struct_size != sizeof *log
             ? rft_fail(error, RFT_UNIMPLEMENTED, "rft_log: expected another size")
             : create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
