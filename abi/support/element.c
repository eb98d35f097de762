// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "element.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BFLOAT16_SHIFT = 16, FLOAT16_FRACTION = 10, FLOAT16_BIAS = 15, FLOAT16_INFINITY = 31 };

// A float type by its precision (bits of the mantissa with the leading one) and exponent range.
typedef struct float_format {
  int precision;
  int least_exponent; ///< of the smallest normal value
  double largest;
} float_format;

static const float_format float16_format = {11, -14, 65504.0};
static const float_format bfloat16_format = {8, -126, 0x1.FEp127};

rft_element rft_element_of(rft_dtype dtype)
{
  static const struct {
    uint8_t code, bits;
    rft_element element;
  } known[] = {
      {RFT_DTYPE_BOOL, 8, RFT_ELEMENT_BOOL},        {RFT_DTYPE_INT, 8, RFT_ELEMENT_INT8},
      {RFT_DTYPE_UINT, 8, RFT_ELEMENT_UINT8},       {RFT_DTYPE_INT, 32, RFT_ELEMENT_INT32},
      {RFT_DTYPE_INT, 64, RFT_ELEMENT_INT64},       {RFT_DTYPE_FLOAT, 16, RFT_ELEMENT_FLOAT16},
      {RFT_DTYPE_BFLOAT, 16, RFT_ELEMENT_BFLOAT16}, {RFT_DTYPE_FLOAT, 32, RFT_ELEMENT_FLOAT32},
      {RFT_DTYPE_FLOAT, 64, RFT_ELEMENT_FLOAT64},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
    if (known[i].code == dtype.code && known[i].bits == dtype.bits && dtype.lanes == 1) {
      return known[i].element;
    }
  }
  return RFT_ELEMENT_UNSUPPORTED;
}

int64_t rft_element_size(rft_element element)
{
  switch (element) {
  case RFT_ELEMENT_BOOL:
  case RFT_ELEMENT_INT8:
  case RFT_ELEMENT_UINT8:
    return 1;
  case RFT_ELEMENT_FLOAT16:
  case RFT_ELEMENT_BFLOAT16:
    return 2;
  case RFT_ELEMENT_INT32:
  case RFT_ELEMENT_FLOAT32:
    return 4;
  case RFT_ELEMENT_INT64:
  case RFT_ELEMENT_FLOAT64:
    return 8;
  case RFT_ELEMENT_UNSUPPORTED:
    break;
  }
  return 0;
}

bool rft_element_is_float(rft_element element)
{
  return element >= RFT_ELEMENT_FLOAT16;
}

// A float16's bits, moved to where a float32 has them, are the value times 2^-112; the exponent of
// infinity and NaN has to be filled up.
static double widen_float16(uint16_t half)
{
  const bool finite = ((half >> FLOAT16_FRACTION) & FLOAT16_INFINITY) != FLOAT16_INFINITY;
  const uint32_t bits = ((uint32_t)(half & 0x7FFF) << 13) | (finite ? 0 : 0x7F800000U);
  float value;
  memcpy(&value, &bits, sizeof value);
  const double size = (double)value * 0x1p112;
  return (half >> 15) != 0 ? -size : size;
}

static double widen_bfloat16(uint16_t half)
{
  const uint32_t bits = (uint32_t)half << BFLOAT16_SHIFT;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double as_is(double value)
{
  return value;
}

// Loads of one type, with a loop of its own for elements side by side, which the compiler turns
// into vector instructions. memcpy: an odd byte_offset or stride may leave elements unaligned.
#define LOADER(name, type, widen)                                                                  \
  static void load_##name(const unsigned char *address, int64_t stride, int64_t count,             \
                          double *values)                                                          \
  {                                                                                                \
    const int64_t step = sizeof(type);                                                             \
    type element;                                                                                  \
    for (int64_t i = 0; stride == step && i < count; ++i) {                                        \
      memcpy(&element, address + i * step, sizeof element);                                        \
      values[i] = widen(element);                                                                  \
    }                                                                                              \
    for (int64_t i = 0; stride != step && i < count; ++i) {                                        \
      memcpy(&element, address + i * stride, sizeof element);                                      \
      values[i] = widen(element);                                                                  \
    }                                                                                              \
  }

LOADER(uint8, uint8_t, as_is)
LOADER(int8, int8_t, as_is)
LOADER(int32, int32_t, as_is)
LOADER(int64, int64_t, (double))
LOADER(float16, uint16_t, widen_float16)
LOADER(bfloat16, uint16_t, widen_bfloat16)
LOADER(float32, float, as_is)
LOADER(float64, double, as_is)

void rft_element_load(rft_element element, const unsigned char *address, int64_t stride,
                      int64_t count, double *values)
{
  static void (*const loaders[])(const unsigned char *, int64_t, int64_t, double *) = {
      [RFT_ELEMENT_BOOL] = load_uint8,        [RFT_ELEMENT_INT8] = load_int8,
      [RFT_ELEMENT_UINT8] = load_uint8,       [RFT_ELEMENT_INT32] = load_int32,
      [RFT_ELEMENT_INT64] = load_int64,       [RFT_ELEMENT_FLOAT16] = load_float16,
      [RFT_ELEMENT_BFLOAT16] = load_bfloat16, [RFT_ELEMENT_FLOAT32] = load_float32,
      [RFT_ELEMENT_FLOAT64] = load_float64,
  };
  loaders[element](address, stride, count, values);
}

int64_t rft_element_load_integer(rft_element element, const unsigned char *address)
{
  int64_t wide;
  int32_t narrow;
  if (element == RFT_ELEMENT_INT64) {
    memcpy(&wide, address, sizeof wide);
    return wide;
  }
  memcpy(&narrow, address, sizeof narrow);
  return narrow;
}

// Rounds to the format's spacing at this size by adding and taking away a power of two so large
// that the sum has just the digits that are kept.
static double round_to(const float_format *format, double value)
{
  const double size = fabs(value);
  if (!(size <= format->largest * 2)) { // infinity, NaN, and what becomes infinity
    return isnan(value) ? value : copysign(INFINITY, value);
  }
  int exponent;
  frexp(size, &exponent);
  const int lead = exponent - 1 > format->least_exponent ? exponent - 1 : format->least_exponent;
  const double magic = ldexp(1.0, lead - (format->precision - 1) + DBL_MANT_DIG - 1);
  const double rounded = (size + magic) - magic;
  return copysign(rounded > format->largest ? INFINITY : rounded, value);
}

double rft_element_round(rft_element element, double value)
{
  switch (element) {
  case RFT_ELEMENT_FLOAT16:
    return round_to(&float16_format, value);
  case RFT_ELEMENT_BFLOAT16:
    return round_to(&bfloat16_format, value);
  case RFT_ELEMENT_FLOAT32:
    return (float)value;
  default:
    return value;
  }
}

double rft_element_overflow(rft_element element)
{
  // Half a unit in the last place beyond the largest, where the tie goes to infinity, which is
  // even.
  switch (element) {
  case RFT_ELEMENT_FLOAT16:
    return 65520.0;
  case RFT_ELEMENT_BFLOAT16:
    return 0x1.FFp127;
  case RFT_ELEMENT_FLOAT32:
    return 0x1.FFFFFFp127;
  default:
    return INFINITY;
  }
}

static uint16_t float16_bits(double value)
{
  const uint16_t sign = signbit(value) ? 0x8000U : 0;
  const double size = fabs(value);
  if (size > float16_format.largest) {
    return (uint16_t)(sign | (FLOAT16_INFINITY << FLOAT16_FRACTION));
  }
  int exponent;
  frexp(size, &exponent);
  const int lead = exponent - 1;
  if (size == 0 || lead < float16_format.least_exponent) {
    // Subnormal: an integer in units of the smallest value.
    return (uint16_t)(sign | (int)ldexp(size, FLOAT16_FRACTION - float16_format.least_exponent));
  }
  // The leading one carries into the exponent field, hence the bias less one.
  const int mantissa = (int)ldexp(size, FLOAT16_FRACTION - lead);
  return (uint16_t)(sign | (((lead + FLOAT16_BIAS - 1) << FLOAT16_FRACTION) + mantissa));
}

static uint16_t bfloat16_bits(double value)
{
  const float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return (uint16_t)(bits >> BFLOAT16_SHIFT);
}

static uint16_t narrow_float16(double value)
{
  return float16_bits(round_to(&float16_format, value));
}

static uint16_t narrow_bfloat16(double value)
{
  const float narrow = (float)value;
  if ((double)narrow == value) { // the usual case: rounded by its bits, ties to even
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    const uint32_t last = (bits >> BFLOAT16_SHIFT) & 1;
    return (uint16_t)((bits + 0x7FFF + last) >> BFLOAT16_SHIFT);
  }
  return bfloat16_bits(round_to(&bfloat16_format, value));
}

// As LOADER, the other way.
#define STORER(name, type, narrow)                                                                 \
  static void store_##name(unsigned char *address, int64_t stride, int64_t count,                  \
                           const double *values)                                                   \
  {                                                                                                \
    const int64_t step = sizeof(type);                                                             \
    for (int64_t i = 0; stride == step && i < count; ++i) {                                        \
      const type element = (type)narrow(values[i]);                                                \
      memcpy(address + i * step, &element, sizeof element);                                        \
    }                                                                                              \
    for (int64_t i = 0; stride != step && i < count; ++i) {                                        \
      const type element = (type)narrow(values[i]);                                                \
      memcpy(address + i * stride, &element, sizeof element);                                      \
    }                                                                                              \
  }

STORER(float16, uint16_t, narrow_float16)
STORER(bfloat16, uint16_t, narrow_bfloat16)
STORER(float32, float, as_is)
STORER(float64, double, as_is)

void rft_element_store(rft_element element, unsigned char *address, int64_t stride, int64_t count,
                       const double *values)
{
  static void (*const storers[])(unsigned char *, int64_t, int64_t, const double *) = {
      [RFT_ELEMENT_FLOAT16] = store_float16,
      [RFT_ELEMENT_BFLOAT16] = store_bfloat16,
      [RFT_ELEMENT_FLOAT32] = store_float32,
      [RFT_ELEMENT_FLOAT64] = store_float64,
  };
  storers[element](address, stride, count, values);
}
