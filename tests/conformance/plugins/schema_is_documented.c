// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a property that is not described.
// fails: schema_is_documented

#include "base.h"

SPOIL(fixture.config_schema = SCHEMA("false", LIMIT_TYPE, MODE_CHOICES, ""))
