// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Looks into the instance that it destroys.
// fails: null_is_ignored

#include "base.h"

static void destroy_wrongly(rft_instance *instance)
{
  *(volatile double *)&instance->limit = 0;
  free(instance);
}

SPOIL(fixture.destroy = destroy_wrongly)
