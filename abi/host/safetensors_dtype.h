// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Element types as safetensors files name them. Private to librft_host.

#ifndef RFT_HOST_SAFETENSORS_DTYPE_H
#define RFT_HOST_SAFETENSORS_DTYPE_H

#include "rft/tensor.h"

#include <stdbool.h>

/// The element type of a name, "BF16"; false when it is not one of those supported.
bool rft_safetensors_dtype(const char *name, rft_dtype *dtype);

/// The name of an element type, or NULL.
const char *rft_safetensors_dtype_name(rft_dtype dtype);

/// Bytes of a compact array; false when they don't fit 63 bits.
bool rft_safetensors_bytes(rft_dtype dtype, int32_t ndim, const int64_t *shape, int64_t *bytes);

#endif // RFT_HOST_SAFETENSORS_DTYPE_H
