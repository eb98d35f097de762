// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// One element of a tensor in memory: read as a double, written from one.

#ifndef RFT_SUPPORT_ELEMENT_H
#define RFT_SUPPORT_ELEMENT_H

#include "rft/tensor.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rft_element {
  RFT_ELEMENT_UNSUPPORTED,
  RFT_ELEMENT_BOOL,
  RFT_ELEMENT_INT8,
  RFT_ELEMENT_UINT8,
  RFT_ELEMENT_INT32,
  RFT_ELEMENT_INT64,
  RFT_ELEMENT_FLOAT16,
  RFT_ELEMENT_BFLOAT16,
  RFT_ELEMENT_FLOAT32,
  RFT_ELEMENT_FLOAT64
} rft_element;

rft_element rft_element_of(rft_dtype dtype);
int64_t rft_element_size(rft_element element);
bool rft_element_is_float(rft_element element);

/// Reads `count` elements that are `stride` bytes apart. Floats widen exactly; an int64 beyond 2^53
/// is rounded, but never to zero.
void rft_element_load(rft_element element, const unsigned char *address, int64_t stride,
                      int64_t count, double *values);

/// Reads one int32 or int64.
int64_t rft_element_load_integer(rft_element element, const unsigned char *address);

/// Rounds to the nearest value of a float element, ties to even; beyond the largest: infinity.
double rft_element_round(rft_element element, double value);

/// The least value > 0 that a float element rounds to infinity; INFINITY for float64.
double rft_element_overflow(rft_element element);

/// Writes `count` elements of a float type that are `stride` bytes apart, each rounded.
void rft_element_store(rft_element element, unsigned char *address, int64_t stride, int64_t count,
                       const double *values);

#ifdef __cplusplus
}
#endif

#endif // RFT_SUPPORT_ELEMENT_H
