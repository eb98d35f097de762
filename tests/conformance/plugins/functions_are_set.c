// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has four of the five selection functions.
// fails: functions_are_set

#include "base.h"

SPOIL(fixture.selection_mask = NULL)
