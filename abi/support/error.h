// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Error and number text, shared by librft_host and by plugins that link it.

#ifndef RFT_SUPPORT_ERROR_H
#define RFT_SUPPORT_ERROR_H

#include "rft/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RFT_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define RFT_PRINTF(text, first)
#endif

/// Fills `error` (may be NULL) as far as its struct_size reaches, and returns `code`. A message too
/// long is cut before a whole UTF-8 character. Format doubles with rft_number_text.
int32_t rft_fail(rft_error *error, int32_t code, const char *format, ...) RFT_PRINTF(3, 4);

#define RFT_NUMBER_TEXT_SIZE 32

/// The shortest text that reads back as `value`, with '.' whatever the locale; "nan", "inf",
/// "-inf".
const char *rft_number_text(char text[RFT_NUMBER_TEXT_SIZE], double value);

#ifdef __cplusplus
}
#endif

#endif // RFT_SUPPORT_ERROR_H
