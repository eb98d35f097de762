// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Shared objects as files that are opened once and stay. Private to librft_host.

#ifndef RFT_HOST_DYLIB_H
#define RFT_HOST_DYLIB_H

#include "rft/plugin.h"

#include <sys/stat.h>

/// Checks a file before any of its code runs (H3, H5), and gives its identity. `real_path`:
/// absolute, without symbolic links.
int32_t rft_dylib_check(const char *real_path, struct stat *status, rft_error *error);

/// Maps a checked file (H2) and finds its entry (P5). The object is never unmapped (H8).
int32_t rft_dylib_entry(const char *real_path, rft_plugin_entry *entry, rft_error *error);

#endif // RFT_HOST_DYLIB_H
