// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose constructor crashes (P19).

#include "../../fixtures/fixture.h"

#include <signal.h>

__attribute__((constructor)) static void construct(void)
{
  raise(SIGSEGV);
}

FIXTURE()
