// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has code that ends the process, even if it is never reached.
// fails: no_forbidden_import

#include "base.h"

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  if (plugin.policy_loss_count < 0) {
    exit(1);
  }
  return enter(host, given, error);
}

ENTRY(enter_wrongly)
