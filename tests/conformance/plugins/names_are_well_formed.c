// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a preset whose name no config can say.
// fails: names_are_well_formed

#include "base.h"

SPOIL(tight.name = "Tight Preset")
