// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose loss has no destroy (P7).

#include "../../fixtures/fixture.h"

FIXTURE(fixture_loss.destroy = NULL;)
