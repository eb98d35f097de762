// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Needs the shared libjansson.
// fails: needed_libraries
// flags: -Wl,--no-as-needed -l:libjansson.so.4

#include "base.h"

ENTRY(enter)
