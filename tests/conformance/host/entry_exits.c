// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose entry ends the process, as if all were well (P10).

#include "../../fixtures/fixture.h"

#include <unistd.h>

FIXTURE(_exit(0);)
