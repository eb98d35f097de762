// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin whose preset has no document (P7).

#include "../../fixtures/fixture.h"

FIXTURE(fixture_preset.document = NULL;)
