// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Refuses every host.
// fails: entry_gives_tables

#include "base.h"

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  (void)host;
  (void)given;
  return rft_fail(error, RFT_INTERNAL, "it is not in the mood");
}

ENTRY(enter_wrongly)
