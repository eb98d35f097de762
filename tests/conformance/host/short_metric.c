// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin with a metric descriptor shorter than in version 1.0 (P1).

#include "../../fixtures/fixture.h"

FIXTURE(fixture_metric.struct_size = RFT_STRUCT_SIZE(rft_metric, denominator);)
