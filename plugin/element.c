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

m2po_element m2po_element_of(rft_dtype dtype)
{
  static const struct {
    uint8_t code, bits;
    m2po_element element;
  } known[] = {
      {RFT_DTYPE_BOOL, 8, M2PO_BOOL},        {RFT_DTYPE_INT, 8, M2PO_INT8},
      {RFT_DTYPE_UINT, 8, M2PO_UINT8},       {RFT_DTYPE_INT, 32, M2PO_INT32},
      {RFT_DTYPE_INT, 64, M2PO_INT64},       {RFT_DTYPE_FLOAT, 16, M2PO_FLOAT16},
      {RFT_DTYPE_BFLOAT, 16, M2PO_BFLOAT16}, {RFT_DTYPE_FLOAT, 32, M2PO_FLOAT32},
      {RFT_DTYPE_FLOAT, 64, M2PO_FLOAT64},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
    if (known[i].code == dtype.code && known[i].bits == dtype.bits && dtype.lanes == 1) {
      return known[i].element;
    }
  }
  return M2PO_UNSUPPORTED;
}

int64_t m2po_element_size(m2po_element element)
{
  switch (element) {
  case M2PO_BOOL:
  case M2PO_INT8:
  case M2PO_UINT8:
    return 1;
  case M2PO_FLOAT16:
  case M2PO_BFLOAT16:
    return 2;
  case M2PO_INT32:
  case M2PO_FLOAT32:
    return 4;
  case M2PO_INT64:
  case M2PO_FLOAT64:
    return 8;
  case M2PO_UNSUPPORTED:
    break;
  }
  return 0;
}

bool m2po_element_is_float(m2po_element element)
{
  return element >= M2PO_FLOAT16;
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

// One loop a type, and a second one for elements side by side, which the compiler turns into vector
// instructions. memcpy: an odd byte_offset or stride may leave elements unaligned.
#define LOAD(type, widen)                                                                          \
  do {                                                                                             \
    if (stride == sizeof(type)) {                                                                  \
      for (int64_t i = 0; i < count; ++i) {                                                        \
        type element_value;                                                                        \
        memcpy(&element_value, address + i * (int64_t)sizeof(type), sizeof element_value);         \
        values[i] = widen(element_value);                                                          \
      }                                                                                            \
    } else {                                                                                       \
      for (int64_t i = 0; i < count; ++i) {                                                        \
        type element_value;                                                                        \
        memcpy(&element_value, address + i * stride, sizeof element_value);                        \
        values[i] = widen(element_value);                                                          \
      }                                                                                            \
    }                                                                                              \
  } while (0)

void m2po_element_load(m2po_element element, const unsigned char *address, int64_t stride,
                       int64_t count, double *values)
{
  switch (element) {
  case M2PO_BOOL:
  case M2PO_UINT8:
    LOAD(uint8_t, as_is);
    break;
  case M2PO_INT8:
    LOAD(int8_t, as_is);
    break;
  case M2PO_INT32:
    LOAD(int32_t, as_is);
    break;
  case M2PO_INT64:
    LOAD(int64_t, (double));
    break;
  case M2PO_FLOAT16:
    LOAD(uint16_t, widen_float16);
    break;
  case M2PO_BFLOAT16:
    LOAD(uint16_t, widen_bfloat16);
    break;
  case M2PO_FLOAT32:
    LOAD(float, as_is);
    break;
  case M2PO_FLOAT64:
    LOAD(double, as_is);
    break;
  case M2PO_UNSUPPORTED:
    break;
  }
}

int64_t m2po_element_load_integer(m2po_element element, const unsigned char *address)
{
  int64_t wide;
  int32_t narrow;
  if (element == M2PO_INT64) {
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

double m2po_element_round(m2po_element element, double value)
{
  switch (element) {
  case M2PO_FLOAT16:
    return round_to(&float16_format, value);
  case M2PO_BFLOAT16:
    return round_to(&bfloat16_format, value);
  case M2PO_FLOAT32:
    return (float)value;
  default:
    return value;
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
  return bfloat16_bits(round_to(&bfloat16_format, value));
}

// As LOAD, the other way.
#define STORE(type, narrow)                                                                        \
  do {                                                                                             \
    if (stride == sizeof(type)) {                                                                  \
      for (int64_t i = 0; i < count; ++i) {                                                        \
        const type element_value = (type)narrow(values[i]);                                        \
        memcpy(address + i * (int64_t)sizeof(type), &element_value, sizeof element_value);         \
      }                                                                                            \
    } else {                                                                                       \
      for (int64_t i = 0; i < count; ++i) {                                                        \
        const type element_value = (type)narrow(values[i]);                                        \
        memcpy(address + i * stride, &element_value, sizeof element_value);                        \
      }                                                                                            \
    }                                                                                              \
  } while (0)

void m2po_element_store(m2po_element element, unsigned char *address, int64_t stride, int64_t count,
                        const double *values)
{
  switch (element) {
  case M2PO_FLOAT16:
    STORE(uint16_t, narrow_float16);
    break;
  case M2PO_BFLOAT16:
    STORE(uint16_t, narrow_bfloat16);
    break;
  case M2PO_FLOAT32:
    STORE(float, as_is);
    break;
  case M2PO_FLOAT64:
    STORE(double, as_is);
    break;
  default:
    break;
  }
}
