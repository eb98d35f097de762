// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A file that appears whole or not at all. Private to librft_host.

#ifndef RFT_HOST_ATOMIC_FILE_H
#define RFT_HOST_ATOMIC_FILE_H

#include "rft/plugin.h"

#include <limits.h>

typedef struct rft_atomic_file {
  const char *path; ///< borrowed
  int descriptor;
  char temporary[PATH_MAX];
} rft_atomic_file;

/// Begins a file that will be `path`, under a temporary name beside it. What exists at `path` must
/// be a regular file.
int32_t rft_atomic_open(rft_atomic_file *file, const char *path, rft_error *error);

int32_t rft_atomic_write(rft_atomic_file *file, const void *data, size_t size, rft_error *error);

/// Flushes the file to disk and puts it in its place. Whatever comes back, the file is closed.
int32_t rft_atomic_commit(rft_atomic_file *file, rft_error *error);

/// Closes and removes the temporary file.
void rft_atomic_abandon(rft_atomic_file *file);

#endif // RFT_HOST_ATOMIC_FILE_H
