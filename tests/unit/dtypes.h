// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Element types, converted without the plugin's code: the slow way, from the formats' definitions.

#ifndef TEST_DTYPES_H
#define TEST_DTYPES_H

#include "rft/tensor.h"

#include <stdbool.h>

static const rft_dtype float16 = {RFT_DTYPE_FLOAT, 16, 1};
static const rft_dtype bfloat16 = {RFT_DTYPE_BFLOAT, 16, 1};
static const rft_dtype float32 = {RFT_DTYPE_FLOAT, 32, 1};
static const rft_dtype float64 = {RFT_DTYPE_FLOAT, 64, 1};
static const rft_dtype bool8 = {RFT_DTYPE_BOOL, 8, 1};
static const rft_dtype int8 = {RFT_DTYPE_INT, 8, 1};
static const rft_dtype uint8 = {RFT_DTYPE_UINT, 8, 1};
static const rft_dtype int32 = {RFT_DTYPE_INT, 32, 1};
static const rft_dtype int64 = {RFT_DTYPE_INT, 64, 1};

/// "float32": for messages, and back.
const char *dtype_name(rft_dtype dtype);
rft_dtype dtype_of_name(const char *name);
bool dtype_is_wide(rft_dtype dtype); ///< float64

/// `value` as an element of that dtype reads back: rounded to nearest, ties to even.
double dtype_round(rft_dtype dtype, double value);

/// One element in memory.
double dtype_load(rft_dtype dtype, const unsigned char *address);
void dtype_store(rft_dtype dtype, unsigned char *address, double value);
int64_t dtype_size(rft_dtype dtype); ///< in bytes

#endif // TEST_DTYPES_H
