// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a loss that lacks its last field.
// fails: tables_are_whole

#include "base.h"

SPOIL(fixture.struct_size = RFT_STRUCT_SIZE(rft_policy_loss, selection_end))
