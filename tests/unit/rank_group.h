// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A data-parallel group in one process: every rank is a thread.

#ifndef TEST_RANK_GROUP_H
#define TEST_RANK_GROUP_H

#include "rft/plugin.h"

enum { MOST_RANKS = 4 };

/// Runs body(rank context, collectives) on `size` ranks at once, rank i with contexts[i], and
/// returns when all have returned. A rank that leaves the others waiting fails the test.
void run_ranks(int size, void (*body)(void *context, const rft_collectives *collectives),
               void *const contexts[]);

#endif // TEST_RANK_GROUP_H
