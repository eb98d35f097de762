// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Text put together piece by piece in the caller's buffer.

#ifndef RFT_SUPPORT_PHRASE_H
#define RFT_SUPPORT_PHRASE_H

#include "error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct rft_phrase {
  char *text;
  size_t size;
  size_t length;
  bool cut; ///< something didn't fit
} rft_phrase;

static inline rft_phrase rft_phrase_in(char *text, size_t size)
{
  text[0] = '\0';
  return (rft_phrase){.text = text, .size = size};
}

static inline void rft_phrase_add(rft_phrase *phrase, const char *format, ...) RFT_PRINTF(2, 3);

static inline void rft_phrase_add(rft_phrase *phrase, const char *format, ...)
{
  const size_t room = phrase->size - phrase->length;
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(phrase->text + phrase->length, room, format, arguments);
  va_end(arguments);
  phrase->cut = phrase->cut || length < 0 || (size_t)length >= room;
  phrase->length += strlen(phrase->text + phrase->length);
}

#endif // RFT_SUPPORT_PHRASE_H
