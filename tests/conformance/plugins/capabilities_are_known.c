// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a capability bit that means nothing.
// fails: capabilities_are_known

#include "base.h"

SPOIL(fixture.capabilities |= UINT64_C(1) << 40)
