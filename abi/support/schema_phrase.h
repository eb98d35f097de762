// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a property of a schema accepts, in words.

#ifndef RFT_SUPPORT_SCHEMA_PHRASE_H
#define RFT_SUPPORT_SCHEMA_PHRASE_H

#include <jansson.h>

/// The bounds of JSON Schema, and the sign that each is written with.
enum { RFT_SCHEMA_BOUND_COUNT = 4 };
typedef struct rft_schema_bound {
  const char *keyword;
  const char *sign;
} rft_schema_bound;
extern const rft_schema_bound rft_schema_bounds[RFT_SCHEMA_BOUND_COUNT];

#define RFT_SCHEMA_PHRASE_SIZE 320

/// "a number >= 0 or null", `one of "at_most", "below"`. What doesn't fit is cut.
const char *rft_schema_phrase(char text[RFT_SCHEMA_PHRASE_SIZE], const json_t *property);

#endif // RFT_SUPPORT_SCHEMA_PHRASE_H
