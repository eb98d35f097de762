// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin without a config schema (P7, P11).

#include "../../fixtures/fixture.h"

FIXTURE(fixture_loss.config_schema = NULL;)
