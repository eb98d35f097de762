// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A batch as `rft inspect` looks at it: its tokens' log-ratios, and what the file says of itself.

#ifndef RFT_CLI_INSPECT_BATCH_H
#define RFT_CLI_INSPECT_BATCH_H

#include "batch.h"

#include <jansson.h>
#include <stdbool.h>

enum { INSPECT_STALENESS_UNKNOWN = -1 };

/// Arrays are [positions]. At a position that is not valid log-ratios are 0; the tensors are as
/// they are in the file.
typedef struct inspect_batch {
  const cli_batch *source; ///< borrowed
  int64_t positions;
  int64_t valid_tokens;
  bool *valid;
  double *logprob;
  double *old_logprob;
  double *advantage;
  double *log_ratio;          ///< logprob - old_logprob
  double *proximal_log_ratio; ///< proximal_logprob - old_logprob; NULL without that tensor
  int64_t longest;            ///< most valid tokens of a sequence
  int64_t staleness;          ///< in updates, or INSPECT_STALENESS_UNKNOWN
  json_t *text;               ///< token_text: rows of strings, one a position; NULL without
  char *text_fault;           ///< why a token_text that is there is not used; else NULL
} inspect_batch;

/// Reads an open batch. `staleness`: what the caller knows, or INSPECT_STALENESS_UNKNOWN to believe
/// a whole number in the metadata. Free with inspect_batch_free, whatever comes back.
int32_t inspect_batch_read(const cli_batch *source, int64_t staleness, inspect_batch *batch,
                           rft_error *error);
void inspect_batch_free(inspect_batch *batch);

/// The text of a position, or NULL where there is none.
const char *inspect_batch_text(const inspect_batch *batch, int64_t row, int64_t position);

/// The row that a position is in.
int64_t inspect_batch_row(const inspect_batch *batch, int64_t position);

/// How a quantity is spread over the valid tokens.
enum { INSPECT_QUANTILES = 9 };
extern const double inspect_quantile_levels[INSPECT_QUANTILES]; ///< 0, ..., 0.5, ..., 1
typedef struct inspect_spread {
  double mean;
  double root_mean_square;
  double quantiles[INSPECT_QUANTILES];
} inspect_spread;

/// Of the log-ratios, and of the ratios. All 0 without a valid token.
void inspect_batch_spread(const inspect_batch *batch, inspect_spread *log_ratio,
                          inspect_spread *ratio);

#endif // RFT_CLI_INSPECT_BATCH_H
