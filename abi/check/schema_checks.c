// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The schema, what create makes of it, and the presets.

#include "check.h"
#include "configs.h"
#include "support/json.h"
#include "support/schema.h"
#include "verdict.h"

#include <stdlib.h>
#include <string.h>

static void schema_is_closed(const check_subject *subject)
{
  json_decref(check_schema(subject));
}

static void schema_is_documented(const check_subject *subject)
{
  json_t *const schema = check_schema(subject);
  const char *key = NULL;
  json_t *property = NULL;
  json_object_foreach(json_object_get(schema, "properties"), key, property)
  {
    EXPECT(json_string_length(json_object_get(property, "description")) > 0,
           "property \"%.64s\" has an empty description", key);
  }
  json_decref(schema);
}

static void defaults_pass(const check_subject *subject)
{
  json_t *complete = NULL;
  rft_error error = {.struct_size = sizeof error};
  EXPECT(rft_schema_resolve(subject->loss->config_schema, NULL, 0, &complete, NULL, &error) ==
             RFT_OK,
         "%s", error.message);
  char *const text = rft_json_text(complete, 0);
  const int32_t code = check_try(subject, text, (int64_t)strlen(text), &error);
  EXPECT(code == RFT_OK, "create refuses the defaults, spelt out: %.400s", error.message);
  free(text);
  json_decref(complete);
}

static void creates(const check_subject *subject)
{
  rft_error error = {.struct_size = sizeof error};
  int32_t code = check_try(subject, "{}", 2, &error);
  EXPECT(code == RFT_OK, "create refuses {}: %.400s", error.message);
  code = check_try(subject, "", 0, &error);
  EXPECT(code == RFT_OK, "create refuses a config of length 0: %.400s", error.message);
  code = check_try(subject, NULL, 0, &error);
  EXPECT(code == RFT_OK, "create refuses a config of length 0 at NULL: %.400s", error.message);
}

// ------------------------------------------------------------------------------------------ values

static void judge_code(const check_subject *subject, const char *key, const json_t *value,
                       bool allowed)
{
  rft_error error = {.struct_size = sizeof error};
  char *const text = check_config_text(key, value);
  const int32_t code = check_try(subject, text, (int64_t)strlen(text), &error);
  EXPECT(allowed ? code == RFT_OK : code == RFT_INVALID_ARGUMENT,
         "%.200s: expected code %d, found %d: %.400s", text,
         allowed ? RFT_OK : RFT_INVALID_ARGUMENT, code,
         code == RFT_OK ? "accepted" : error.message);
  free(text);
}

static void bounds_hold(const check_subject *subject)
{
  check_probe_bounds(subject, judge_code);
}

static void types_hold(const check_subject *subject)
{
  check_probe_types(subject, judge_code);
}

static void choices_hold(const check_subject *subject)
{
  check_probe_choices(subject, judge_code);
}

static void judge_message(const check_subject *subject, const char *key, const json_t *value,
                          bool allowed)
{
  rft_error error = {.struct_size = sizeof error};
  char *const text = check_config_text(key, value);
  if (!allowed && check_try(subject, text, (int64_t)strlen(text), &error) != RFT_OK) {
    EXPECT(strstr(error.message, key) != NULL, "%.200s: the message does not name the key: %.400s",
           text, error.message);
  }
  free(text);
}

static void errors_name_the_key(const check_subject *subject)
{
  check_probe_bounds(subject, judge_message);
  check_probe_types(subject, judge_message);
  check_probe_choices(subject, judge_message);
}

// -------------------------------------------------------------------------------------------- keys

static void expect_named_refusal(const check_subject *subject, const char *text, const char *key)
{
  rft_error error = {.struct_size = sizeof error};
  const int32_t code = check_try(subject, text, (int64_t)strlen(text), &error);
  EXPECT(code == RFT_INVALID_ARGUMENT, "%.200s: expected code %d, found %d", text,
         RFT_INVALID_ARGUMENT, code);
  EXPECT(strstr(error.message, key) != NULL, "%.200s: the message does not name the key: %.400s",
         text, error.message);
}

static void unknown_key(const check_subject *subject)
{
  expect_named_refusal(subject, "{\"no_such_key\": 1}", "no_such_key");
}

static void repeated_key(const check_subject *subject)
{
  json_t *const schema = check_schema(subject);
  json_t *const properties = json_object_get(schema, "properties");
  const char *const key = json_object_iter_key(json_object_iter(properties));
  if (key != NULL) {
    char *const value =
        rft_json_text(json_object_get(json_object_get(properties, key), "default"), 0);
    char text[512];
    snprintf(text, sizeof text, "{\"%.64s\": %.128s, \"%.64s\": %.128s}", key, value, key, value);
    expect_named_refusal(subject, text, key);
    free(value);
  }
  json_decref(schema);
}

// A key with one letter more: the message has the right one, too.
static void nearest_key(const check_subject *subject)
{
  json_t *const schema = check_schema(subject);
  const char *key = NULL;
  json_t *property = NULL;
  json_object_foreach(json_object_get(schema, "properties"), key, property)
  {
    rft_error error = {.struct_size = sizeof error};
    char text[160];
    char quoted[80];
    snprintf(text, sizeof text, "{\"%.64sx\": 1}", key);
    snprintf(quoted, sizeof quoted, "%.64sx", key);
    if (strlen(key) < 5 || check_try(subject, text, (int64_t)strlen(text), &error) == RFT_OK) {
      continue;
    }
    const char *const named = strstr(error.message, quoted);
    const char *const suggested = strstr(error.message, key);
    EXPECT(suggested != NULL && (suggested != named || strstr(named + strlen(quoted), key) != NULL),
           "%.200s: the message does not suggest \"%.64s\": %.400s", text, key, error.message);
  }
  json_decref(schema);
}

// ----------------------------------------------------------------------------------------- presets

static const rft_policy_loss *find_loss(const rft_plugin *plugin, const char *name)
{
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    if (strcmp(plugin->policy_losses[i]->name, name) == 0) {
      return plugin->policy_losses[i];
    }
  }
  return NULL;
}

static json_t *parse_preset(const rft_algorithm_preset *preset)
{
  json_t *document = NULL;
  rft_error error = {.struct_size = sizeof error};
  EXPECT(preset->document != NULL, "preset \"%.48s\": document is NULL", preset->name);
  EXPECT(rft_json_parse("document", preset->document, (int64_t)strlen(preset->document), &document,
                        &error) == RFT_OK,
         "preset \"%.48s\": %.400s", preset->name, error.message);
  return document;
}

static void presets_are_complete(const check_subject *subject)
{
  static const struct {
    const char *key;
    json_type type;
  } keys[] = {{"policy_loss_fn", JSON_STRING},  {"policy_loss_fn_args", JSON_OBJECT},
              {"use_critic", JSON_FALSE},       {"use_reference", JSON_FALSE},
              {"kl_penalty_fn", JSON_STRING},   {"kl_loss_fn", JSON_STRING},
              {"entropy_loss_fn", JSON_STRING}, {"advantage_fn", JSON_STRING},
              {"rollout", JSON_OBJECT}};
  for (int64_t i = 0; i < subject->plugin->algorithm_preset_count; ++i) {
    const rft_algorithm_preset *const preset = subject->plugin->algorithm_presets[i];
    json_t *const document = parse_preset(preset);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; ++k) {
      const json_t *const value = json_object_get(document, keys[k].key);
      EXPECT(value != NULL, "preset \"%.48s\" does not say %s", preset->name, keys[k].key);
      EXPECT(json_typeof(value) == keys[k].type ||
                 (keys[k].type == JSON_FALSE && json_is_true(value)),
             "preset \"%.48s\": %s is of the wrong type", preset->name, keys[k].key);
    }
    json_decref(document);
  }
}

static void presets_pass(const check_subject *subject)
{
  for (int64_t i = 0; i < subject->plugin->algorithm_preset_count; ++i) {
    const rft_algorithm_preset *const preset = subject->plugin->algorithm_presets[i];
    json_t *const document = parse_preset(preset);
    const char *const name = json_string_value(json_object_get(document, "policy_loss_fn"));
    json_t *const args = json_object_get(document, "policy_loss_fn_args");
    const rft_policy_loss *const loss = name == NULL ? NULL : find_loss(subject->plugin, name);
    if (loss != NULL && args != NULL) { // else it is for a loss of another plugin
      check_subject configured = *subject;
      configured.loss = loss;
      rft_error error = {.struct_size = sizeof error};
      json_t *complete = NULL;
      char *const text = rft_json_text(args, 0);
      const int64_t length = (int64_t)strlen(text);
      EXPECT(rft_schema_resolve(loss->config_schema, text, length, &complete, NULL, &error) ==
                     RFT_OK &&
                 check_try(&configured, text, length, &error) == RFT_OK,
             "preset \"%.48s\": %.400s", preset->name, error.message);
      json_decref(complete);
      free(text);
    }
    json_decref(document);
  }
}

static const check CHECKS[] = {
    {401, "schema_is_closed", "P11", CHECK_LOSS, true, "functions_are_set",
     "The config schema is a closed object within the subset of support/schema.h.",
     schema_is_closed},
    {402, "schema_is_documented", "P11", CHECK_LOSS, true, "schema_is_closed",
     "Every property of the schema is described.", schema_is_documented},
    {403, "creates", "P11, P13", CHECK_LOSS, true, "schema_is_closed",
     "create takes {}, and no text at all, for the defaults.", creates},
    {404, "defaults_pass", "P11", CHECK_LOSS, true, "schema_is_closed",
     "The defaults pass the schema, and create takes them spelt out.", defaults_pass},
    {405, "bounds_hold", "P12", CHECK_LOSS, true, "defaults_pass",
     "create accepts and refuses on both sides of each bound as the schema says.", bounds_hold},
    {406, "types_hold", "P12", CHECK_LOSS, true, "defaults_pass",
     "create refuses every type that a property does not have.", types_hold},
    {407, "choices_hold", "P12", CHECK_LOSS, true, "defaults_pass",
     "create accepts each choice of an enum and no other.", choices_hold},
    {408, "errors_name_the_key", "P8, P12", CHECK_LOSS, true, "defaults_pass",
     "The message about a wrong value names the key.", errors_name_the_key},
    {409, "unknown_key", "P12", CHECK_LOSS, true, "creates",
     "A key that is not known is refused by name.", unknown_key},
    {410, "repeated_key", "P12", CHECK_LOSS, true, "defaults_pass",
     "A key that comes twice is refused by name.", repeated_key},
    {411, "nearest_key", "P12", CHECK_LOSS, true, "unknown_key",
     "The message about a misspelt key suggests the right one.", nearest_key},
    {412, "presets_are_complete", "P4", CHECK_PLUGIN, true, "names_are_well_formed",
     "The document of a preset is JSON and says all that a trainer needs.", presets_are_complete},
    {413, "presets_pass", "P11", CHECK_PLUGIN, true, "schema_is_closed",
     "The arguments of a preset pass the schema and create of its loss.", presets_pass},
};

const check_area schema_checks = CHECK_AREA(CHECKS);
