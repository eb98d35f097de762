// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "schema_phrase.h"

#include "error.h"
#include "json.h"
#include "phrase.h"
#include "schema_document.h"

#include <string.h>

const rft_schema_bound rft_schema_bounds[RFT_SCHEMA_BOUND_COUNT] = {
    {"minimum", ">="}, {"exclusiveMinimum", ">"}, {"maximum", "<="}, {"exclusiveMaximum", "<"}};

static void add_bounds(rft_phrase *out, const json_t *property)
{
  const char *joint = " ";
  char number[RFT_NUMBER_TEXT_SIZE];
  for (int i = 0; i < RFT_SCHEMA_BOUND_COUNT; ++i) {
    const json_t *const limit = json_object_get(property, rft_schema_bounds[i].keyword);
    if (limit != NULL) {
      rft_phrase_add(out, "%s%s %s", joint, rft_schema_bounds[i].sign,
                     rft_number_text(number, json_number_value(limit)));
      joint = " and ";
    }
  }
}

static void add_type(rft_phrase *out, const json_t *property, const char *type)
{
  if (strcmp(type, "null") == 0) {
    rft_phrase_add(out, "null");
  } else if (strcmp(type, "boolean") == 0) {
    rft_phrase_add(out, "true or false");
  } else if (strcmp(type, "string") == 0) {
    rft_phrase_add(out, "a string");
  } else {
    rft_phrase_add(out, "%s", strcmp(type, "integer") == 0 ? "an integer" : "a number");
    add_bounds(out, property);
  }
}

static void add_choices(rft_phrase *out, const json_t *choices)
{
  char part[RFT_JSON_BRIEF_SIZE];
  rft_phrase_add(out, "one of ");
  for (size_t i = 0; i < json_array_size(choices); ++i) {
    const json_t *const choice = json_array_get(choices, i);
    rft_phrase_add(out, "%s%s", i == 0 ? "" : ", ",
                   json_is_string(choice) ? rft_json_quote(part, json_string_value(choice))
                                          : rft_json_brief(part, choice));
  }
}

const char *rft_schema_phrase(char text[RFT_SCHEMA_PHRASE_SIZE], const json_t *property)
{
  rft_phrase out = rft_phrase_in(text, RFT_SCHEMA_PHRASE_SIZE);
  const json_t *const choices = json_object_get(property, "enum");
  if (choices != NULL) {
    add_choices(&out, choices);
    return text;
  }
  for (size_t i = 0; i < rft_schema_type_count(property); ++i) {
    rft_phrase_add(&out, "%s", i == 0 ? "" : " or ");
    add_type(&out, property, rft_schema_type(property, i));
  }
  return text;
}
