// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Which files may be loaded as code (H3, H5). Private to librft_host.

#ifndef RFT_HOST_TRUST_H
#define RFT_HOST_TRUST_H

#include "rft/plugin.h"

#include <sys/stat.h>

/// Checks that nobody but root and the user can put another file in this directory's place or into
/// it. `directory`: absolute, without symbolic links.
int32_t rft_trust_directory(const char *directory, rft_error *error);

/// Checks the same of a file, and of the directory that it is in.
int32_t rft_trust_file(const char *path, const struct stat *status, rft_error *error);

#define RFT_SHORT_PATH_SIZE 200

/// The path for a message, cut at its start when long.
const char *rft_short_path(char text[RFT_SHORT_PATH_SIZE], const char *path);

#endif // RFT_HOST_TRUST_H
