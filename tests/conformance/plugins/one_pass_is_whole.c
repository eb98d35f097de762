// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Offers one of the one-pass functions.
// fails: one_pass_is_whole

#include "one_pass.h"

SPOIL_ONE_PASS(one_pass.select_evaluate = NULL)
