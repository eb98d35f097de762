// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Nor is there one where the loss selects nothing, and the plugin has no preset.
// fails: nothing

#include "base.h"

static const rft_metric *const evaluated[] = {&tokens};

SPOIL(fixture.capabilities = 0; fixture.metrics = evaluated; fixture.metric_count = 1;
      fixture.selection_begin = NULL; fixture.selection_add = NULL; fixture.selection_finish = NULL;
      fixture.selection_mask = NULL; fixture.selection_end = NULL;
      plugin.algorithm_preset_count = 0)
