// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose config schema has a constraint outside the subset that hosts check (P11).

#include "../../fixtures/fixture.h"

FIXTURE(
    fixture_loss.config_schema =
        "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\"a\": {"
        "\"type\": \"string\", \"pattern\": \"x*\", \"default\": \"\", \"description\": \"A.\"}}}";)
