// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a preset that its own loss refuses.
// fails: presets_pass

#include "base.h"

SPOIL(tight.document = PRESET_DOCUMENT("{\"limit\": -1}", ", \"use_critic\": false"))
