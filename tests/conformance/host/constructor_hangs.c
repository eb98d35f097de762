// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose constructor does not return (P19).

#include "../../fixtures/fixture.h"

#include <unistd.h>

__attribute__((constructor)) static void construct(void)
{
  for (;;) {
    pause();
  }
}

FIXTURE()
