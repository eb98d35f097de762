// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The service rft.host.collectives/1 over MPI: what a host gives to selection_finish.

#ifndef MPI_COLLECTIVES_H
#define MPI_COLLECTIVES_H

#include "rft/plugin.h"

#include <mpi.h>

typedef struct mpi_collectives {
  rft_collectives service; ///< hand out its address; `data` points back here
  MPI_Comm group;
  int64_t reductions; ///< of this rank so far
  int64_t bytes;      ///< that it has put into them
} mpi_collectives;

/// Makes the service for the data-parallel group: the ranks whose tokens form one optimizer batch.
/// Ranks that hold copies of the same tokens (tensor- or context-parallel) belong to different
/// groups, made with MPI_Comm_split. The group is duplicated, so that no message of the host's can
/// meet one of the service's, and its errors return instead of ending the process. [collective]
int32_t mpi_collectives_open(MPI_Comm group, mpi_collectives *self, rft_error *error);
void mpi_collectives_close(mpi_collectives *self);

#endif // MPI_COLLECTIVES_H
