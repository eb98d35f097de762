// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does without a host.
// fails: entry_refuses_no_host

#include "base.h"

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  if (host == NULL) {
    *given = &plugin;
    return RFT_OK;
  }
  return enter(host, given, error);
}

ENTRY(enter_wrongly)
