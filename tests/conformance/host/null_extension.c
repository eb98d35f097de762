// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin without get_extension (P7).

#include "../../fixtures/fixture.h"

FIXTURE(fixture_plugin.get_extension = NULL;)
