// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin with a list of losses whose entry is a null pointer (P7).

#include "../../fixtures/fixture.h"

static const rft_policy_loss *const none[] = {NULL};

FIXTURE(fixture_plugin.policy_losses = none;)
