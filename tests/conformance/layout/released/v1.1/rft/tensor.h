// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

/// @file tensor.h
/// A strided n-dimensional array: the DLTensor of DLPack 1.x, field by field.
///
/// A tensor that PyTorch, JAX, NumPy or CuPy exports through DLPack is passed as it is: cast the
/// DLTensor pointer, copy nothing. The layout is checked by static asserts below.

#ifndef RFT_TENSOR_H
#define RFT_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Device types (DLDeviceType). Only what the project itself names; every DLPack value is legal.
enum {
  RFT_DEVICE_CPU = 1,
  RFT_DEVICE_CUDA = 2,
  RFT_DEVICE_CUDA_HOST = 3, ///< page-locked host memory: read like RFT_DEVICE_CPU
  RFT_DEVICE_ROCM = 10,
  RFT_DEVICE_ROCM_HOST = 11 ///< page-locked host memory: read like RFT_DEVICE_CPU
};

/// Element type codes (DLDataTypeCode).
enum {
  RFT_DTYPE_INT = 0,
  RFT_DTYPE_UINT = 1,
  RFT_DTYPE_FLOAT = 2,
  RFT_DTYPE_BFLOAT = 4,
  RFT_DTYPE_BOOL = 6 ///< 8 bits an element, any non-zero byte is true
};

/// Where the data lives (DLDevice).
typedef struct rft_device {
  int32_t type; ///< RFT_DEVICE_*
  int32_t id;   ///< ordinal, 0 on the CPU
} rft_device;

/// Element type (DLDataType): float32 is {RFT_DTYPE_FLOAT, 32, 1}.
typedef struct rft_dtype {
  uint8_t code;   ///< RFT_DTYPE_*
  uint8_t bits;   ///< width of one lane in bits
  uint16_t lanes; ///< 1: no vector types here
} rft_dtype;

/// A borrowed view of memory (DLTensor). Whoever made the tensor owns data, shape and strides, and
/// keeps them alive for the call that it is given to (rule P13, H9).
typedef struct rft_tensor {
  void *data;        ///< start of the allocation, on `device`; may be NULL when there is no element
  rft_device device; ///< where `data` lives
  int32_t ndim;      ///< number of dimensions, >= 0
  rft_dtype dtype;   ///< type of one element
  int64_t *shape;    ///< [ndim], each >= 0
  int64_t *strides;  ///< [ndim], in elements, any sign, 0 to broadcast; NULL: compact, row-major
  uint64_t byte_offset; ///< bytes from `data` to the first element
} rft_tensor;

#if UINTPTR_MAX == UINT64_MAX
#ifdef __cplusplus
#define RFT_STATIC_ASSERT(condition, message) static_assert(condition, message)
#else
#define RFT_STATIC_ASSERT(condition, message) _Static_assert(condition, message)
#endif
RFT_STATIC_ASSERT(sizeof(rft_tensor) == 48, "rft_tensor is DLTensor");
RFT_STATIC_ASSERT(offsetof(rft_tensor, device) == 8, "rft_tensor is DLTensor");
RFT_STATIC_ASSERT(offsetof(rft_tensor, ndim) == 16, "rft_tensor is DLTensor");
RFT_STATIC_ASSERT(offsetof(rft_tensor, dtype) == 20, "rft_tensor is DLTensor");
RFT_STATIC_ASSERT(offsetof(rft_tensor, shape) == 24, "rft_tensor is DLTensor");
RFT_STATIC_ASSERT(offsetof(rft_tensor, strides) == 32, "rft_tensor is DLTensor");
RFT_STATIC_ASSERT(offsetof(rft_tensor, byte_offset) == 40, "rft_tensor is DLTensor");
#endif

#ifdef __cplusplus
}
#endif

#endif // RFT_TENSOR_H
