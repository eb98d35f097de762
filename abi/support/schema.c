// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "schema.h"

#include "error.h"
#include "json.h"
#include "schema_document.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// ------------------------------------------------------------------------------------------
// phrases

// Text put together piece by piece; what doesn't fit is left out and `complete` is false.
typedef struct phrase {
  char text[RFT_ERROR_MESSAGE_SIZE];
  size_t length;
  bool complete;
} phrase;

static void append(phrase *out, const char *format, ...) RFT_PRINTF(2, 3);

static void append(phrase *out, const char *format, ...)
{
  const size_t room = sizeof out->text - out->length;
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(out->text + out->length, room, format, arguments);
  va_end(arguments);
  out->complete = out->complete && length >= 0 && (size_t)length < room;
  out->length = strlen(out->text);
}

static void append_names(phrase *out, const json_t *object)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  const char *separator = "";
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)object, key, value)
  {
    append(out, "%s%s", separator, rft_json_quote(quoted, key));
    separator = ", ";
  }
}

// ----------------------------------------------------------------------------------------- bounds

typedef struct bound {
  const char *keyword;
  const char *sign;
} bound;

static const bound BOUNDS[] = {
    {"minimum", ">="}, {"exclusiveMinimum", ">"}, {"maximum", "<="}, {"exclusiveMaximum", "<"}};
enum { BOUND_COUNT = sizeof BOUNDS / sizeof BOUNDS[0] };

static bool holds(const bound *kind, double value, double limit)
{
  const bool equal_allowed = kind->sign[1] == '=';
  const bool lower = kind->sign[0] == '>';
  return lower ? value > limit || (equal_allowed && value == limit)
               : value < limit || (equal_allowed && value == limit);
}

static bool within_bounds(const json_t *property, const json_t *value)
{
  for (int i = 0; i < BOUND_COUNT; ++i) {
    const json_t *const limit = json_object_get(property, BOUNDS[i].keyword);
    if (limit != NULL && !holds(&BOUNDS[i], json_number_value(value), json_number_value(limit))) {
      return false;
    }
  }
  return true;
}

static void append_bounds(phrase *out, const json_t *property)
{
  const char *joint = " ";
  char number[RFT_NUMBER_TEXT_SIZE];
  for (int i = 0; i < BOUND_COUNT; ++i) {
    const json_t *const limit = json_object_get(property, BOUNDS[i].keyword);
    if (limit != NULL) {
      append(out, "%s%s %s", joint, BOUNDS[i].sign,
             rft_number_text(number, json_number_value(limit)));
      joint = " and ";
    }
  }
}

// ------------------------------------------------------------------------------------------ values

// JSON Schema: 1.0 is an integer.
static bool is_integral(const json_t *value)
{
  if (json_is_integer(value)) {
    return true;
  }
  const double number = json_real_value(value);
  return json_is_real(value) && number >= -0x1p63 && number < 0x1p63 &&
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

static void append_type(phrase *out, const json_t *property, const char *type)
{
  if (strcmp(type, "null") == 0) {
    append(out, "null");
  } else if (strcmp(type, "boolean") == 0) {
    append(out, "true or false");
  } else if (strcmp(type, "string") == 0) {
    append(out, "a string");
  } else {
    append(out, "%s", strcmp(type, "integer") == 0 ? "an integer" : "a number");
    append_bounds(out, property);
  }
}

static void append_choices(phrase *out, const json_t *choices)
{
  char part[RFT_JSON_BRIEF_SIZE];
  append(out, "one of ");
  for (size_t i = 0; i < json_array_size(choices); ++i) {
    const json_t *const choice = json_array_get(choices, i);
    append(out, "%s%s", i == 0 ? "" : ", ",
           json_is_string(choice) ? rft_json_quote(part, json_string_value(choice))
                                  : rft_json_brief(part, choice));
  }
}

static void append_expected(phrase *out, const json_t *property)
{
  const json_t *const choices = json_object_get(property, "enum");
  if (choices != NULL) {
    append_choices(out, choices);
    return;
  }
  for (size_t i = 0; i < rft_schema_type_count(property); ++i) {
    append(out, "%s", i == 0 ? "" : " or ");
    append_type(out, property, rft_schema_type(property, i));
  }
}

// -------------------------------------------------------------------------------------------- keys

static int32_t fail_value(const char *subject, int32_t code, const char *key,
                          const json_t *property, const json_t *value, rft_error *error)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  char found[RFT_JSON_BRIEF_SIZE];
  phrase expected = {.complete = true};
  append_expected(&expected, property);
  return rft_fail(error, code, "%s %s: expected %s, found %s", subject, rft_json_quote(quoted, key),
                  expected.text, rft_json_brief(found, value));
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
  phrase message = {.complete = true};
  append(&message, "config key %s is not known: the known keys are ", quoted);
  append_names(&message, properties);
  if (message.complete) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s", message.text);
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

// ------------------------------------------------------------------------------------- completing

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
