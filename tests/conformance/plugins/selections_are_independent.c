// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Adds every micro-batch to the selection that was begun last.
// fails: selections_are_independent

#include "base.h"

static rft_selection *latest;

static int32_t begin_wrongly(const rft_instance *instance, rft_selection **selection,
                             rft_error *error)
{
  const int32_t code = begin(instance, selection, error);
  latest = code == RFT_OK ? *selection : NULL;
  return code;
}

static int32_t add_wrongly(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  (void)selection;
  return add(latest, batch, error);
}

SPOIL(fixture.selection_begin = begin_wrongly; fixture.selection_add = add_wrongly;
      fixture.capabilities = 0)
