// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "schema.h"

#include "error.h"
#include "json.h"
#include "phrase.h"
#include "schema_document.h"
#include "schema_phrase.h"

#include <stdbool.h>
#include <string.h>

// ------------------------------------------------------------------------------------------ bounds

static bool holds(const rft_schema_bound *kind, double value, double limit)
{
  const bool equal_allowed = kind->sign[1] == '=';
  const bool lower = kind->sign[0] == '>';
  return lower ? value > limit || (equal_allowed && value == limit)
               : value < limit || (equal_allowed && value == limit);
}

static bool within_bounds(const json_t *property, const json_t *value)
{
  for (int i = 0; i < RFT_SCHEMA_BOUND_COUNT; ++i) {
    const json_t *const limit = json_object_get(property, rft_schema_bounds[i].keyword);
    if (limit != NULL &&
        !holds(&rft_schema_bounds[i], json_number_value(value), json_number_value(limit))) {
      return false;
    }
  }
  return true;
}

// ------------------------------------------------------------------------------------------ values

#define BEYOND_INT64 9223372036854775808.0

// JSON Schema: 1.0 is an integer.
static bool is_integral(const json_t *value)
{
  if (json_is_integer(value)) {
    return true;
  }
  const double number = json_real_value(value);
  return json_is_real(value) && number >= -BEYOND_INT64 && number < BEYOND_INT64 &&
         (double)(json_int_t)number == number;
}

static bool is_of_type(const json_t *value, const char *type)
{
  return strcmp(type, "number") == 0    ? json_is_number(value)
         : strcmp(type, "integer") == 0 ? is_integral(value)
         : strcmp(type, "string") == 0  ? json_is_string(value)
         : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
                                        : json_is_null(value);
}

static bool is_of_listed_type(const json_t *property, const json_t *value)
{
  for (size_t i = 0; i < rft_schema_type_count(property); ++i) {
    if (is_of_type(value, rft_schema_type(property, i))) {
      return true;
    }
  }
  return false;
}

static bool is_same(const json_t *a, const json_t *b)
{
  return json_is_number(a) && json_is_number(b) ? json_number_value(a) == json_number_value(b)
                                                : json_equal(a, b) != 0;
}

static bool is_listed(const json_t *choices, const json_t *value)
{
  for (size_t i = 0; i < json_array_size(choices); ++i) {
    if (is_same(json_array_get(choices, i), value)) {
      return true;
    }
  }
  return false;
}

static bool is_accepted(const json_t *property, const json_t *value)
{
  const json_t *const choices = json_object_get(property, "enum");
  return is_of_listed_type(property, value) && (choices == NULL || is_listed(choices, value)) &&
         (!json_is_number(value) || within_bounds(property, value));
}

// -------------------------------------------------------------------------------------------- keys

static int32_t fail_value(const char *subject, int32_t code, const char *key,
                          const json_t *property, const json_t *value, rft_error *error)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  char found[RFT_JSON_BRIEF_SIZE];
  char expected[RFT_SCHEMA_PHRASE_SIZE];
  return rft_fail(error, code, "%s %s: expected %s, found %s", subject, rft_json_quote(quoted, key),
                  rft_schema_phrase(expected, property), rft_json_brief(found, value));
}

// Whether every name, quoted, fits beside the rest of a message.
static bool list_names(char names[RFT_ERROR_MESSAGE_SIZE], const json_t *object)
{
  rft_phrase out = rft_phrase_in(names, RFT_ERROR_MESSAGE_SIZE - 2 * RFT_JSON_BRIEF_SIZE);
  char quoted[RFT_JSON_BRIEF_SIZE];
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)object, key, value)
  {
    rft_phrase_add(&out, "%s%s", out.length == 0 ? "" : ", ", rft_json_quote(quoted, key));
  }
  return !out.cut;
}

static int32_t fail_unknown(const char *key, const json_t *properties, rft_error *error)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  rft_json_quote(quoted, key);
  const char *const nearest = rft_nearest_name(properties, key);
  if (nearest != NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "config key %s is not known: the nearest known key is \"%s\"", quoted, nearest);
  }
  char names[RFT_ERROR_MESSAGE_SIZE];
  if (list_names(names, properties)) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "config key %s is not known: the known keys are %s", quoted, names);
  }
  return rft_fail(error, RFT_INVALID_ARGUMENT, "config key %s is not known", quoted);
}

static int32_t check_defaults(const json_t *properties, rft_error *error)
{
  const char *key = NULL;
  json_t *property = NULL;
  json_object_foreach((json_t *)properties, key, property)
  {
    const json_t *const value = json_object_get(property, "default");
    if (!is_accepted(property, value)) {
      return fail_value("config schema, default of", RFT_INTERNAL, key, property, value, error);
    }
  }
  return RFT_OK;
}

static int32_t check_config(const json_t *properties, const json_t *config, rft_error *error)
{
  if (!json_is_object(config)) {
    char found[RFT_JSON_BRIEF_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT, "config: expected an object, found %s",
                    rft_json_brief(found, config));
  }
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)config, key, value)
  {
    const json_t *const property = json_object_get(properties, key);
    if (property == NULL) {
      return fail_unknown(key, properties, error);
    }
    if (!is_accepted(property, value)) {
      return fail_value("config key", RFT_INVALID_ARGUMENT, key, property, value, error);
    }
  }
  return RFT_OK;
}

// -------------------------------------------------------------------------------------- completing

// One form for each type, so that a reader needs no rule of its own: 1 becomes 1.0 where a number
// is wanted, and 1.0 becomes 1 where an integer is.
static json_t *in_one_form(const json_t *property, json_t *value)
{
  bool number = false;
  for (size_t i = 0; i < rft_schema_type_count(property); ++i) {
    number = number || strcmp(rft_schema_type(property, i), "number") == 0;
  }
  if (json_is_integer(value) && number) {
    return json_real(json_number_value(value));
  }
  if (json_is_real(value) && !number) {
    return json_integer((json_int_t)json_real_value(value));
  }
  return json_incref(value);
}

static int32_t complete(const json_t *properties, const json_t *config, json_t **resolved,
                        rft_error *error)
{
  json_t *const filled = json_object();
  bool failed = filled == NULL;
  const char *key = NULL;
  json_t *property = NULL;
  json_object_foreach((json_t *)properties, key, property)
  {
    json_t *const given = json_object_get(config, key);
    json_t *const value = given != NULL ? given : json_object_get(property, "default");
    failed = failed || json_object_set_new(filled, key, in_one_form(property, value)) != 0;
  }
  if (failed) {
    json_decref(filled);
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "config: out of memory");
  }
  *resolved = filled;
  return RFT_OK;
}

static int32_t resolve(const json_t *properties, const json_t *config, json_t **resolved,
                       rft_error *error)
{
  int32_t code = check_defaults(properties, error);
  if (code == RFT_OK) {
    code = check_config(properties, config, error);
  }
  return code == RFT_OK ? complete(properties, config, resolved, error) : code;
}

int32_t rft_schema_resolve(const char *schema, const char *config, int64_t length,
                           json_t **resolved, json_t **given, rft_error *error)
{
  json_t *document = NULL;
  int32_t code = rft_schema_load(schema, &document, error);
  if (code != RFT_OK) {
    return code;
  }
  json_t *parsed = NULL;
  code = length == 0 ? rft_json_parse("config", "{}", 2, &parsed, error)
                     : rft_json_parse("config", config, length, &parsed, error);
  if (code == RFT_OK) {
    code = resolve(json_object_get(document, "properties"), parsed, resolved, error);
  }
  json_decref(document);
  if (code == RFT_OK && given != NULL) {
    *given = parsed;
  } else {
    json_decref(parsed);
  }
  return code;
}
