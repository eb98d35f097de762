// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Memory that tells when it is used wrongly: between pages that can't be touched. Never freed: a
// check's process is short.

#ifndef RFT_CHECK_MEMORY_H
#define RFT_CHECK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef enum check_placement {
  PLAIN,        ///< malloc
  GUARD_AFTER,  ///< the last byte is before a page that can't be touched
  GUARD_BEFORE, ///< the first byte is after one
} check_placement;

/// Zeroed; ends the check when there is no memory.
void *check_memory(size_t size, check_placement placement);

/// A copy of `size` bytes that ends where memory ends.
void *check_guarded_copy(const void *object, size_t size);

/// Makes memory that GUARD_AFTER or GUARD_BEFORE gave read-only, or untouchable.
void check_protect(void *memory, size_t size);
void check_unmap(void *memory, size_t size);

#endif // RFT_CHECK_MEMORY_H
