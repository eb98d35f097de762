// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose loss lies where there is no memory.

#include "../../fixtures/fixture.h"

static const rft_policy_loss *const wild[] = {(const rft_policy_loss *)8};

FIXTURE(fixture_plugin.policy_losses = wild;)
