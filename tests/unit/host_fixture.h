// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A host as plugins see it: it keeps what they log, and runs parallel_for in the order that a test
// asks for.

#ifndef TEST_HOST_FIXTURE_H
#define TEST_HOST_FIXTURE_H

#include "rft/plugin.h"

/// How a host runs the bodies of parallel_for.
typedef enum host_threads {
  HOST_SERIAL,   ///< no service at all
  HOST_REVERSED, ///< one after the other, last first
  HOST_SHUFFLED, ///< one after the other, in another order each time
  HOST_THREADED  ///< on four threads
} host_threads;

/// A host that keeps what it is told. `hint`: the `threads` that its parallel service names.
const rft_host *host_new(host_threads threads, int32_t hint);

/// The messages of a level or above that the host got, one a line.
const char *host_messages(const rft_host *host, int32_t level);

#endif // TEST_HOST_FIXTURE_H
