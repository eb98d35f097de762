// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Trying a file in a child process before it is loaded. Private to librft_host.

#ifndef RFT_HOST_PROBE_H
#define RFT_HOST_PROBE_H

#include "registry.h"

/// Loads the file and calls its entry in a child process without services, input or output. Only
/// what ends or holds up the child is an error: what is wrong otherwise, loading tells. A registry
/// with a timeout of 0 tries nothing.
int32_t rft_probe(rft_registry *registry, const char *real_path, rft_error *error);

#endif // RFT_HOST_PROBE_H
