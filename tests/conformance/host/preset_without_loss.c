// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose preset names no policy loss.

#include "../../fixtures/fixture.h"

FIXTURE(fixture_preset.document = "{\"use_critic\": false}";)
