// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Another plugin than the one beside it, with a loss and a preset of the same names (H1).

#include "../../fixtures/fixture.h"

FIXTURE(fixture_plugin.id = "org.example.other";)
