// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The trainer's configs: what YAML means, what is refused, and how the message reads.

#include "algorithm.h"
#include "config.h"
#include "yaml_reader.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TestSuite(trainer_config);

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

typedef struct text_case {
  char text[128];
  char expected[160];
} text_case;

// ------------------------------------------------------------------------------------------ YAML

ParameterizedTestParameters(trainer_config, yaml_reads_as_json)
{
  static text_case cases[] = {
      {"", "null"},
      {"~", "null"},
      {"a: 1", "{\"a\": 1}"},
      {"a: 1e-3", "{\"a\": 0.001}"},
      {"a: .5", "{\"a\": 0.5}"},
      {"a: -3", "{\"a\": -3}"},
      {"a: \"1\"", "{\"a\": \"1\"}"},
      {"a: no", "{\"a\": \"no\"}"},
      {"a: 0x10", "{\"a\": \"0x10\"}"},
      {"a: 1.2.3", "{\"a\": \"1.2.3\"}"},
      {"a: .inf", "{\"a\": \".inf\"}"},
      {"a: true\nb: null\nc:", "{\"a\": true, \"b\": null, \"c\": null}"},
      {"a:\n  - 1\n  - [x, {y: z}]", "{\"a\": [1, [\"x\", {\"y\": \"z\"}]]}"},
      {"{\"a\": {\"b\": 1.5, \"c\": \"\\u00e9\"}}", "{\"a\": {\"b\": 1.5, \"c\": \"\xc3\xa9\"}}"},
      {"# note\n---\na: 'it''s' # note", "{\"a\": \"it's\"}"},
  };
  return cr_make_param_array(text_case, cases, LENGTH(cases));
}

ParameterizedTest(const text_case *c, trainer_config, yaml_reads_as_json)
{
  rft_error error = {.struct_size = sizeof error};
  json_t *value = NULL;
  cr_assert_eq(yaml_parse("text", c->text, (int64_t)strlen(c->text), &value, &error), RFT_OK,
               "%s: %s", c->text, error.message);
  char *const got = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
  cr_assert_str_eq(got, c->expected);
  free(got);
  json_decref(value);
}

ParameterizedTestParameters(trainer_config, yaml_refuses_surprises)
{
  static text_case cases[] = {
      {"a: 1\nb: 2\na: 3", "text, line 3: duplicated key \"a\""},
      {"a: {b: 1, b: 2}", "text, line 1: duplicated key \"b\""},
      {"a: &x 1", "text, line 1: anchors and tags are not supported"},
      {"a: !!str 1", "text, line 1: anchors and tags are not supported"},
      {"a: 1\nb: *x", "text, line 2: "},
      {"a: 1\n---\nb: 2", "text, line 2: expected one document, found another"},
      {"? [1]\n: 2", "text, line 1: a key must be a plain name"},
      {"a: [1, 2", "text, line 2: not valid YAML: "},
      {"a: 1\n\tb: 2", "text, line 2: not valid YAML: "},
      {"a: \"x\\0y\"", "text, line 1: a NUL character in a string"},
      {"a: 99999999999999999999", "text, line 1: integer out of range: 99999999999999999999"},
      {"a: 1e999", "text, line 1: number out of range: 1e999"},
      {"a: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", "text, line 1: nested too deeply"},
      {"a: \xff", "text, line 1: not valid YAML: "},
  };
  return cr_make_param_array(text_case, cases, LENGTH(cases));
}

ParameterizedTest(const text_case *c, trainer_config, yaml_refuses_surprises)
{
  rft_error error = {.struct_size = sizeof error};
  json_t *value = NULL;
  cr_assert_eq(yaml_parse("text", c->text, (int64_t)strlen(c->text), &value, &error),
               RFT_INVALID_ARGUMENT, "%s", c->text);
  cr_assert_null(value);
  cr_assert_eq(strncmp(error.message, c->expected, strlen(c->expected)), 0, "%s: %s", c->text,
               error.message);
}

// --------------------------------------------------------------------------------------- configs

static int32_t load(const char *text, const config_override *overrides, int64_t count,
                    train_config *config, rft_error *error)
{
  char path[] = "/tmp/trainer-config-XXXXXX";
  const int descriptor = mkstemp(path);
  cr_assert_geq(descriptor, 0);
  cr_assert_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
  close(descriptor);
  const int32_t code = config_load(path, overrides, count, config, error);
  unlink(path);
  return code;
}

Test(trainer_config, absent_keys_have_defaults)
{
  rft_error error = {.struct_size = sizeof error};
  train_config config;
  cr_assert_eq(load("", NULL, 0, &config, &error), RFT_OK, "%s", error.message);
  cr_assert_str_eq(config.algorithm_type, "m2po");
  cr_assert_eq(config.prompts, 64);
  cr_assert_eq(config.samples, 8);
  cr_assert_eq(config.learning_rate, 1e-3);
  cr_assert_null(config.log);
  cr_assert_null(config.plugins_dir);
  cr_assert_eq(json_object_size(config.policy_loss_fn_args), 0);
  cr_assert_not(config_is_async(&config));
  config_free(&config);
}

Test(trainer_config, the_last_override_wins)
{
  static const config_override overrides[] = {
      {"trainer.updates", "7", false},
      {"algorithm.policy_loss_fn_args.m2_threshold", "0.02", false},
      {"algorithm.policy_loss_fn_args.selection", "all_tokens", false},
      {"output.log", "12", true},
      {"trainer.updates", "8", false},
      {"warm_start", "{batch: 3}", false}};
  rft_error error = {.struct_size = sizeof error};
  train_config config;
  cr_assert_eq(load("trainer: {updates: 6, seed: 5}\nalgorithm: {policy_loss_fn_args: {boundary: "
                    "below}}\n",
                    overrides, LENGTH(overrides), &config, &error),
               RFT_OK, "%s", error.message);
  cr_assert_eq(config.updates, 8);
  cr_assert_eq(config.seed, 5);
  cr_assert_eq(config.warm_start_batch, 3);
  cr_assert_str_eq(config.log, "12");
  cr_assert_eq(json_real_value(json_object_get(config.policy_loss_fn_args, "m2_threshold")), 0.02);
  cr_assert_eq(json_object_size(config.policy_loss_fn_args), 3);
  config_free(&config);
}

ParameterizedTestParameters(trainer_config, wrong_configs_are_refused_by_name)
{
  static text_case cases[] = {
      {"trainer: {learning_rat: 1}",
       "trainer: config key \"learning_rat\" is not known: the nearest known key is "
       "\"learning_rate\""},
      {"algoritm: {}", "section \"algoritm\" is not known: the nearest is \"algorithm\""},
      {"plugin_dir: x", "section \"plugin_dir\" is not known: the nearest is \"plugins_dir\""},
      {"algorithm: {policy_loss_fn_arg: {}}", "the nearest known key is \"policy_loss_fn_args\""},
      {"algorithm: {policy_loss_fn_args: 3}",
       "algorithm: config key \"policy_loss_fn_args\": expected an object, found the number 3"},
      {"trainer: {updates: 0}", "config key \"updates\": expected an integer >= 1"},
      {"trainer: {updates: 2.5}", "found the number 2.5"},
      {"trainer: {learning_rate: '1e-3'}", "expected a number > 0, found the string \"1e-3\""},
      {"rollout: {mode: Stale}",
       "expected one of \"stale\", \"async\", found the string \"Stale\""},
      {"output: {log: 3}", "expected a string or null, found the number 3"},
      {"trainer: 4", "trainer: config: expected an object, found the number 4"},
      {"[1]", "expected sections, found an array"},
      {"trainer: {micro_batches: 600}",
       "config key \"micro_batches\": expected at most prompts x samples = 512, found 600"},
  };
  return cr_make_param_array(text_case, cases, LENGTH(cases));
}

ParameterizedTest(const text_case *c, trainer_config, wrong_configs_are_refused_by_name)
{
  rft_error error = {.struct_size = sizeof error};
  train_config config;
  cr_assert_eq(load(c->text, NULL, 0, &config, &error), RFT_INVALID_ARGUMENT, "%s", c->text);
  cr_assert_not_null(strstr(error.message, c->expected), "%s: %s", c->text, error.message);
}

Test(trainer_config, an_override_names_a_key)
{
  static const config_override wrong[] = {{"", "1", false},
                                          {"trainer.", "1", false},
                                          {".updates", "1", false},
                                          {"trainer.seed.x", "1", false},
                                          {"trainer.updates", "[1", false},
                                          {"trainer.update", "1", false}};
  for (size_t i = 0; i < LENGTH(wrong); ++i) {
    rft_error error = {.struct_size = sizeof error};
    train_config config;
    cr_assert_eq(load("trainer: {seed: 1}", &wrong[i], 1, &config, &error), RFT_INVALID_ARGUMENT,
                 "%s", wrong[i].path);
  }
}

// --------------------------------------------------------------------------------------- presets

ParameterizedTestParameters(trainer_config, presets_are_refused_for_what_they_want)
{
  static text_case cases[] = {
      {"{\"use_critic\": true}",
       "preset \"p\" sets use_critic to true, which this trainer does not have"},
      {"{\"use_reference\": true}", "preset \"p\" sets use_reference to true"},
      {"{\"kl_penalty_fn\": \"k1\"}", "preset \"p\" sets kl_penalty_fn to the string \"k1\""},
      {"{\"kl_loss_fn\": \"k2\"}", "preset \"p\" sets kl_loss_fn to the string \"k2\""},
      {"{\"entropy_loss_fn\": \"default\"}", "preset \"p\" sets entropy_loss_fn to"},
      {"{\"advantage_fn\": \"gae\"}", "preset \"p\" sets advantage_fn to the string \"gae\""},
      {"{\"rollout\": {\"proximal_logprobs\": \"later\"}}",
       "preset \"p\" sets rollout.proximal_logprobs to the string \"later\""},
      {"{\"rollout\": {\"images\": true}}",
       "preset \"p\" sets rollout.images to true: this trainer "
       "does not know that key"},
      {"{\"reward_model\": \"x\"}", "preset \"p\" sets reward_model to the string \"x\": this "
                                    "trainer does not know that key"},
  };
  return cr_make_param_array(text_case, cases, LENGTH(cases));
}

ParameterizedTest(const text_case *c, trainer_config, presets_are_refused_for_what_they_want)
{
  rft_error error = {.struct_size = sizeof error};
  json_t *const document = json_loads(c->text, 0, NULL);
  cr_assert_eq(algorithm_check_preset("p", document, &error), RFT_UNIMPLEMENTED, "%s", c->text);
  cr_assert_eq(strncmp(error.message, c->expected, strlen(c->expected)), 0, "%s", error.message);
  json_decref(document);
}

Test(trainer_config, a_preset_that_wants_nothing_more_is_accepted)
{
  json_t *const document = json_loads(
      "{\"policy_loss_fn\": \"x\", \"policy_loss_fn_args\": {\"a\": 1}, \"use_critic\": false, "
      "\"use_reference\": false, \"kl_penalty_fn\": \"none\", \"kl_loss_fn\": \"none\", "
      "\"entropy_loss_fn\": \"none\", \"advantage_fn\": \"grpo\", \"rollout\": {\"logprobs\": "
      "true, "
      "\"proximal_logprobs\": false}}",
      0, NULL);
  rft_error error = {.struct_size = sizeof error};
  cr_assert_eq(algorithm_check_preset("p", document, &error), RFT_OK, "%s", error.message);
  json_decref(document);
}
