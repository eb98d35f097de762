// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// JSON text in and out, the same in every locale, with errors in the project's form.

#ifndef RFT_SUPPORT_JSON_H
#define RFT_SUPPORT_JSON_H

#include "rft/plugin.h"

#include <jansson.h>

/// Parses `length` bytes of JSON text: any value, no duplicated key, nothing after it. `what` names
/// the text in the message ("config"). The caller owns *value. RFT_INVALID_ARGUMENT says where and
/// why.
int32_t rft_json_parse(const char *what, const char *text, int64_t length, json_t **value,
                       rft_error *error);

/// The text of `value`, with every number in its shortest form that reads back as the same value,
/// or null where a number is not finite. `indent`: spaces a level, 0 for one line. Free with
/// free(); NULL when out of memory.
char *rft_json_text(const json_t *value, int indent);

/// Likewise, and frees `value`, which may be NULL: then memory ran out while it was made.
int32_t rft_json_take_text(json_t *value, int indent, char **text, rft_error *error);

#define RFT_JSON_BRIEF_SIZE 64

/// A value in few words for a message: `the string "0.04"`, `the number -1`, `null`, `an array`.
/// Long strings are cut.
const char *rft_json_brief(char text[RFT_JSON_BRIEF_SIZE], const json_t *value);

/// A name in quotes for a message, control characters made visible, cut when long.
const char *rft_json_quote(char text[RFT_JSON_BRIEF_SIZE], const char *name);

#endif // RFT_SUPPORT_JSON_H
