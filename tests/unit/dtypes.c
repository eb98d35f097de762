// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "dtypes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  rft_dtype dtype;
} names[] = {
    {"float16", {RFT_DTYPE_FLOAT, 16, 1}}, {"bfloat16", {RFT_DTYPE_BFLOAT, 16, 1}},
    {"float32", {RFT_DTYPE_FLOAT, 32, 1}}, {"float64", {RFT_DTYPE_FLOAT, 64, 1}},
    {"bool", {RFT_DTYPE_BOOL, 8, 1}},      {"int8", {RFT_DTYPE_INT, 8, 1}},
    {"uint8", {RFT_DTYPE_UINT, 8, 1}},     {"int32", {RFT_DTYPE_INT, 32, 1}},
    {"int64", {RFT_DTYPE_INT, 64, 1}},
};

enum { NAME_COUNT = sizeof names / sizeof names[0] };

static bool same_dtype(rft_dtype a, rft_dtype b)
{
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

const char *dtype_name(rft_dtype dtype)
{
  for (int i = 0; i < NAME_COUNT; ++i) {
    if (same_dtype(names[i].dtype, dtype)) {
      return names[i].name;
    }
  }
  return "unknown";
}

rft_dtype dtype_of_name(const char *name)
{
  int i = 0;
  while (strcmp(names[i].name, name) != 0) {
    ++i;
    assert(i < NAME_COUNT);
  }
  return names[i].dtype;
}

bool dtype_is_wide(rft_dtype dtype)
{
  return same_dtype(dtype, float64);
}

/// An IEEE 754 format of 16 bits.
typedef struct short_float {
  int fraction_bits;
  int exponent_bits;
} short_float;

static short_float short_float_of(rft_dtype dtype)
{
  return dtype.code == RFT_DTYPE_BFLOAT ? (short_float){7, 8} : (short_float){10, 5};
}

static int bias_of(short_float format)
{
  return (1 << (format.exponent_bits - 1)) - 1;
}

static double short_float_decode(short_float format, uint16_t bits)
{
  const int all_ones = (1 << format.exponent_bits) - 1;
  const int exponent = (bits >> format.fraction_bits) & all_ones;
  const int fraction = bits & ((1 << format.fraction_bits) - 1);
  double size;
  if (exponent == all_ones) {
    size = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    size = ldexp(fraction, 1 - bias_of(format) - format.fraction_bits);
  } else {
    size = ldexp(fraction + (1 << format.fraction_bits),
                 exponent - bias_of(format) - format.fraction_bits);
  }
  return (bits & 0x8000U) != 0 ? -size : size;
}

// Rounds `size` to an integer number of units of its last place; the integer is the bit pattern,
// since a carry out of the fraction is the next exponent.
static uint16_t short_float_encode(short_float format, double value)
{
  const unsigned sign = signbit(value) ? 0x8000U : 0;
  const unsigned infinity = ((1U << format.exponent_bits) - 1) << format.fraction_bits;
  if (isnan(value)) {
    return (uint16_t)(infinity | 1U);
  }
  const double size = fabs(value);
  int exponent = 0;
  frexp(size, &exponent);
  int biased = exponent - 1 + bias_of(format);
  biased = size == 0 || biased < 1 ? 1 : biased;
  if (isinf(size) || biased > 2 * bias_of(format)) {
    return (uint16_t)(sign | infinity);
  }
  const double units = rint(ldexp(size, format.fraction_bits + bias_of(format) - biased));
  return (uint16_t)(sign | (((unsigned)(biased - 1) << format.fraction_bits) + (unsigned)units));
}

double dtype_load(rft_dtype dtype, const unsigned char *address)
{
  union {
    uint16_t half;
    float single;
    double wide;
    int32_t int32;
    int64_t int64;
  } u;
  memcpy(&u, address, dtype.bits / 8U);
  switch (dtype.code) {
  case RFT_DTYPE_FLOAT:
    if (dtype.bits != 16) {
      return dtype.bits == 32 ? u.single : u.wide;
    }
    return short_float_decode(short_float_of(dtype), u.half);
  case RFT_DTYPE_BFLOAT:
    return short_float_decode(short_float_of(dtype), u.half);
  case RFT_DTYPE_INT:
    return dtype.bits == 8 ? (signed char)*address : dtype.bits == 32 ? u.int32 : (double)u.int64;
  default:
    return *address;
  }
}

void dtype_store(rft_dtype dtype, unsigned char *address, double value)
{
  union {
    unsigned char bytes[8];
    uint16_t half;
    float single;
    double wide;
    int32_t int32;
    int64_t int64;
  } u = {{0}};
  if (dtype.code == RFT_DTYPE_BFLOAT || (dtype.code == RFT_DTYPE_FLOAT && dtype.bits == 16)) {
    u.half = short_float_encode(short_float_of(dtype), value);
  } else if (dtype.code == RFT_DTYPE_FLOAT && dtype.bits == 32) {
    u.single = (float)value;
  } else if (dtype.code == RFT_DTYPE_FLOAT) {
    u.wide = value;
  } else if (dtype.bits == 64) {
    u.int64 = (int64_t)value;
  } else if (dtype.bits == 32) {
    u.int32 = (int32_t)value;
  } else {
    u.bytes[0] = (unsigned char)(int)value;
  }
  memcpy(address, u.bytes, dtype.bits / 8U);
}

double dtype_round(rft_dtype dtype, double value)
{
  unsigned char bytes[8];
  dtype_store(dtype, bytes, value);
  return dtype_load(dtype, bytes);
}

int64_t dtype_size(rft_dtype dtype)
{
  return dtype.bits / 8;
}
