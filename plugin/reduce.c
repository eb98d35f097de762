// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "reduce.h"

#include <string.h>

int32_t m2po_reduce(const rft_collectives *collectives, uint64_t *values, int64_t count,
                    rft_error *error)
{
  return collectives == NULL ? RFT_OK
                             : collectives->all_reduce_sum(collectives, values, count, error);
}

int32_t m2po_sum_before(const rft_collectives *collectives, int64_t own, uint64_t *scratch,
                        int64_t *before, rft_error *error)
{
  *before = 0;
  if (collectives == NULL) {
    return RFT_OK;
  }
  // Every rank puts its number into a slot of its own, as many slots at a time as fit.
  for (int64_t first = 0; first < collectives->size; first += M2PO_SUM_SCRATCH) {
    const int64_t left = collectives->size - first;
    const int64_t slots = left < M2PO_SUM_SCRATCH ? left : M2PO_SUM_SCRATCH;
    const int64_t slot = collectives->rank - first;
    memset(scratch, 0, (size_t)slots * sizeof scratch[0]);
    if (slot >= 0 && slot < slots) {
      scratch[slot] = (uint64_t)own;
    }
    const int32_t code = m2po_reduce(collectives, scratch, slots, error);
    if (code != RFT_OK) {
      return code;
    }
    for (int64_t i = 0; i < slots && i < slot; ++i) {
      *before += (int64_t)scratch[i];
    }
  }
  return RFT_OK;
}
