// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a thread-local variable of the initial-exec model.
// fails: no_static_tls

#include "base.h"

static _Thread_local volatile int calls __attribute__((tls_model("initial-exec")));

static int32_t enter_wrongly(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  ++calls;
  return enter(host, given, error);
}

ENTRY(enter_wrongly)
