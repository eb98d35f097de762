// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Offers the one-pass functions, without a fault.
// fails: nothing

#include "one_pass.h"

SPOIL_ONE_PASS()
