// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Asks for an executable stack.
// fails: no_executable_stack
// flags: -Wl,-z,execstack

#include "base.h"

ENTRY(enter)
