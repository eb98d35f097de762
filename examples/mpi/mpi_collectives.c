// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "mpi_collectives.h"

#include "ranks.h"
#include "support/error.h"

#include <inttypes.h>

// MPI counts in int.
static const int64_t MOST_AT_ONCE = INT64_C(1) << 28;

static int32_t all_reduce_sum(const rft_collectives *service, uint64_t *values, int64_t count,
                              rft_error *error)
{
  mpi_collectives *const self = service->data;
  if (count < 0) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "all_reduce_sum: expected a count >= 0, found %" PRId64, count);
  }
  for (int64_t first = 0; first < count; first += MOST_AT_ONCE) {
    const int64_t left = count - first;
    const int length = (int)(left < MOST_AT_ONCE ? left : MOST_AT_ONCE);
    const int result =
        MPI_Allreduce(MPI_IN_PLACE, values + first, length, MPI_UINT64_T, MPI_SUM, self->group);
    if (result != MPI_SUCCESS) {
      return ranks_fail(self->group, "MPI_Allreduce", result, error);
    }
  }
  self->reductions += 1;
  self->bytes += count * (int64_t)sizeof values[0];
  return RFT_OK;
}

int32_t mpi_collectives_open(MPI_Comm group, mpi_collectives *self, rft_error *error)
{
  MPI_Comm own;
  int rank = 0;
  int size = 1;
  int result = MPI_Comm_dup(group, &own);
  if (result != MPI_SUCCESS) {
    return ranks_fail(group, "MPI_Comm_dup", result, error);
  }
  MPI_Comm_set_errhandler(own, MPI_ERRORS_RETURN);
  MPI_Comm_rank(own, &rank);
  MPI_Comm_size(own, &size);
  *self = (mpi_collectives){
      .service = {.struct_size = RFT_STRUCT_SIZE(rft_collectives, all_reduce_sum),
                  .rank = rank,
                  .size = size,
                  .data = self,
                  .all_reduce_sum = all_reduce_sum},
      .group = own,
  };
  return RFT_OK;
}

void mpi_collectives_close(mpi_collectives *self)
{
  MPI_Comm_free(&self->group);
}
