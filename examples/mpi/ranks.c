// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "ranks.h"

#include "support/error.h"

#include <string.h>

// MPI counts in int.
static const int64_t MOST_AT_ONCE = INT64_C(1) << 30;

enum { TAG = 1 };

int32_t ranks_fail(MPI_Comm group, const char *call, int result, rft_error *error)
{
  char words[MPI_MAX_ERROR_STRING] = "no reason given";
  int length = 0;
  int rank = -1;
  MPI_Error_string(result, words, &length);
  MPI_Comm_rank(group, &rank);
  return rft_fail(error, RFT_UNAVAILABLE, "%s on rank %d: %.300s", call, rank, words);
}

static int chunk(int64_t left)
{
  return (int)(left < MOST_AT_ONCE ? left : MOST_AT_ONCE);
}

int32_t ranks_send(MPI_Comm group, int to, const void *data, int64_t bytes, rft_error *error)
{
  for (int64_t at = 0; at < bytes; at += MOST_AT_ONCE) {
    const int result =
        MPI_Send((const char *)data + at, chunk(bytes - at), MPI_BYTE, to, TAG, group);
    if (result != MPI_SUCCESS) {
      return ranks_fail(group, "MPI_Send", result, error);
    }
  }
  return RFT_OK;
}

int32_t ranks_receive(MPI_Comm group, int from, void *data, int64_t bytes, rft_error *error)
{
  for (int64_t at = 0; at < bytes; at += MOST_AT_ONCE) {
    const int result = MPI_Recv((char *)data + at, chunk(bytes - at), MPI_BYTE, from, TAG, group,
                                MPI_STATUS_IGNORE);
    if (result != MPI_SUCCESS) {
      return ranks_fail(group, "MPI_Recv", result, error);
    }
  }
  return RFT_OK;
}

int32_t ranks_share(MPI_Comm group, int from, void *data, int64_t bytes, rft_error *error)
{
  for (int64_t at = 0; at < bytes; at += MOST_AT_ONCE) {
    const int result = MPI_Bcast((char *)data + at, chunk(bytes - at), MPI_BYTE, from, group);
    if (result != MPI_SUCCESS) {
      return ranks_fail(group, "MPI_Bcast", result, error);
    }
  }
  return RFT_OK;
}

int32_t ranks_gather(MPI_Comm group, void *items, const int64_t *start, int64_t unit,
                     rft_error *error)
{
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(group, &rank);
  MPI_Comm_size(group, &size);
  if (rank != 0) {
    return ranks_send(group, 0, (char *)items + start[rank] * unit,
                      (start[rank + 1] - start[rank]) * unit, error);
  }
  int32_t code = RFT_OK;
  for (int from = 1; code == RFT_OK && from < size; ++from) {
    code = ranks_receive(group, from, (char *)items + start[from] * unit,
                         (start[from + 1] - start[from]) * unit, error);
  }
  return code;
}

// Lower is heard first.
static int voice(int32_t code, int rank, int size)
{
  return code == RFT_OK ? 2 * size : code == RFT_ABORTED ? size + rank : rank;
}

int32_t ranks_agree(MPI_Comm group, int32_t code, rft_error *error)
{
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(group, &rank);
  MPI_Comm_size(group, &size);
  int first = voice(code, rank, size);
  const int result = MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, group);
  if (result != MPI_SUCCESS) {
    return ranks_fail(group, "MPI_Allreduce", result, error);
  }
  if (first == 2 * size) {
    return RFT_OK;
  }
  rft_error heard = {.struct_size = sizeof heard, .code = code};
  const int speaker = first % size;
  if (rank == speaker && error != NULL) {
    memcpy(heard.message, error->message, sizeof heard.message);
  }
  const int32_t shared = ranks_share(group, speaker, &heard, sizeof heard, error);
  if (shared != RFT_OK || size == 1) {
    return shared != RFT_OK ? shared : code;
  }
  return rft_fail(error, heard.code, "rank %d of %d: %s", speaker, size, heard.message);
}
