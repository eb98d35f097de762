// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reads behind the end of the host of version 1.0.
// fails: entry_reads_no_further

#include "base.h"

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  const int32_t code = enter(host, given, error);
  if (code == RFT_OK && host->struct_size == sizeof *host) {
    (void)*((const volatile unsigned char *)host + sizeof *host);
  }
  return code;
}

ENTRY(enter_wrongly)
