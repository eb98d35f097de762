// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Ignores a signal when it is loaded.
// fails: load_leaves_signals no_constructor no_forbidden_import

#include "base.h"

#include <signal.h>

__attribute__((constructor)) static void construct(void)
{
  signal(SIGUSR1, SIG_IGN);
}

ENTRY(enter)
