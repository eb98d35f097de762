// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin that keeps every rule. It lies beside each fixture, and must load whatever the fixture
// does.

#include "../../fixtures/fixture.h"

FIXTURE(fixture_plugin.id = "org.example.neighbour"; fixture_loss.name = "neighbour";
        fixture_preset.name = "neighbour";
        fixture_preset.document = "{\"policy_loss_fn\": \"neighbour\"}";)
