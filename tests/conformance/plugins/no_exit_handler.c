// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Registers a function for the end of the process.
// fails: no_exit_handler

#include "base.h"

static void clean_up(void)
{
}

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  atexit(clean_up);
  return enter(host, given, error);
}

ENTRY(enter_wrongly)
