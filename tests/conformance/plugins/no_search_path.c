// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a RUNPATH.
// fails: no_search_path
// flags: -Wl,-rpath,/nowhere

#include "base.h"

ENTRY(enter)
