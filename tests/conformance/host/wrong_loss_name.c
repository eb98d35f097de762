// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose loss has a name that no config could say.

#include "../../fixtures/fixture.h"

FIXTURE(fixture_loss.name = "Rein force";)
