// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Optimizer batches of tokens in a row, and what the policy loss m2po says of a part of one.

#ifndef TEST_MPI_TOKENS_H
#define TEST_MPI_TOKENS_H

#include "rft/host.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct test_tokens {
  int64_t count;
  rft_dtype dtype; ///< of the float arrays
  unsigned char *logprob;
  unsigned char *old_logprob;
  unsigned char *advantages;
  unsigned char *mask; ///< bool
  int64_t token_count; ///< N as the caller gives it; 0: as the selection has counted it
  double scale;        ///< likewise; 0: 1
} test_tokens;

enum { LOGPROB, OLD_LOGPROB, ADVANTAGES, FLOAT_ARRAYS };

/// `count` valid tokens, all zero.
test_tokens tokens_new(int64_t count, rft_dtype dtype);
void tokens_free(test_tokens *self);

/// One number of one array, rounded to its dtype.
void tokens_set(test_tokens *self, int array, int64_t i, double value);

/// A case of tests/vectors/m2po_cases.json.
test_tokens tokens_of_case(const json_t *json);

/// Log-ratios of every size, some of them equal, and here and there a token that is not valid.
test_tokens tokens_random(uint64_t seed, int64_t count, rft_dtype dtype);

/// The tokens [first, first + count), in `micro_batches` parts; an empty part of one is a batch
/// without a token, of none is no batch at all.
typedef struct test_part {
  int64_t first;
  int64_t count;
  int64_t micro_batches;
} test_part;

/// What the policy loss says of a part.
typedef struct test_answer {
  int32_t code;
  rft_error error;
  bool evaluated; ///< the selection went well
  rft_selection_report report;
  double *metrics;         ///< [metric_count], those of selection_finish
  unsigned char *keep;     ///< [count of the part]
  unsigned char *gradient; ///< [count of the part], float32, or float64 for such tokens
  int64_t gradient_size;   ///< bytes of an element
  double loss;
} test_answer;

/// One selection over the group (NULL: alone), then loss and gradient. A rank whose add failed goes
/// on to finish, as the contract wants. [collective]
test_answer answer_of(const rft_policy_loss *loss, const rft_instance *instance,
                      const test_tokens *batch, test_part part, const rft_collectives *group);
void answer_free(test_answer *self);

#endif // TEST_MPI_TOKENS_H
