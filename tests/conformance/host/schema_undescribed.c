// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose config schema has a property without a description (P11).

#include "../../fixtures/fixture.h"

FIXTURE(fixture_loss.config_schema =
            "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\"a\": {"
            "\"type\": \"number\", \"default\": 0}}}";)
