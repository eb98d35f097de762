// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Makes new tables for each call.
// fails: entry_gives_the_same_tables

#include "base.h"

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  const int32_t code = enter(host, given, error);
  if (code == RFT_OK) {
    rft_plugin *const copy = malloc(sizeof *copy);
    *given = memcpy(copy, &plugin, sizeof *copy);
  }
  return code;
}

ENTRY(enter_wrongly)
