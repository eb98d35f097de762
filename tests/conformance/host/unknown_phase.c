// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin with a metric that is written in a phase that version 1.0 does not know.

#include "../../fixtures/fixture.h"

FIXTURE(fixture_metric.phase = 99;)
