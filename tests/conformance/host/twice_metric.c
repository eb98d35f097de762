// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin with two metrics of one name.

#include "../../fixtures/fixture.h"

static const rft_metric *const both[] = {&fixture_metric, &fixture_metric};

FIXTURE(fixture_loss.metrics = both; fixture_loss.metric_count = 2;)
