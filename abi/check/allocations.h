// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Counts the allocations of a stretch of code, and lets one of them fail. The program's own malloc
// family forwards to the C library's; every shared object in the process calls it.

#ifndef RFT_CHECK_ALLOCATIONS_H
#define RFT_CHECK_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct check_allocations {
  int64_t made; ///< asked for, the failed one included
  int64_t live; ///< made less freed
} check_allocations;

/// Whether this build can watch: not under a sanitizer or a C library other than glibc.
bool check_allocations_watchable(void);

/// Starts to count; the `fail_at`-th allocation fails, 0 for none.
void check_allocations_watch(int64_t fail_at);
check_allocations check_allocations_stop(void);

#endif // RFT_CHECK_ALLOCATIONS_H
