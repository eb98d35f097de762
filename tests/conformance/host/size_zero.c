// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose head says that it has no field at all (P1).

#include "../../fixtures/fixture.h"

FIXTURE(fixture_plugin.struct_size = 0;)
