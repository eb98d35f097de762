// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "configs.h"

#include "memory.h"
#include "support/json.h"
#include "support/schema_document.h"
#include "support/schema_phrase.h"
#include "verdict.h"

#include <math.h>
#include <string.h>

check_created check_try_text(const check_subject *subject, const char *text, int64_t length)
{
  check_created created = {.error.struct_size = sizeof(rft_error)};
  created.code = subject->loss->create(subject->loss, subject->host, text, length,
                                       &created.instance, &created.error);
  EXPECT((created.code == RFT_OK) == (created.instance != NULL),
         "create returns %d and %s instance", created.code,
         created.instance == NULL ? "no" : "sets an");
  return created;
}

int32_t check_try(const check_subject *subject, const char *text, int64_t length, rft_error *error)
{
  const check_created created = check_try_text(subject, text, length);
  if (created.instance != NULL) {
    subject->loss->destroy(created.instance);
  }
  if (error != NULL) {
    *error = created.error;
  }
  return created.code;
}

json_t *check_schema(const check_subject *subject)
{
  json_t *schema = NULL;
  rft_error error = {.struct_size = sizeof error};
  EXPECT(rft_schema_load(subject->loss->config_schema, &schema, &error) == RFT_OK, "%s",
         error.message);
  return schema;
}

char *check_config_text(const char *key, const json_t *value)
{
  json_t *const config = json_pack("{s:O}", key, value);
  char *const text = rft_json_text(config, 0);
  json_decref(config);
  if (text == NULL) {
    check_skip("out of memory");
  }
  return text;
}

// ------------------------------------------------------------------------------ a property's facts

static bool has_type(const json_t *property, const char *type)
{
  for (size_t i = 0; i < rft_schema_type_count(property); ++i) {
    if (strcmp(rft_schema_type(property, i), type) == 0) {
      return true;
    }
  }
  return false;
}

static bool allows_number(const json_t *property, double value)
{
  if (!has_type(property, "number") && !(has_type(property, "integer") && value == floor(value))) {
    return false;
  }
  for (int i = 0; i < RFT_SCHEMA_BOUND_COUNT; ++i) {
    const rft_schema_bound *const bound = &rft_schema_bounds[i];
    const json_t *const limit = json_object_get(property, bound->keyword);
    const double number = json_number_value(limit);
    const bool equal = bound->sign[1] == '=' && value == number;
    const bool holds = bound->sign[0] == '>' ? value > number : value < number;
    if (limit != NULL && !equal && !holds) {
      return false;
    }
  }
  return true;
}

static void judge_number(const check_subject *subject, const char *key, const json_t *property,
                         double value, check_value_judge judge)
{
  const bool whole = has_type(property, "integer") && value == floor(value);
  json_t *const number = whole ? json_integer((json_int_t)value) : json_real(value);
  judge(subject, key, number, allows_number(property, value));
  json_decref(number);
}

typedef void (*property_visitor)(const check_subject *subject, const char *key,
                                 const json_t *property, check_value_judge judge);

static void each_property(const check_subject *subject, property_visitor visit,
                          check_value_judge judge)
{
  json_t *const schema = check_schema(subject);
  const char *key = NULL;
  json_t *property = NULL;
  json_object_foreach(json_object_get(schema, "properties"), key, property)
  {
    visit(subject, key, property, judge);
  }
  json_decref(schema);
}

// ------------------------------------------------------------------------------------------ bounds

static void probe_bounds(const check_subject *subject, const char *key, const json_t *property,
                         check_value_judge judge)
{
  if (json_object_get(property, "enum") != NULL) {
    return;
  }
  for (int i = 0; i < RFT_SCHEMA_BOUND_COUNT; ++i) {
    const json_t *const limit = json_object_get(property, rft_schema_bounds[i].keyword);
    if (limit == NULL) {
      continue;
    }
    const double at = json_number_value(limit);
    const double step = has_type(property, "number") ? 1e-6 : 1;
    judge_number(subject, key, property, at, judge);
    judge_number(subject, key, property, at - step, judge);
    judge_number(subject, key, property, at + step, judge);
  }
}

void check_probe_bounds(const check_subject *subject, check_value_judge judge)
{
  each_property(subject, probe_bounds, judge);
}

// ------------------------------------------------------------------------------------------- types

// Only types that the property doesn't have: what is allowed of its own types is another question.
static void probe_types(const check_subject *subject, const char *key, const json_t *property,
                        check_value_judge judge)
{
  const struct {
    const char *type;
    json_t *value;
  } values[] = {{"string", json_string("0.5")},
                {"boolean", json_true()},
                {"null", json_null()},
                {"array", json_array()},
                {"object", json_object()}};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
    if (!has_type(property, values[i].type)) {
      judge(subject, key, values[i].value, false);
    }
    json_decref(values[i].value);
  }
  if (!has_type(property, "number")) {
    json_t *const half = json_real(0.5);
    judge(subject, key, half, false);
    json_decref(half);
  }
}

void check_probe_types(const check_subject *subject, check_value_judge judge)
{
  each_property(subject, probe_types, judge);
}

// ----------------------------------------------------------------------------------------- choices

static void probe_choices(const check_subject *subject, const char *key, const json_t *property,
                          check_value_judge judge)
{
  const json_t *const choices = json_object_get(property, "enum");
  for (size_t i = 0; i < json_array_size(choices); ++i) {
    judge(subject, key, json_array_get(choices, i), true);
  }
  if (choices != NULL && has_type(property, "string")) {
    json_t *const other = json_string("no_such_choice");
    judge(subject, key, other, false);
    json_decref(other);
  }
}

void check_probe_choices(const check_subject *subject, check_value_judge judge)
{
  each_property(subject, probe_choices, judge);
}
