// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Refuses hosts of a newer minor version.
// fails: entry_takes_a_newer_host

#include "base.h"

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  return host != NULL && host->abi_minor > RFT_ABI_MINOR
             ? rft_fail(error, RFT_UNIMPLEMENTED, "expected ABI minor %d", RFT_ABI_MINOR)
             : enter(host, given, error);
}

ENTRY(enter_wrongly)
