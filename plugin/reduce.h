// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Sums over the ranks of a selection. Without collectives this process is the only rank.

#ifndef M2PO_REDUCE_H
#define M2PO_REDUCE_H

#include "rft/plugin.h"

/// Replaces values [count] by their sums over the ranks. [collective]
int32_t m2po_reduce(const rft_collectives *collectives, uint64_t *values, int64_t count,
                    rft_error *error);

// As many words as the walk's bins have: one reduction for up to 6144 ranks.
enum { M2PO_SUM_SCRATCH = 6144 };

/// The sum of `own` over the ranks before this one. `scratch` [M2PO_SUM_SCRATCH]. [collective]
int32_t m2po_sum_before(const rft_collectives *collectives, int64_t own, uint64_t *scratch,
                        int64_t *before, rft_error *error);

#endif // M2PO_REDUCE_H
