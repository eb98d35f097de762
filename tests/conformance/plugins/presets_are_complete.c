// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a preset that does not say whether it uses a critic.
// fails: presets_are_complete

#include "base.h"

SPOIL(tight.document = PRESET_DOCUMENT("{}", ""))
