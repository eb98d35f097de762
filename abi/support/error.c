// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "error.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Cuts a partial UTF-8 character off the end of a truncated message.
static void trim_utf8(char *message, size_t length)
{
  size_t start = length;
  while (start > 0 && ((unsigned char)message[start - 1] & 0xC0U) == 0x80U) {
    --start;
  }
  if (start == 0) {
    return;
  }
  const unsigned char lead = (unsigned char)message[start - 1];
  const size_t whole = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : lead >= 0xC0U ? 2 : 1;
  if (length - (start - 1) < whole) {
    message[start - 1] = '\0';
  }
}

int32_t rft_fail(rft_error *error, int32_t code, const char *format, ...)
{
  if (error == NULL || !RFT_HAS_FIELD(error, rft_error, message)) {
    return code;
  }
  error->code = code;
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  if (length < 0) {
    error->message[0] = '\0';
  } else if ((size_t)length >= sizeof error->message) {
    trim_utf8(error->message, sizeof error->message - 1);
  }
  return code;
}

// snprintf writes the locale's decimal point: whatever stands between the digits, of any length.
static void use_plain_point(char *text)
{
  static const char plain[] = "0123456789+-e";
  char *const point = text + strspn(text, plain);
  if (*point == '\0') {
    return;
  }
  char *rest = point;
  while (*rest != '\0' && strchr(plain, *rest) == NULL) {
    ++rest;
  }
  *point = '.';
  memmove(point + 1, rest, strlen(rest) + 1);
}

const char *rft_number_text(char text[RFT_NUMBER_TEXT_SIZE], double value)
{
  if (isnan(value)) {
    return strcpy(text, "nan");
  }
  if (isinf(value)) {
    return strcpy(text, value > 0 ? "inf" : "-inf");
  }
  if (fabs(value) < 1e15 && value == trunc(value)) {
    snprintf(text, RFT_NUMBER_TEXT_SIZE, "%.0f", value); // %g would write 720 as 7.2e+02
    return text;
  }
  for (int digits = 1; digits <= DBL_DECIMAL_DIG; ++digits) {
    snprintf(text, RFT_NUMBER_TEXT_SIZE, "%.*g", digits, value);
    if (strtod(text, NULL) == value) {
      break;
    }
  }
  use_plain_point(text);
  return text;
}
