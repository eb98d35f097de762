// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "name.h"

#include <stddef.h>

static bool is_letter(char c)
{
  return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

bool rft_is_name(const char *text)
{
  if (text == NULL || !is_letter(text[0])) {
    return false;
  }
  for (; *text != '\0'; ++text) {
    if (!is_letter(*text) && !is_digit(*text) && *text != '_') {
      return false;
    }
  }
  return true;
}

bool rft_is_plugin_id(const char *text)
{
  if (text == NULL) {
    return false;
  }
  bool dotted = false;
  char previous = '.';
  for (; *text != '\0'; previous = *text++) {
    const char c = *text;
    const bool dot = c == '.' && previous != '.';
    dotted = dotted || dot;
    if (!dot && !is_letter(c) && !(c >= 'A' && c <= 'Z') && !is_digit(c) && c != '-' && c != '_') {
      return false;
    }
  }
  return dotted && previous != '.';
}
