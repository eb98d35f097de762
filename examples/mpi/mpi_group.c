// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "mpi_group.h"

#include "check.h"
#include "ranks.h"

MPI_Comm mpi_group_communicator(const train_group *group)
{
  const mpi_collectives *const collectives = group->collectives->data;
  return collectives->group;
}

static int32_t agree(const train_group *group, int32_t code, rft_error *error)
{
  return ranks_agree(mpi_group_communicator(group), code, error);
}

static int32_t share(const train_group *group, void *data, int64_t bytes, rft_error *error)
{
  return ranks_share(mpi_group_communicator(group), 0, data, bytes, error);
}

static int32_t take(const train_group *group, void *data, int64_t bytes, rft_error *error)
{
  return group->rank == 0 ? RFT_OK
                          : ranks_receive(mpi_group_communicator(group), (int)group->rank - 1, data,
                                          bytes, error);
}

static int32_t give(const train_group *group, void *data, int64_t bytes, rft_error *error)
{
  MPI_Comm communicator = mpi_group_communicator(group);
  const int last = (int)group->size - 1;
  const int rank = (int)group->rank;
  const int32_t code =
      rank == last ? RFT_OK : ranks_send(communicator, rank + 1, data, bytes, error);
  return code == RFT_OK ? ranks_share(communicator, last, data, bytes, error) : code;
}

int32_t mpi_group_open(mpi_group *self, bool check, rft_error *error)
{
  const int32_t code = mpi_collectives_open(MPI_COMM_WORLD, &self->collectives, error);
  if (code != RFT_OK) {
    return code;
  }
  const rft_collectives *const service = &self->collectives.service;
  self->group = (train_group){.rank = service->rank,
                              .size = service->size,
                              .collectives = service,
                              .agree = agree,
                              .share = share,
                              .take = take,
                              .give = give,
                              .check = check ? check_selection : NULL};
  return RFT_OK;
}

void mpi_group_close(mpi_group *self)
{
  mpi_collectives_close(&self->collectives);
}
