// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What the ranks of a group tell each other besides the selection: errors, arrays.

#ifndef RANKS_H
#define RANKS_H

#include "rft/plugin.h"

#include <mpi.h>

/// RFT_UNAVAILABLE, and a message with the call that failed, the rank and MPI's own words.
int32_t ranks_fail(MPI_Comm group, const char *call, int result, rft_error *error);

/// RFT_OK where every rank says so. Else the code and error of the lowest rank that failed, named,
/// on all ranks; RFT_ABORTED, which says that another rank failed, gives way to that one's own.
/// [collective]
int32_t ranks_agree(MPI_Comm group, int32_t code, rft_error *error);

/// Each rank has the items [start[rank], start[rank + 1]) of `items`, `unit` bytes each; rank 0
/// gets all of them. [collective]
int32_t ranks_gather(MPI_Comm group, void *items, const int64_t *start, int64_t unit,
                     rft_error *error);

/// Bytes to a rank, and from it. [collective, for these two ranks]
int32_t ranks_send(MPI_Comm group, int to, const void *data, int64_t bytes, rft_error *error);
int32_t ranks_receive(MPI_Comm group, int from, void *data, int64_t bytes, rft_error *error);

/// The bytes that one rank has go to all. [collective]
int32_t ranks_share(MPI_Comm group, int from, void *data, int64_t bytes, rft_error *error);

#endif // RANKS_H
