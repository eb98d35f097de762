// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not look at the size of the host.
// fails: entry_refuses_a_short_host

#include "base.h"

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  const int32_t code = enter(host, given, error);
  if (code != RFT_OK && host != NULL) {
    *given = &plugin;
    return RFT_OK;
  }
  return code;
}

ENTRY(enter_wrongly)
