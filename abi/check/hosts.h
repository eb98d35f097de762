// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Hosts to load a plugin into, from one that offers nothing to one that offers everything.

#ifndef RFT_CHECK_HOSTS_H
#define RFT_CHECK_HOSTS_H

#include "rft/plugin.h"

#include <stdbool.h>

/// No service.
const rft_host *check_host_bare(void);

/// Logs to nowhere. [thread-safe]
const rft_host *check_host_logging(void);

/// Bodies of parallel_for run one after the other, the last index first.
const rft_host *check_host_backwards(void);

/// Bodies of parallel_for run on 4 threads, and messages are judged.
const rft_host *check_host_full(void);

/// All services, each longer than this version knows, with tails that are set.
const rft_host *check_host_newer(void);

/// What was wrong with a message that a host of these has been given, or NULL.
const char *check_host_log_fault(void);

/// Is the text UTF-8, printable and of one line?
bool check_is_plain_text(const char *text);

#endif // RFT_CHECK_HOSTS_H
