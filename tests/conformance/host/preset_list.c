// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose preset has a list for arguments.

#include "../../fixtures/fixture.h"

FIXTURE(
    fixture_preset.document = "{\"policy_loss_fn\": \"reinforce\", \"policy_loss_fn_args\": [2]}";)
