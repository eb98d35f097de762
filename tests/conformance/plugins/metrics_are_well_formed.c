// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has two metrics of one name.
// fails: metrics_are_well_formed

#include "base.h"

SPOIL(kept_tokens.name = "tokens")
