// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Gives something for every extension.
// fails: unknown_extension

#include "base.h"

static const void *give_anything(const char *id)
{
  return id;
}

SPOIL(plugin.get_extension = give_anything)
