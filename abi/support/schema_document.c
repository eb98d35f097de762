// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "schema_document.h"

#include "error.h"
#include "json.h"

#include <stdbool.h>
#include <string.h>

static const char *const TYPES[] = {"number", "integer", "string", "boolean", "null"};

static const char *const OBJECT_KEYWORDS[] = {"$schema", "$id",        "$comment",
                                              "title",   "type",       "description",
                                              "default", "properties", "additionalProperties"};

static const char *const PROPERTY_KEYWORDS[] = {
    "$comment",        "title",   "description", "type",     "enum",
    "minimum",         "maximum", "default",     "examples", "exclusiveMinimum",
    "exclusiveMaximum"};

static const char *const BOUND_KEYWORDS[] = {"minimum", "maximum", "exclusiveMinimum",
                                             "exclusiveMaximum"};

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(name, names[i]) == 0) {
      return true;
    }
  }
  return false;
}

size_t rft_schema_type_count(const json_t *property)
{
  const json_t *const type = json_object_get(property, "type");
  return json_is_array(type) ? json_array_size(type) : 1;
}

const char *rft_schema_type(const json_t *property, size_t index)
{
  const json_t *const type = json_object_get(property, "type");
  return json_string_value(json_is_array(type) ? json_array_get(type, index) : type);
}

// `where`: the property, quoted, or "" for the document itself.
static int32_t fail(rft_error *error, const char *where, const char *problem)
{
  const char *const place = where[0] == '\0' ? "" : ", property ";
  return rft_fail(error, RFT_INTERNAL, "config schema%s%s: %s", place, where, problem);
}

static int32_t check_keywords(const json_t *object, const char *const *keywords, size_t count,
                              const char *where, rft_error *error)
{
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)object, key, value)
  {
    if (strncmp(key, "x-", 2) != 0 && !is_one_of(key, keywords, count)) {
      char quoted[RFT_JSON_BRIEF_SIZE];
      const char *const place = where[0] == '\0' ? "" : ", property ";
      return rft_fail(error, RFT_INTERNAL,
                      "config schema%s%s: the keyword %s is outside the supported subset", place,
                      where, rft_json_quote(quoted, key));
    }
  }
  return RFT_OK;
}

static bool has_known_types(const json_t *property)
{
  const size_t count = rft_schema_type_count(property);
  for (size_t i = 0; i < count; ++i) {
    const char *const type = rft_schema_type(property, i);
    if (type == NULL || !is_one_of(type, TYPES, LENGTH(TYPES))) {
      return false;
    }
  }
  return count > 0;
}

static bool has_number_bounds(const json_t *property)
{
  for (size_t i = 0; i < LENGTH(BOUND_KEYWORDS); ++i) {
    const json_t *const limit = json_object_get(property, BOUND_KEYWORDS[i]);
    if (limit != NULL && !json_is_number(limit)) {
      return false;
    }
  }
  return true;
}

static int32_t check_property(const char *where, const json_t *property, rft_error *error)
{
  if (!json_is_object(property)) {
    return fail(error, where, "expected an object");
  }
  const int32_t code =
      check_keywords(property, PROPERTY_KEYWORDS, LENGTH(PROPERTY_KEYWORDS), where, error);
  if (code != RFT_OK) {
    return code;
  }
  if (!has_known_types(property)) {
    return fail(error, where,
                "\"type\" must name one or several of number, integer, string, boolean, null");
  }
  if (!has_number_bounds(property)) {
    return fail(error, where, "minimum, maximum and their exclusive forms must be numbers");
  }
  const json_t *const choices = json_object_get(property, "enum");
  if (choices != NULL && json_array_size(choices) == 0) {
    return fail(error, where, "\"enum\" must be a list with a value");
  }
  if (!json_is_string(json_object_get(property, "description"))) {
    return fail(error, where, "it has no description");
  }
  if (json_object_get(property, "default") == NULL) {
    return fail(error, where, "it has no default");
  }
  return RFT_OK;
}

static int32_t check_document(const json_t *document, rft_error *error)
{
  const char *const type = json_string_value(json_object_get(document, "type"));
  if (type == NULL || strcmp(type, "object") != 0) {
    return fail(error, "", "expected an object with \"type\": \"object\"");
  }
  if (!json_is_false(json_object_get(document, "additionalProperties"))) {
    return fail(error, "", "it is not closed: \"additionalProperties\" must be false");
  }
  const json_t *const properties = json_object_get(document, "properties");
  if (!json_is_object(properties)) {
    return fail(error, "", "expected an object \"properties\"");
  }
  int32_t code = check_keywords(document, OBJECT_KEYWORDS, LENGTH(OBJECT_KEYWORDS), "", error);
  const char *key = NULL;
  json_t *property = NULL;
  json_object_foreach((json_t *)properties, key, property)
  {
    char quoted[RFT_JSON_BRIEF_SIZE];
    if (code == RFT_OK) {
      code = check_property(rft_json_quote(quoted, key), property, error);
    }
  }
  return code;
}

int32_t rft_schema_load(const char *schema, json_t **document, rft_error *error)
{
  json_t *parsed = NULL;
  int32_t code = schema == NULL ? fail(error, "", "it is a null pointer")
                                : rft_json_parse("config schema", schema, (int64_t)strlen(schema),
                                                 &parsed, error);
  if (code == RFT_OK) {
    code = check_document(parsed, error);
  }
  if (code == RFT_OK) {
    *document = parsed;
    return RFT_OK;
  }
  json_decref(parsed);
  if (code == RFT_INVALID_ARGUMENT && error != NULL && RFT_HAS_FIELD(error, rft_error, code)) {
    error->code = RFT_INTERNAL;
  }
  return code == RFT_INVALID_ARGUMENT ? RFT_INTERNAL : code;
}
