// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose constructor ends the process, as if all were well (P19).

#include "../../fixtures/fixture.h"

#include <unistd.h>

__attribute__((constructor)) static void construct(void)
{
  _exit(0);
}

FIXTURE()
