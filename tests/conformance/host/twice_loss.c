// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin with two losses of one name.

#include "../../fixtures/fixture.h"

static const rft_policy_loss *const both[] = {&fixture_loss, &fixture_loss};

FIXTURE(fixture_plugin.policy_losses = both; fixture_plugin.policy_loss_count = 2;)
