// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Work in blocks on the registry's threads (the service rft.host.parallel/1, which plugins use
// too). A block's result depends on the block alone, so any number of threads gives the same bits.

#ifndef TRAIN_PARALLEL_H
#define TRAIN_PARALLEL_H

#include "rft/plugin.h"

// The registry's service, or NULL where it has none.
const rft_parallel *parallel_service(const rft_host *host);

// body(context, i) for each i in [0, count). `service` NULL: one after the other.
void parallel_run(const rft_parallel *service, int64_t count,
                  void (*body)(void *context, int64_t i), void *context);

// Where block `i` of `blocks` starts when `total` items are split as evenly as can be.
int64_t parallel_split(int64_t total, int64_t blocks, int64_t i);

#endif // TRAIN_PARALLEL_H
