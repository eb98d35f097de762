// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Tensors of every dtype, layout and placement, made from doubles and read back as doubles.

#ifndef RFT_CHECK_TENSORS_H
#define RFT_CHECK_TENSORS_H

#include "memory.h"
#include "rft/plugin.h"

extern const rft_dtype DTYPE_BOOL, DTYPE_INT8, DTYPE_UINT8, DTYPE_INT32, DTYPE_INT64, DTYPE_FLOAT16,
    DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64;

enum { FLOAT_DTYPES = 4, MASK_DTYPES = 9 };
extern const rft_dtype *const check_float_dtypes[FLOAT_DTYPES];
extern const rft_dtype *const check_mask_dtypes[MASK_DTYPES];

/// "float32"; "type code 5, 64 bits, 1 lanes".
enum { DTYPE_TEXT_SIZE = 48 };
const char *check_dtype_text(char text[DTYPE_TEXT_SIZE], rft_dtype dtype);

typedef enum check_arrangement {
  COMPACT,    ///< row-major, strides NULL
  EXPLICIT,   ///< row-major, strides given
  TRANSPOSED, ///< column-major
  REVERSED,   ///< negative strides
  GAPPED,     ///< every third element of a row
  OFFSET,     ///< behind five elements that byte_offset skips
  UNALIGNED   ///< behind one byte that byte_offset skips
} check_arrangement;

typedef struct check_layout {
  check_placement placement;
  check_arrangement arrangement;
  bool read_only; ///< not with PLAIN
} check_layout;

/// A tensor of one or two dimensions. `values` are row-major and exact in `dtype`; NULL: the bytes
/// are 0xA5, for an output.
rft_tensor *check_tensor(const double *values, int32_t ndim, int64_t rows, int64_t columns,
                         rft_dtype dtype, const check_layout *layout);

int64_t check_tensor_count(const rft_tensor *tensor);

/// The elements in row-major order.
double *check_tensor_values(const rft_tensor *tensor);

/// Every byte from the lowest to the highest address of the elements, and their number.
unsigned char *check_tensor_bytes(const rft_tensor *tensor, size_t *size);

/// A copy of the tensor itself, its data shared.
rft_tensor *check_tensor_copy(const rft_tensor *tensor);

#endif // RFT_CHECK_TENSORS_H
