// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The trainer's group over MPI.

#ifndef MPI_GROUP_H
#define MPI_GROUP_H

#include "group.h"
#include "mpi_collectives.h"

#include <stdbool.h>

typedef struct mpi_group {
  train_group group; ///< hand out its address
  mpi_collectives collectives;
} mpi_group;

/// The ranks of MPI_COMM_WORLD. `check`: check_selection looks at every selection. [collective]
int32_t mpi_group_open(mpi_group *self, bool check, rft_error *error);
void mpi_group_close(mpi_group *self);

/// The communicator of a group that mpi_group_open has made.
MPI_Comm mpi_group_communicator(const train_group *group);

#endif // MPI_GROUP_H
