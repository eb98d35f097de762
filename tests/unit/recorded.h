// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The batches recorded from a real language model, and the answers to them
// (tests/vectors/README.md).

#ifndef TEST_RECORDED_H
#define TEST_RECORDED_H

#include "batches.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <jansson.h>

/// A parameter for each entry of an answer file: its index.
struct criterion_test_params recorded_parameters(const char *file);

/// One entry of an answer file, and the batch that it is about; one at a time.
typedef struct recorded_case {
  const json_t *entry;
  rft_batch *batch;
  double m2_threshold;
} recorded_case;

recorded_case recorded_open(const char *file, int index);
void recorded_close(void);

/// A number of the entry.
double recorded_number(const recorded_case *recorded, const char *key);

/// keep[i] for each position: valid, and not among the entry's masked positions.
bool *recorded_keep(const recorded_case *recorded);

/// File and threshold, for messages.
const char *recorded_label(const recorded_case *recorded);

#endif // TEST_RECORDED_H
