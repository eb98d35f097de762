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

static double widen_float16(uint16_t bits)
{
  const int exponent = (bits >> FLOAT16_FRACTION) & FLOAT16_INFINITY;
  const int fraction = bits & ((1 << FLOAT16_FRACTION) - 1);
  const double sign = (bits >> 15) != 0 ? -1.0 : 1.0;
  if (exponent == FLOAT16_INFINITY) {
    return fraction != 0 ? NAN : sign * INFINITY;
  }
  const int implicit = exponent == 0 ? 0 : 1 << FLOAT16_FRACTION;
  const int scale = (exponent == 0 ? 1 : exponent) - FLOAT16_BIAS - FLOAT16_FRACTION;
  return sign * ldexp(implicit + fraction, scale);
}

static double widen_bfloat16(uint16_t bits)
{
  const uint32_t wide = (uint32_t)bits << BFLOAT16_SHIFT;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

// memcpy: an odd byte_offset or stride may leave elements unaligned.
#define LOAD(type, address)                                                                        \
  __extension__({                                                                                  \
    type load_value;                                                                               \
    memcpy(&load_value, address, sizeof load_value);                                               \
    load_value;                                                                                    \
  })

double m2po_element_load(m2po_element element, const unsigned char *address)
{
  switch (element) {
  case M2PO_BOOL:
  case M2PO_UINT8:
    return *address;
  case M2PO_INT8:
    return LOAD(int8_t, address);
  case M2PO_INT32:
    return LOAD(int32_t, address);
  case M2PO_INT64:
    return (double)LOAD(int64_t, address);
  case M2PO_FLOAT16:
    return widen_float16(LOAD(uint16_t, address));
  case M2PO_BFLOAT16:
    return widen_bfloat16(LOAD(uint16_t, address));
  case M2PO_FLOAT32:
    return LOAD(float, address);
  case M2PO_FLOAT64:
    return LOAD(double, address);
  case M2PO_UNSUPPORTED:
    break;
  }
  return NAN;
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

void m2po_element_store(m2po_element element, unsigned char *address, double value)
{
  switch (element) {
  case M2PO_FLOAT16:
    memcpy(address, &(uint16_t){float16_bits(value)}, sizeof(uint16_t));
    break;
  case M2PO_BFLOAT16:
    memcpy(address, &(uint16_t){bfloat16_bits(value)}, sizeof(uint16_t));
    break;
  case M2PO_FLOAT32:
    memcpy(address, &(float){(float)value}, sizeof(float));
    break;
  case M2PO_FLOAT64:
    memcpy(address, &value, sizeof value);
    break;
  default:
    *address = value != 0 ? 1 : 0;
    break;
  }
}
