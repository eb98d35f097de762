// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft_tensor is DLPack's DLTensor, field by field: compiles, or says which field differs.

#include "rft/tensor.h"

#include <dlpack/dlpack.h>

#ifdef __cplusplus
#define ASSERT(condition, message) static_assert(condition, message)
#else
#define ASSERT(condition, message) _Static_assert(condition, message)
#endif

#define SAME_FIELD(ours, our_field, theirs, their_field)                                           \
  ASSERT(offsetof(ours, our_field) == offsetof(theirs, their_field) &&                             \
             sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field),                 \
         #ours "." #our_field " is " #theirs "." #their_field)
#define SAME_SIZE(ours, theirs) ASSERT(sizeof(ours) == sizeof(theirs), #ours " is " #theirs)
#define SAME_VALUE(ours, theirs) ASSERT((int)(ours) == (int)(theirs), #ours " is " #theirs)

SAME_SIZE(rft_tensor, DLTensor);
SAME_FIELD(rft_tensor, data, DLTensor, data);
SAME_FIELD(rft_tensor, device, DLTensor, device);
SAME_FIELD(rft_tensor, ndim, DLTensor, ndim);
SAME_FIELD(rft_tensor, dtype, DLTensor, dtype);
SAME_FIELD(rft_tensor, shape, DLTensor, shape);
SAME_FIELD(rft_tensor, strides, DLTensor, strides);
SAME_FIELD(rft_tensor, byte_offset, DLTensor, byte_offset);

SAME_SIZE(rft_device, DLDevice);
SAME_FIELD(rft_device, type, DLDevice, device_type);
SAME_FIELD(rft_device, id, DLDevice, device_id);

SAME_SIZE(rft_dtype, DLDataType);
SAME_FIELD(rft_dtype, code, DLDataType, code);
SAME_FIELD(rft_dtype, bits, DLDataType, bits);
SAME_FIELD(rft_dtype, lanes, DLDataType, lanes);

SAME_VALUE(RFT_DEVICE_CPU, kDLCPU);
SAME_VALUE(RFT_DEVICE_CUDA, kDLCUDA);
SAME_VALUE(RFT_DEVICE_CUDA_HOST, kDLCUDAHost);
SAME_VALUE(RFT_DEVICE_ROCM, kDLROCM);
SAME_VALUE(RFT_DEVICE_ROCM_HOST, kDLROCMHost);

SAME_VALUE(RFT_DTYPE_INT, kDLInt);
SAME_VALUE(RFT_DTYPE_UINT, kDLUInt);
SAME_VALUE(RFT_DTYPE_FLOAT, kDLFloat);
SAME_VALUE(RFT_DTYPE_BFLOAT, kDLBfloat);
#if defined(DLPACK_MAJOR_VERSION) || DLPACK_VERSION >= 80
SAME_VALUE(RFT_DTYPE_BOOL, kDLBool);
#endif
