// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin with two presets of one name.

#include "../../fixtures/fixture.h"

static const rft_algorithm_preset *const both[] = {&fixture_preset, &fixture_preset};

FIXTURE(fixture_plugin.algorithm_presets = both; fixture_plugin.algorithm_preset_count = 2;)
