// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The golden cases of tests/vectors/m2po_cases.json, which says in its "about" what they hold.

#ifndef TEST_GOLDEN_H
#define TEST_GOLDEN_H

#include "batches.h"
#include "reference_config.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

typedef struct golden_case {
  const char *name;
  const char *config_text;
  reference_config config;
  rft_batch *batch;
  int64_t token_count; ///< the caller's, or 0
  double scale;        ///< the caller's, or 0
  const char *error;   ///< parts of the message, separated by ", "; NULL: success is expected
  const json_t *expect;
  const json_t *splits; ///< also_as_micro_batches_of, or NULL
} golden_case;

/// A parameter for each case that expects an error, or for each that expects an answer: its index.
struct criterion_test_params golden_parameters(bool error);

/// The case, alive until test_free_all.
golden_case golden_open(int index);

/// What the case expects, by key.
double golden_number(const golden_case *golden, const char *key);
double golden_element(const golden_case *golden, const char *key, int64_t i);

#endif // TEST_GOLDEN_H
