// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Configs against a schema: what is accepted, how it is completed, and what an error says (P11,
// P12).

#include "support/json.h"
#include "support/schema.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define PROPERTIES(text)                                                                           \
  "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {" text "}}"

static const char schema[] = PROPERTIES(
    "\"threshold\": {\"type\": [\"number\", \"null\"], \"minimum\": 0, \"default\": 0.04,"
    "  \"description\": \"T.\", \"x-aliases\": [\"budget\"]},"
    "\"mode\": {\"type\": \"string\", \"enum\": [\"mean\", \"sum\"], \"default\": \"mean\","
    "  \"description\": \"M.\"},"
    "\"least\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 9, \"default\": 0,"
    "  \"description\": \"L.\"},"
    "\"ratio\": {\"type\": [\"number\", \"null\"], \"exclusiveMinimum\": 1, \"default\": null,"
    "  \"description\": \"R.\"},"
    "\"loud\": {\"type\": \"boolean\", \"default\": false, \"description\": \"L.\"}");

static void expect_error(const char *schema_text, const char *config, int64_t length, int32_t code,
                         const char *message)
{
  rft_error error = {.struct_size = sizeof error};
  json_t *resolved = NULL;
  json_t *given = NULL;
  cr_expect_eq(rft_schema_resolve(schema_text, config, length, &resolved, &given, &error), code,
               "%s", config);
  cr_expect_eq(error.code, code);
  cr_expect_str_eq(error.message, message);
  cr_expect_null(resolved);
  cr_expect_null(given);
}

static void expect_refused(const char *config, const char *message)
{
  expect_error(schema, config, (int64_t)strlen(config), RFT_INVALID_ARGUMENT, message);
}

static void expect_resolved(const char *config, const char *expected)
{
  rft_error error = {.struct_size = sizeof error};
  json_t *resolved = NULL;
  const int32_t code =
      rft_schema_resolve(schema, config, (int64_t)strlen(config), &resolved, NULL, &error);
  cr_assert_eq(code, RFT_OK, "%s: %s", config, error.message);
  char *const text = rft_json_text(resolved, 0);
  cr_expect_str_eq(text, expected);
  free(text);
  json_decref(resolved);
}

Test(schema, completes_defaults_in_the_order_of_the_schema)
{
  expect_resolved("", "{\"threshold\": 0.04, \"mode\": \"mean\", \"least\": 0, \"ratio\": null, "
                      "\"loud\": false}");
  expect_resolved("{\"loud\": true, \"ratio\": 1.5, \"threshold\": null}",
                  "{\"threshold\": null, \"mode\": \"mean\", \"least\": 0, \"ratio\": 1.5, "
                  "\"loud\": true}");
}

Test(schema, takes_an_integer_for_a_number_and_a_whole_number_for_an_integer)
{
  expect_resolved("{\"threshold\": 1, \"least\": 3.0}",
                  "{\"threshold\": 1.0, \"mode\": \"mean\", \"least\": 3, \"ratio\": null, "
                  "\"loud\": false}");
}

Test(schema, gives_the_config_as_it_came)
{
  const char config[] = "{\"least\": 2}";
  json_t *resolved = NULL;
  json_t *given = NULL;
  cr_assert_eq(rft_schema_resolve(schema, config, sizeof config - 1, &resolved, &given, NULL),
               RFT_OK);
  cr_expect_eq(json_object_size(given), 1);
  cr_expect_eq(json_integer_value(json_object_get(given, "least")), 2);
  json_decref(resolved);
  json_decref(given);
}

Test(schema, names_the_nearest_key_of_a_misspelt_one)
{
  const char *const misspelt[] = {"treshold", "THRESHOLD", "budget", "Budget", "threshhold"};
  for (size_t i = 0; i < sizeof misspelt / sizeof misspelt[0]; ++i) {
    char config[64];
    char message[128];
    snprintf(config, sizeof config, "{\"%s\": 1}", misspelt[i]);
    snprintf(message, sizeof message,
             "config key \"%s\" is not known: the nearest known key is \"threshold\"", misspelt[i]);
    expect_refused(config, message);
  }
}

Test(schema, lists_the_known_keys_when_none_is_near)
{
  expect_refused("{\"xyz\": 1}",
                 "config key \"xyz\" is not known: the known keys are \"threshold\", \"mode\", "
                 "\"least\", \"ratio\", \"loud\"");
}

Test(schema, says_what_was_expected_and_what_came)
{
  expect_refused("{\"threshold\": \"0.04\"}", "config key \"threshold\": expected a number >= 0 or "
                                              "null, found the string \"0.04\"");
  expect_refused("{\"threshold\": -1}",
                 "config key \"threshold\": expected a number >= 0 or null, found the number -1");
  expect_refused("{\"threshold\": true}",
                 "config key \"threshold\": expected a number >= 0 or null, found true");
  expect_refused("{\"threshold\": [1]}",
                 "config key \"threshold\": expected a number >= 0 or null, found an array");
  expect_refused("{\"threshold\": {}}",
                 "config key \"threshold\": expected a number >= 0 or null, found an object");
  expect_refused("{\"ratio\": 1}",
                 "config key \"ratio\": expected a number > 1 or null, found the number 1");
  expect_refused("{\"mode\": \"Mean\"}", "config key \"mode\": expected one of \"mean\", \"sum\", "
                                         "found the string \"Mean\"");
  expect_refused("{\"mode\": null}", "config key \"mode\": expected one of \"mean\", \"sum\", "
                                     "found null");
  expect_refused("{\"least\": 1.5}", "config key \"least\": expected an integer >= 0 and <= 9, "
                                     "found the number 1.5");
  expect_refused("{\"least\": 10}", "config key \"least\": expected an integer >= 0 and <= 9, "
                                    "found the number 10");
  expect_refused("{\"loud\": 1}",
                 "config key \"loud\": expected true or false, found the number 1");
}

Test(schema, cuts_long_values_between_characters)
{
  expect_refused("{\"mode\": \"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
                 "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9"
                 "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\"}",
                 "config key \"mode\": expected one of \"mean\", \"sum\", found the string "
                 "\"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3"
                 "\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3"
                 "\xA9...\"");
}

Test(schema, names_a_key_that_is_given_twice)
{
  expect_refused("{\"least\": 1,\n \"least\": 1}", "config key \"least\" is given twice (line 2)");
  expect_refused("{\"a\\\"b, a key that is longer than twenty bytes\": 1, "
                 "\"a\\\"b, a key that is longer than twenty bytes\": 1}",
                 "config key \"a\\\"b, a key that is longer than twenty bytes\" is given twice "
                 "(line 1)");
}

Test(schema, refuses_what_is_not_one_json_object)
{
  expect_refused("[]", "config: expected an object, found an array");
  expect_refused("3", "config: expected an object, found the number 3");
  expect_refused("{} {}", "config is not valid JSON: line 1, column 4: end of file expected near "
                          "'{'");
  expect_refused(" ", "config is not valid JSON: line 1, column 1: unexpected token near end of "
                      "file");
  expect_refused("{\"threshold\": NaN}",
                 "config is not valid JSON: line 1, column 17: invalid token near 'NaN'");
  expect_refused("{\"threshold\": 1e999}",
                 "config is not valid JSON: line 1, column 19: real number overflow near '1e999'");
  expect_refused("{\"threshold\": \"\xFF\"}", "config is not valid JSON: line 1, column 15: unable "
                                              "to decode byte 0xff near '\"'");
  expect_error(schema, "{\0}", 3, RFT_INVALID_ARGUMENT, "config is not valid JSON: byte 1 is NUL");
  expect_error(schema, NULL, 5, RFT_INVALID_ARGUMENT,
               "config: expected JSON text of at most 2147483647 bytes, found a null pointer and a "
               "length of 5");
  expect_error(schema, "{}", -1, RFT_INVALID_ARGUMENT,
               "config: expected JSON text of at most 2147483647 bytes, found a length of -1");
}

Test(schema, survives_deep_nesting)
{
  enum { DEPTH = 100000 };
  char *const config = malloc(DEPTH);
  memset(config, '[', DEPTH);
  expect_error(schema, config, DEPTH, RFT_INVALID_ARGUMENT,
               "config is not valid JSON: line 1, column 2049: maximum parsing depth reached near "
               "'['");
  free(config);
}

Test(schema, reads_no_byte_beyond_the_length)
{
  char *const config = malloc(2);
  memcpy(config, "{}", 2);
  json_t *resolved = NULL;
  cr_expect_eq(rft_schema_resolve(schema, config, 2, &resolved, NULL, NULL), RFT_OK);
  json_decref(resolved);
  free(config);
}

Test(schema, blames_the_plugin_for_a_schema_outside_the_subset)
{
  const struct {
    const char *schema;
    const char *message;
  } cases[] = {
      {NULL, "config schema: it is a null pointer"},
      {"{", "config schema is not valid JSON: line 1, column 1: string or '}' expected near end of "
            "file"},
      {"{\"type\": \"object\", \"properties\": {}}",
       "config schema: it is not closed: \"additionalProperties\" must be false"},
      {"{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {},"
       " \"required\": []}",
       "config schema: the keyword \"required\" is outside the supported subset"},
      {PROPERTIES("\"a\": {\"type\": \"number\", \"default\": 1}"),
       "config schema, property \"a\": it has no description"},
      {PROPERTIES("\"a\": {\"type\": \"number\", \"description\": \"A.\"}"),
       "config schema, property \"a\": it has no default"},
      {PROPERTIES("\"a\": {\"type\": \"array\", \"default\": [], \"description\": \"A.\"}"),
       "config schema, property \"a\": \"type\" must name one or several of number, integer, "
       "string, boolean, null"},
      {PROPERTIES("\"a\": {\"type\": \"string\", \"pattern\": \"x\", \"default\": \"x\","
                  " \"description\": \"A.\"}"),
       "config schema, property \"a\": the keyword \"pattern\" is outside the supported subset"},
      {PROPERTIES("\"a\": {\"type\": \"number\", \"minimum\": 1, \"default\": 0,"
                  " \"description\": \"A.\"}"),
       "config schema, default of \"a\": expected a number >= 1, found the number 0"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    expect_error(cases[i].schema, "{}", 2, RFT_INTERNAL, cases[i].message);
  }
}

Test(json, writes_numbers_shortest_and_still_of_their_type)
{
  json_t *const value = json_pack("[f, f, f, f, i]", 0.04, 1.0, -0.0, 1e300, 7);
  char *const text = rft_json_text(value, 0);
  cr_expect_str_eq(text, "[0.04, 1.0, -0.0, 1e+300, 7]");
  free(text);
  json_decref(value);
}

Test(json, escapes_what_strings_may_not_hold)
{
  json_t *const value = json_pack("{s:s}", "a\"\\", "\n\t\x01\x7F\xC3\xA9");
  char *const text = rft_json_text(value, 0);
  cr_expect_str_eq(text, "{\"a\\\"\\\\\": \"\\n\\u0009\\u0001\\u007f\xC3\xA9\"}");
  free(text);
  json_decref(value);
}

Test(json, indents_objects_and_keeps_lists_of_scalars_on_a_line)
{
  json_t *const value = json_pack("{s:[i, i], s:[{s:n}], s:{}}", "a", 1, 2, "b", "c", "d");
  char *const text = rft_json_text(value, 2);
  cr_expect_str_eq(text, "{\n  \"a\": [1, 2],\n  \"b\": [\n    {\n      \"c\": null\n    }\n  ],\n"
                         "  \"d\": {}\n}");
  free(text);
  json_decref(value);
}
