// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The config as text: its schema and defaults, keys that are not known, texts that are no config,
// and warnings for keys without effect.

#include "outcome.h"
#include "random_batches.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

TestSuite(config, .fini = plugin_fixture_end);

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

// ----------------------------------------------------------------------------- schema and defaults

static const struct {
  const char *key;
  const char *value; ///< JSON
} defaults[] = {
    {"m2_threshold", "0.04"},
    {"selection", "\"trust_region\""},
    {"m2_reference", "\"current\""},
    {"boundary", "\"at_most\""},
    {"min_kept_tokens", "0"},
    {"denominator", "\"valid\""},
    {"surrogate", "\"importance_sampling\""},
    {"clip_range_low", "0.2"},
    {"clip_range_high", "0.2"},
    {"clip_ratio_c", "null"},
    {"sapo_tau_pos", "1.0"},
    {"sapo_tau_neg", "1.05"},
    {"loss_agg_mode", "\"token-mean\""},
    {"loss_scale_factor", "null"},
    {"log_ratio_clip", "20.0"},
};

Test(config, the_schema_is_closed_and_tells_type_default_and_meaning_of_every_key)
{
  json_t *const schema = json_loads(m2po()->config_schema, JSON_REJECT_DUPLICATES, NULL);
  cr_assert(json_is_object(schema));
  cr_expect(json_is_false(json_object_get(schema, "additionalProperties")));
  json_t *const properties = json_object_get(schema, "properties");
  cr_expect_eq(json_object_size(properties), LENGTH(defaults));
  for (size_t i = 0; i < LENGTH(defaults); ++i) {
    const json_t *const property = json_object_get(properties, defaults[i].key);
    json_t *const expected = json_loads(defaults[i].value, JSON_DECODE_ANY, NULL);
    cr_expect(json_equal(json_object_get(property, "default"), expected), "%s", defaults[i].key);
    cr_expect_not_null(json_object_get(property, "type"), "%s", defaults[i].key);
    cr_expect(json_is_string(json_object_get(property, "description")), "%s", defaults[i].key);
    json_decref(expected);
  }
  json_decref(schema);
}

static const rft_batch *some_batch(void)
{
  rng r = {9};
  const batch_dtypes dtypes = all_of(float32);
  return random_batch(&r, BATCH_PLAIN, &dtypes, 400);
}

static void check_same_config(const char *what, const rft_instance *a, const rft_instance *b)
{
  const batch_list list = batch_list_of(some_batch());
  const outcome left = outcome_of(a, &list, float32);
  const outcome right = outcome_of(b, &list, float32);
  check_same_outcome(what, &left, &right, 1);
}

Test(config, an_absent_key_is_its_default)
{
  char all[2048] = "{";
  for (size_t i = 0; i < LENGTH(defaults); ++i) {
    const size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s\"%s\": %s", i == 0 ? "" : ", ", defaults[i].key,
             defaults[i].value);
  }
  strcat(all, "}");
  check_same_config("{}", m2po_create("{}"), m2po_create(all));
}

Test(config, a_text_of_length_zero_is_an_empty_object)
{
  check_same_config("length 0", m2po_create("{}"), m2po_create(""));
  rft_instance *instance = NULL;
  const rft_host *const host = host_new(HOST_SERIAL, 1);
  cr_assert_eq(m2po()->create(m2po(), host, NULL, 0, &instance, NULL), RFT_OK);
  check_same_config("NULL of length 0", m2po_create("{}"), instance);
  m2po()->destroy(instance);
}

Test(config, the_text_is_borrowed_and_not_terminated)
{
  static const char text[] = "{\"m2_threshold\": 0.01}";
  const size_t length = strlen(text);
  char *const exact = malloc(length);
  memcpy(exact, text, length); // NOLINT(bugprone-not-null-terminated-result): on purpose
  rft_instance *instance = NULL;
  cr_assert_eq(
      m2po()->create(m2po(), host_new(HOST_SERIAL, 1), exact, (int64_t)length, &instance, NULL),
      RFT_OK);
  memset(exact, 'x', length);
  free(exact);
  check_same_config("borrowed", m2po_create(text), instance);
  m2po()->destroy(instance);
}

Test(config, an_integer_is_a_number)
{
  check_same_config("1", m2po_create("{\"m2_threshold\": 1, \"log_ratio_clip\": 2}"),
                    m2po_create("{\"m2_threshold\": 1.0, \"log_ratio_clip\": 2.0}"));
}

// -------------------------------------------------------------------------------------------- keys

typedef struct rejected {
  const char *text;
  const char *parts[3]; ///< of the message
} rejected;

static void check_rejected(const rejected *cases, size_t count)
{
  for (size_t i = 0; i < count; ++i) {
    const rft_error error = m2po_create_error(cases[i].text);
    cr_expect_eq(error.code, RFT_INVALID_ARGUMENT, "%s: code %d", cases[i].text, error.code);
    for (int p = 0; p < 3 && cases[i].parts[p] != NULL; ++p) {
      cr_expect(strstr(error.message, cases[i].parts[p]) != NULL, "%s: no %s in: %s", cases[i].text,
                cases[i].parts[p], error.message);
    }
  }
}

Test(config, an_unknown_key_is_named_with_the_nearest_known_one)
{
  static const rejected cases[] = {
      {"{\"m2_budget\": 0.1}", {"\"m2_budget\"", "\"m2_threshold\"", NULL}},
      {"{\"M2_budget\": 0.1}", {"\"M2_budget\"", "\"m2_threshold\"", NULL}},
      {"{\"m2_treshold\": 0.1}", {"\"m2_treshold\"", "\"m2_threshold\"", NULL}},
      {"{\"M2_THRESHOLD\": 0.1}", {"\"M2_THRESHOLD\"", "\"m2_threshold\"", NULL}},
      {"{\"m2-threshold\": 0.1}", {"\"m2-threshold\"", "\"m2_threshold\"", NULL}},
      {"{\"clip_range_hi\": 0.1}", {"\"clip_range_hi\"", "\"clip_range_high\"", NULL}},
      {"{\"clip_ratio\": 2}", {"\"clip_ratio\"", "\"clip_ratio_c\"", NULL}},
      {"{\"loss_agg_mod\": \"token-mean\"}", {"\"loss_agg_mod\"", "\"loss_agg_mode\"", NULL}},
      {"{\"min_kept_token\": 1}", {"\"min_kept_token\"", "\"min_kept_tokens\"", NULL}},
      {"{\"sapo_tau_negative\": 1}", {"\"sapo_tau_negative\"", "\"sapo_tau_neg\"", NULL}},
      {"{\"\": 1}", {"\"\"", NULL, NULL}},
      {"{\"learning_rate\": 1}", {"\"learning_rate\"", NULL, NULL}},
      {"{\"m2_threshold\": 0.1, \"surogate\": \"sapo\"}", {"\"surogate\"", "\"surrogate\"", NULL}},
  };
  check_rejected(cases, LENGTH(cases));
}

Test(config, a_duplicate_key_is_named)
{
  static const rejected cases[] = {
      {"{\"m2_threshold\": 0.1, \"m2_threshold\": 0.1}", {"m2_threshold", "twice", NULL}},
      {"{\"boundary\": \"below\", \"m2_threshold\": 0.1, \"boundary\": \"below\"}",
       {"boundary", "twice", NULL}},
  };
  check_rejected(cases, LENGTH(cases));
}

Test(config, a_text_that_is_no_object_is_refused)
{
  static const rejected cases[] = {
      {"[]", {"object", NULL, NULL}},
      {"[{}]", {"object", NULL, NULL}},
      {"3", {"object", "3", NULL}},
      {"\"m2_threshold\"", {"object", NULL, NULL}},
      {"null", {"object", "null", NULL}},
      {"true", {"object", NULL, NULL}},
      {"{", {"config", NULL, NULL}},
      {"}", {"config", NULL, NULL}},
      {"nonsense", {"config", NULL, NULL}},
      {"{\"m2_threshold\": 0.1,}", {"config", NULL, NULL}},
      {"{\"m2_threshold\" 0.1}", {"config", NULL, NULL}},
      {"{} {}", {"config", NULL, NULL}},
      {"{}x", {"config", NULL, NULL}},
      {"{'m2_threshold': 0.1}", {"config", NULL, NULL}},
      {"{\"m2_threshold\": .1}", {"config", NULL, NULL}},
      {"{\"m2_threshold\": 0,1}", {"config", NULL, NULL}},
      {"{\"m2_threshold\": NaN}", {"config", NULL, NULL}},
      {"{\"m2_threshold\": Infinity}", {"config", NULL, NULL}},
      {"{\"m2_threshold\": 1e999}", {"config", NULL, NULL}},
      {"{\"m2_threshold\": -1e999}", {"config", NULL, NULL}},
      {"{\"\xFF\": 1}", {"config", NULL, NULL}},
  };
  check_rejected(cases, LENGTH(cases));
}

Test(config, a_text_with_a_nul_inside_is_refused)
{
  static const char text[] = "{\"m2_threshold\": 0.1}\0{}";
  rft_instance *instance = NULL;
  rft_error error = error_new();
  const int32_t code =
      m2po()->create(m2po(), host_new(HOST_SERIAL, 1), text, sizeof text - 1, &instance, &error);
  cr_expect_eq(code, RFT_INVALID_ARGUMENT, "%s", error.message);
  cr_expect_null(instance);
}

Test(config, a_message_stays_within_its_512_bytes)
{
  char text[4096] = "{\"";
  memset(text + 2, 'k', 2000);
  strcpy(text + 2002, "\": 1}");
  const rft_error error = m2po_create_error(text);
  cr_expect_lt(strnlen(error.message, RFT_ERROR_MESSAGE_SIZE), RFT_ERROR_MESSAGE_SIZE);
  cr_expect(strstr(error.message, "kkkk") != NULL, "%s", error.message);
}

Test(config, an_error_pointer_of_null_is_accepted)
{
  rft_instance *instance = NULL;
  const rft_host *const host = host_new(HOST_SERIAL, 1);
  cr_expect_eq(m2po()->create(m2po(), host, "[]", 2, &instance, NULL), RFT_INVALID_ARGUMENT);
  cr_expect_null(instance);
}

// ---------------------------------------------------------------------------------------- warnings

static const char *warnings_for(const char *text)
{
  const rft_host *const host = host_new(HOST_SERIAL, 1);
  m2po_create_on(host, text);
  return host_messages(host, RFT_LOG_WARNING);
}

static int lines_of(const char *text)
{
  int lines = 0;
  for (; *text != '\0'; ++text) {
    lines += *text == '\n';
  }
  return lines;
}

Test(config, a_key_without_effect_is_warned_about_once)
{
  static const struct {
    const char *text;
    const char *key;
  } cases[] = {
      {"{\"clip_range_low\": 0.2}", "clip_range_low"},
      {"{\"clip_range_high\": 0.2}", "clip_range_high"},
      {"{\"clip_ratio_c\": 3}", "clip_ratio_c"},
      {"{\"sapo_tau_pos\": 1}", "sapo_tau_pos"},
      {"{\"sapo_tau_neg\": 1}", "sapo_tau_neg"},
      {"{\"surrogate\": \"ppo_clip\", \"sapo_tau_neg\": 1}", "sapo_tau_neg"},
      {"{\"surrogate\": \"sapo\", \"clip_range_low\": 0.2}", "clip_range_low"},
      {"{\"loss_scale_factor\": 2}", "loss_scale_factor"},
  };
  for (size_t i = 0; i < LENGTH(cases); ++i) {
    const char *const warnings = warnings_for(cases[i].text);
    cr_expect_eq(lines_of(warnings), 1, "%s: %s", cases[i].text, warnings);
    cr_expect(strstr(warnings, cases[i].key) != NULL, "%s: %s", cases[i].text, warnings);
  }
}

Test(config, keys_with_effect_are_not_warned_about)
{
  static const char *const texts[] = {
      "{}",
      ("{\"m2_threshold\": 0.1, \"selection\": \"all_tokens\", \"m2_reference\": \"proximal\", "
       "\"boundary\": \"below\", \"min_kept_tokens\": 1, \"denominator\": \"kept\", "
       "\"log_ratio_clip\": 5}"),
      ("{\"surrogate\": \"ppo_clip\", \"clip_range_low\": 0.1, \"clip_range_high\": 0.3, "
       "\"clip_ratio_c\": 3}"),
      "{\"surrogate\": \"sapo\", \"sapo_tau_pos\": 1, \"sapo_tau_neg\": 2}",
      "{\"loss_agg_mode\": \"seq-mean-token-sum-norm\", \"loss_scale_factor\": 100}",
      "{\"loss_agg_mode\": \"seq-mean-token-mean\", \"m2_threshold\": null}",
  };
  for (size_t i = 0; i < LENGTH(texts); ++i) {
    cr_expect_str_eq(warnings_for(texts[i]), "", "%s", texts[i]);
  }
}

Test(config, the_presets_are_created_without_a_warning)
{
  const rft_plugin *const plugin = m2po_plugin();
  cr_expect_eq(plugin->algorithm_preset_count, 3);
  for (int64_t i = 0; i < plugin->algorithm_preset_count; ++i) {
    json_t *const document = json_loads(plugin->algorithm_presets[i]->document, 0, NULL);
    char *const args = json_dumps(json_object_get(document, "policy_loss_fn_args"), 0);
    cr_assert_not_null(args, "%s", plugin->algorithm_presets[i]->name);
    cr_expect_str_eq(warnings_for(args), "", "%s", plugin->algorithm_presets[i]->name);
    free(args);
    json_decref(document);
  }
}
