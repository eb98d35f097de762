// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "safetensors_dtype.h"

#include <string.h>

typedef struct named_dtype {
  const char *name;
  rft_dtype dtype;
} named_dtype;

static const named_dtype DTYPES[] = {
    {"BOOL", {RFT_DTYPE_BOOL, 8, 1}},  {"U8", {RFT_DTYPE_UINT, 8, 1}},
    {"I8", {RFT_DTYPE_INT, 8, 1}},     {"U16", {RFT_DTYPE_UINT, 16, 1}},
    {"I16", {RFT_DTYPE_INT, 16, 1}},   {"U32", {RFT_DTYPE_UINT, 32, 1}},
    {"I32", {RFT_DTYPE_INT, 32, 1}},   {"U64", {RFT_DTYPE_UINT, 64, 1}},
    {"I64", {RFT_DTYPE_INT, 64, 1}},   {"F16", {RFT_DTYPE_FLOAT, 16, 1}},
    {"F32", {RFT_DTYPE_FLOAT, 32, 1}}, {"BF16", {RFT_DTYPE_BFLOAT, 16, 1}},
    {"F64", {RFT_DTYPE_FLOAT, 64, 1}}};
enum { DTYPE_COUNT = sizeof DTYPES / sizeof DTYPES[0] };

bool rft_safetensors_dtype(const char *name, rft_dtype *dtype)
{
  for (int i = 0; i < DTYPE_COUNT; ++i) {
    if (strcmp(DTYPES[i].name, name) == 0) {
      *dtype = DTYPES[i].dtype;
      return true;
    }
  }
  return false;
}

const char *rft_safetensors_dtype_name(rft_dtype dtype)
{
  for (int i = 0; i < DTYPE_COUNT; ++i) {
    if (memcmp(&DTYPES[i].dtype, &dtype, sizeof dtype) == 0) {
      return DTYPES[i].name;
    }
  }
  return NULL;
}

bool rft_safetensors_bytes(rft_dtype dtype, int32_t ndim, const int64_t *shape, int64_t *bytes)
{
  int64_t product = dtype.bits / 8;
  bool empty = false;
  bool fits = true;
  for (int32_t i = 0; i < ndim; ++i) {
    empty = empty || shape[i] == 0;
    fits = fits && !__builtin_mul_overflow(product, shape[i], &product);
  }
  *bytes = empty ? 0 : product;
  return empty || fits;
}
