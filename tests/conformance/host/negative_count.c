// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin that counts fewer than no losses (P7).

#include "../../fixtures/fixture.h"

FIXTURE(fixture_plugin.policy_loss_count = -1;)
