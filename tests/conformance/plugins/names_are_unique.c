// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has two presets of one name.
// fails: names_are_unique

#include "base.h"

SPOIL(tighter.name = "tight")
