// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose entry crashes (P10).

#include "../../fixtures/fixture.h"

#include <signal.h>

FIXTURE(raise(SIGSEGV);)
