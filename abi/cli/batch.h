// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A recorded batch, and micro-batches that are views of its rows.

#ifndef RFT_CLI_BATCH_H
#define RFT_CLI_BATCH_H

#include "rft/safetensors.h"

/// The tensors of a batch file. Rows are what a split goes between: padded [B,T] has B, packed [n]
/// as many as sequences.
typedef struct cli_batch {
  rft_safetensors *file;
  const char *path;
  const rft_tensor *logprob;
  const rft_tensor *old_logprob;
  const rft_tensor *proximal_logprob; ///< or NULL
  const rft_tensor *advantages;
  const rft_tensor *mask;
  const rft_tensor *cu_seqlens; ///< or NULL
  int64_t rows;
  int64_t columns;  ///< padded: T
  int64_t *offsets; ///< packed: [rows + 1], where each sequence starts; padded: NULL
} cli_batch;

/// Opens a batch file and checks what a split relies on; the policy loss checks the rest.
int32_t cli_batch_open(const char *path, cli_batch *batch, rft_error *error);
void cli_batch_close(cli_batch *batch);

/// Number of tokens of the first `rows` rows, padding included.
int64_t cli_batch_positions(const cli_batch *batch, int64_t rows);

/// Rows [first, first + rows) of a batch.
typedef struct cli_slice {
  rft_batch batch;  ///< points into this struct: don't copy it
  int64_t position; ///< of its first token
  rft_tensor tensors[6];
  int64_t shapes[6][2];
  int64_t *cu_seqlens;
} cli_slice;

void cli_slice_make(const cli_batch *batch, int64_t first, int64_t rows, cli_slice *slice);
void cli_slice_free(cli_slice *slice);

/// A compact view of `buffer`, which is as large as the batch's logprob, in the shape of the
/// slice's logprob.
rft_tensor cli_slice_view(const cli_slice *slice, void *buffer, rft_dtype dtype);

#endif // RFT_CLI_BATCH_H
