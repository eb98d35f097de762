// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Never frees an instance.
// fails: destroy_frees_all

#include "base.h"

static void destroy_wrongly(rft_instance *instance)
{
  (void)instance;
}

SPOIL(fixture.destroy = destroy_wrongly)
