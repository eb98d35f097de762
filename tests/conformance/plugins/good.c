// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin without a fault.
// fails: nothing

#include "base.h"

ENTRY(enter)
