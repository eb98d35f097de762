// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A selection over ranks against that of one process.

#ifndef CHECK_H
#define CHECK_H

#include "group.h"

/// Gathers every rank's batch on rank 0, selects there without collectives, and compares mask,
/// counts and metrics bit by bit. The first difference is RFT_INTERNAL, on all ranks. A
/// train_group's `check`, for groups that mpi_group_open has made. [collective]
int32_t check_selection(const train_group *group, const train_selected *selected, rft_error *error);

#endif // CHECK_H
