// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose entry does not return (P10).

#include "../../fixtures/fixture.h"

#include <unistd.h>

FIXTURE(for (;;) { pause(); })
