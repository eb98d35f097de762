// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A fixed set of threads that work on the items of a loop. Private to librft_host.

#ifndef RFT_HOST_POOL_H
#define RFT_HOST_POOL_H

#include "rft/plugin.h"

typedef struct rft_pool rft_pool;

/// Starts `workers` threads, >= 1.
int32_t rft_pool_create(int32_t workers, rft_pool **pool, rft_error *error);

/// Ends the threads; no loop may be running. NULL is ignored.
void rft_pool_destroy(rft_pool *pool);

/// Runs body(context, i) once for each i in [0, count) on the calling thread and on whichever
/// workers are idle. The caller takes items itself, so that it never waits for a thread that has
/// not begun one. [thread-safe]
void rft_pool_run(rft_pool *pool, int64_t count, void (*body)(void *context, int64_t i),
                  void *context);

#endif // RFT_HOST_POOL_H
