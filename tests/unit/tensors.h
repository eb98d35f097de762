// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Tensors for tests: any dtype, any strides, in memory that ends where the tensor ends, so that a
// sanitizer sees each read beyond it.

#ifndef TEST_TENSORS_H
#define TEST_TENSORS_H

#include "dtypes.h"

/// Zeroed memory of exactly `size` bytes, alive until test_free_all; a test's suite calls that
/// last.
void *test_alloc(int64_t size);
void test_free_all(void);

/// How the elements of a tensor lie in memory. Strides are in elements.
typedef struct tensor_layout {
  int32_t ndim;
  int64_t shape[2];
  int64_t strides[2];
  bool compact;        ///< strides NULL
  int64_t byte_offset; ///< of element [0,0], beyond what negative strides need
} tensor_layout;

/// A tensor of that layout. Element values are given in row-major order, NULL: zeros; a later
/// element wins where a stride of 0 makes several one. Bytes between elements are TENSOR_GAP.
rft_tensor *tensor_new(rft_dtype dtype, const tensor_layout *layout, const double *values);
enum { TENSOR_GAP = 0xA5 };

/// Compact tensors.
rft_tensor *tensor_1d(rft_dtype dtype, int64_t count, const double *values);
rft_tensor *tensor_2d(rft_dtype dtype, int64_t rows, int64_t columns, const double *values);

/// The part [start, start + count) of a tensor along its first dimension, in the same memory.
rft_tensor *tensor_slice(const rft_tensor *tensor, int64_t start, int64_t count);

/// Compact, as the tensor it is like.
rft_tensor *tensor_like(const rft_tensor *tensor, rft_dtype dtype);

/// Number of elements, and one element by its row-major index.
int64_t tensor_count(const rft_tensor *tensor);
double tensor_get(const rft_tensor *tensor, int64_t index);
void tensor_set(const rft_tensor *tensor, int64_t index, double value);

/// The bytes that the elements lie in, first to last, gaps included.
unsigned char *tensor_bytes(const rft_tensor *tensor, int64_t *size);

#endif // TEST_TENSORS_H
