// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// One element of a tensor in memory: read as a double, written from one.

#ifndef M2PO_ELEMENT_H
#define M2PO_ELEMENT_H

#include "rft/tensor.h"

#include <stdbool.h>

typedef enum m2po_element {
  M2PO_UNSUPPORTED,
  M2PO_BOOL,
  M2PO_INT8,
  M2PO_UINT8,
  M2PO_INT32,
  M2PO_INT64,
  M2PO_FLOAT16,
  M2PO_BFLOAT16,
  M2PO_FLOAT32,
  M2PO_FLOAT64
} m2po_element;

m2po_element m2po_element_of(rft_dtype dtype);
int64_t m2po_element_size(m2po_element element);
bool m2po_element_is_float(m2po_element element);

/// Reads `count` elements that are `stride` bytes apart. Floats widen exactly; an int64 beyond 2^53
/// is rounded, but never to zero.
void m2po_element_load(m2po_element element, const unsigned char *address, int64_t stride,
                       int64_t count, double *values);

/// Reads one int32 or int64.
int64_t m2po_element_load_integer(m2po_element element, const unsigned char *address);

/// Rounds to the nearest value of a float element, ties to even; beyond the largest: infinity.
double m2po_element_round(m2po_element element, double value);

/// Writes `count` elements of a float type that are `stride` bytes apart, each rounded.
void m2po_element_store(m2po_element element, unsigned char *address, int64_t stride, int64_t count,
                        const double *values);

#endif // M2PO_ELEMENT_H
