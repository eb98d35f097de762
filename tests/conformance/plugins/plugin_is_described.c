// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has an id that is no reverse domain name.
// fails: plugin_is_described

#include "base.h"

SPOIL(plugin.id = "fixture")
