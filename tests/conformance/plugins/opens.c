// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Needs a symbol that nobody has.
// fails: opens
// flags: -Wl,-z,undefs

#include "base.h"

extern int nobody_has_this(void);

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  return nobody_has_this() == 0 ? enter(host, given, error) : RFT_INTERNAL;
}

ENTRY(enter_wrongly)
