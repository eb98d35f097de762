// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "tensors.h"

#include "verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const rft_dtype DTYPE_BOOL = {RFT_DTYPE_BOOL, 8, 1};
const rft_dtype DTYPE_INT8 = {RFT_DTYPE_INT, 8, 1};
const rft_dtype DTYPE_UINT8 = {RFT_DTYPE_UINT, 8, 1};
const rft_dtype DTYPE_INT32 = {RFT_DTYPE_INT, 32, 1};
const rft_dtype DTYPE_INT64 = {RFT_DTYPE_INT, 64, 1};
const rft_dtype DTYPE_FLOAT16 = {RFT_DTYPE_FLOAT, 16, 1};
const rft_dtype DTYPE_BFLOAT16 = {RFT_DTYPE_BFLOAT, 16, 1};
const rft_dtype DTYPE_FLOAT32 = {RFT_DTYPE_FLOAT, 32, 1};
const rft_dtype DTYPE_FLOAT64 = {RFT_DTYPE_FLOAT, 64, 1};

const rft_dtype *const check_float_dtypes[FLOAT_DTYPES] = {&DTYPE_FLOAT16, &DTYPE_BFLOAT16,
                                                           &DTYPE_FLOAT32, &DTYPE_FLOAT64};
const rft_dtype *const check_mask_dtypes[MASK_DTYPES] = {
    &DTYPE_BOOL,    &DTYPE_INT8,     &DTYPE_UINT8,   &DTYPE_INT32,  &DTYPE_INT64,
    &DTYPE_FLOAT16, &DTYPE_BFLOAT16, &DTYPE_FLOAT32, &DTYPE_FLOAT64};

static const char *const FAMILIES[] = {"int", "uint", "float", NULL, "bfloat", NULL, "bool"};

const char *check_dtype_text(char text[DTYPE_TEXT_SIZE], rft_dtype dtype)
{
  const bool named = dtype.code < sizeof FAMILIES / sizeof FAMILIES[0] &&
                     FAMILIES[dtype.code] != NULL && dtype.lanes == 1;
  if (named) {
    snprintf(text, DTYPE_TEXT_SIZE, "%s%d", FAMILIES[dtype.code], dtype.bits);
  } else {
    snprintf(text, DTYPE_TEXT_SIZE, "type code %d, %d bits, %d lanes", dtype.code, dtype.bits,
             dtype.lanes);
  }
  return text;
}

// ------------------------------------------------------------------------------------- one element

enum { HALF_BIAS = 15, HALF_FRACTION = 10 };

// `value` is exact in float16, and no subnormal of it.
static uint16_t half_of(double value)
{
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  if (isnan(value)) {
    return 0x7E00;
  }
  if (isinf(value)) {
    return (uint16_t)(sign | 0x7C00);
  }
  if (value == 0) {
    return sign;
  }
  int exponent = 0;
  const double fraction = frexp(fabs(value), &exponent); // in [1/2, 1)
  const int mantissa = (int)ldexp(fraction, HALF_FRACTION + 1) & 0x3FF;
  return (uint16_t)(sign | ((exponent - 1 + HALF_BIAS) << HALF_FRACTION) | mantissa);
}

static double half_value(uint16_t bits)
{
  const int exponent = (bits >> HALF_FRACTION) & 0x1F;
  const int mantissa = bits & 0x3FF;
  double size = exponent == 0 ? ldexp(mantissa, 1 - HALF_BIAS - HALF_FRACTION)
                              : ldexp(mantissa + 0x400, exponent - HALF_BIAS - HALF_FRACTION);
  if (exponent == 0x1F) {
    size = mantissa == 0 ? (double)INFINITY : (double)NAN;
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

static void store_float(unsigned char *at, double value, rft_dtype dtype)
{
  const float narrow = (float)value;
  if (dtype.code == RFT_DTYPE_BFLOAT) {
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    const uint16_t high = (uint16_t)(bits >> 16);
    memcpy(at, &high, sizeof high);
  } else if (dtype.bits == 16) {
    const uint16_t half = half_of(value);
    memcpy(at, &half, sizeof half);
  } else if (dtype.bits == 32) {
    memcpy(at, &narrow, sizeof narrow);
  } else {
    memcpy(at, &value, sizeof value);
  }
}

static void store(unsigned char *at, double value, rft_dtype dtype)
{
  if (dtype.code == RFT_DTYPE_FLOAT || dtype.code == RFT_DTYPE_BFLOAT) {
    store_float(at, value, dtype);
    return;
  }
  const int64_t whole = (int64_t)value; // little-endian: the low bytes come first
  memcpy(at, &whole, dtype.bits / 8U);
}

static double load(const unsigned char *at, rft_dtype dtype)
{
  uint16_t half;
  uint32_t bits;
  float narrow;
  double value;
  if (dtype.code != RFT_DTYPE_FLOAT && dtype.code != RFT_DTYPE_BFLOAT) {
    return at[0];
  }
  if (dtype.bits == 64) {
    memcpy(&value, at, sizeof value);
    return value;
  }
  if (dtype.bits == 32) {
    memcpy(&narrow, at, sizeof narrow);
    return (double)narrow;
  }
  memcpy(&half, at, sizeof half);
  if (dtype.code == RFT_DTYPE_FLOAT) {
    return half_value(half);
  }
  bits = (uint32_t)half << 16;
  memcpy(&narrow, &bits, sizeof narrow);
  return (double)narrow;
}

// ----------------------------------------------------------------------------------------- layouts

int64_t check_tensor_count(const rft_tensor *tensor)
{
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    count *= tensor->shape[i];
  }
  return count;
}

static int64_t stride_of(const rft_tensor *tensor, int32_t dimension)
{
  if (tensor->strides != NULL) {
    return tensor->strides[dimension];
  }
  return dimension + 1 < tensor->ndim ? tensor->shape[dimension + 1] : 1;
}

static unsigned char *element_at(const rft_tensor *tensor, int64_t position)
{
  const int64_t size = tensor->dtype.bits / 8;
  int64_t offset = 0;
  for (int32_t i = tensor->ndim - 1; i >= 0; --i) {
    offset += position % tensor->shape[i] * stride_of(tensor, i) * size;
    position /= tensor->shape[i];
  }
  return (unsigned char *)tensor->data + tensor->byte_offset + offset;
}

// Strides in elements, and the bytes of the allocation before the first element and in all.
typedef struct plan {
  int64_t strides[2];
  int64_t before;
  int64_t size;
} plan;

static plan make_plan(int32_t ndim, int64_t rows, int64_t columns, int64_t size,
                      check_arrangement arrangement)
{
  const int64_t count = rows * columns;
  plan made = {{columns, 1}, 0, count * size};
  switch (arrangement) {
  case TRANSPOSED:
    made.strides[0] = 1;
    made.strides[1] = rows;
    break;
  case REVERSED:
    made.strides[0] = -columns;
    made.strides[1] = -1;
    made.before = count == 0 ? 0 : (count - 1) * size;
    break;
  case GAPPED:
    made.strides[0] = 3 * columns;
    made.strides[1] = 3;
    made.size *= 3;
    break;
  case OFFSET:
    made.before = 5 * size;
    made.size += made.before;
    break;
  case UNALIGNED:
    made.before = 1;
    made.size += 1;
    break;
  case COMPACT:
  case EXPLICIT:
    break;
  }
  if (ndim == 1) {
    made.strides[0] = made.strides[1];
  }
  return made;
}

rft_tensor *check_tensor(const double *values, int32_t ndim, int64_t rows, int64_t columns,
                         rft_dtype dtype, const check_layout *layout)
{
  const plan made = make_plan(ndim, rows, columns, dtype.bits / 8, layout->arrangement);
  rft_tensor *const tensor = check_memory(sizeof *tensor, PLAIN);
  int64_t *const numbers = check_memory(4 * sizeof *numbers, PLAIN);
  numbers[0] = ndim == 1 ? columns : rows;
  numbers[1] = columns;
  memcpy(numbers + 2, made.strides, sizeof made.strides);
  *tensor = (rft_tensor){.data = check_memory((size_t)made.size, layout->placement),
                         .device = {RFT_DEVICE_CPU, 0},
                         .ndim = ndim,
                         .dtype = dtype,
                         .shape = numbers,
                         .strides = layout->arrangement == COMPACT ? NULL : numbers + 2,
                         .byte_offset = (uint64_t)made.before};
  memset(tensor->data, 0xA5, (size_t)made.size);
  for (int64_t i = 0; values != NULL && i < rows * columns; ++i) {
    store(element_at(tensor, i), values[i], dtype);
  }
  if (layout->read_only) {
    check_protect(tensor->data, (size_t)made.size);
  }
  return tensor;
}

double *check_tensor_values(const rft_tensor *tensor)
{
  const int64_t count = check_tensor_count(tensor);
  double *const values = check_memory((size_t)count * sizeof *values, PLAIN);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = load(element_at(tensor, i), tensor->dtype);
  }
  return values;
}

unsigned char *check_tensor_bytes(const rft_tensor *tensor, size_t *size)
{
  unsigned char *low = (unsigned char *)tensor->data + tensor->byte_offset;
  unsigned char *high = low;
  for (int64_t i = 0; i < check_tensor_count(tensor); ++i) {
    unsigned char *const at = element_at(tensor, i);
    low = at < low ? at : low;
    high = at + (tensor->dtype.bits / 8) > high ? at + (tensor->dtype.bits / 8) : high;
  }
  *size = (size_t)(high - low);
  return low;
}

rft_tensor *check_tensor_copy(const rft_tensor *tensor)
{
  rft_tensor *const copy = check_memory(sizeof *copy, PLAIN);
  int64_t *const numbers = check_memory(4 * sizeof *numbers, PLAIN);
  *copy = *tensor;
  copy->shape = memcpy(numbers, tensor->shape, (size_t)tensor->ndim * sizeof *numbers);
  if (tensor->strides != NULL) {
    copy->strides = memcpy(numbers + 2, tensor->strides, (size_t)tensor->ndim * sizeof *numbers);
  }
  return copy;
}
