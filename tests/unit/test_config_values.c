// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The values of every config key: what it takes, and what it refuses with a message that names the
// key, what was expected, and what came.

#include "plugin_fixture.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(config_values, .fini = plugin_fixture_end);

enum { MOST = 14 };

typedef struct key_values {
  const char *key;
  const char *expected;   ///< a word of what is expected
  const char *good[MOST]; ///< JSON
  const char *bad[MOST];  ///< JSON; shown in the message
} key_values;

static const key_values keys[] = {
    {"m2_threshold",
     "number",
     {"0", "0.0", "-0.0", "1", "0.04", "1e300", "5e-324", "null"},
     {"-0.001", "-1", "-5e-324", "\"0.04\"", "true", "[]", "{}", "[0.04]"}},
    {"selection",
     "all_tokens",
     {"\"trust_region\"", "\"all_tokens\""},
     {"\"all\"", "\"Trust_Region\"", "\"\"", "null", "1", "true", "[]"}},
    {"m2_reference",
     "proximal",
     {"\"current\"", "\"proximal\""},
     {"\"behavior\"", "\"CURRENT\"", "null", "0", "false"}},
    {"boundary", "below", {"\"at_most\"", "\"below\""}, {"\"at-most\"", "\"<=\"", "null", "0"}},
    {"min_kept_tokens",
     "integer",
     {"0", "1", "1000000", "9223372036854775807"},
     {"-1", "0.5", "1.5", "null", "\"1\"", "true", "[]"}},
    {"denominator", "kept", {"\"valid\"", "\"kept\""}, {"\"N\"", "null", "1"}},
    {"surrogate",
     "ppo_clip",
     {"\"importance_sampling\"", "\"ppo_clip\"", "\"sapo\""},
     {"\"ppo\"", "\"PPO_CLIP\"", "null", "2"}},
    {"clip_range_low",
     "number",
     {"0", "0.2", "1", "7.5"},
     {"-0.2", "-1", "null", "\"0.2\"", "false"}},
    {"clip_range_high", "number", {"0", "0.28", "1e6"}, {"-0.28", "-1", "null", "\"0.2\"", "{}"}},
    {"clip_ratio_c",
     "number",
     {"null", "1.0000000000000002", "3", "10.0"},
     {"1", "1.0", "0.5", "0", "-3", "\"3\"", "true"}},
    {"sapo_tau_pos",
     "number",
     {"5e-324", "1", "2.5"},
     {"0", "0.0", "-0.0", "-1", "null", "\"1\"", "true"}},
    {"sapo_tau_neg", "number", {"5e-324", "1.05", "3"}, {"0", "-1.05", "null", "\"1\"", "[]"}},
    {"loss_agg_mode",
     "seq-mean-token-sum-norm",
     {"\"token-mean\"", "\"seq-mean-token-sum\"", "\"seq-mean-token-mean\"",
      "\"seq-mean-token-sum-norm\""},
     {"\"token_mean\"", "\"mean\"", "null", "0"}},
    {"loss_scale_factor",
     "number",
     {"null", "1", "0.5", "4096"},
     {"0", "0.0", "-1", "\"1\"", "true"}},
    {"log_ratio_clip",
     "number",
     {"null", "5e-324", "20", "1e300"},
     {"0", "-20", "\"20\"", "true", "[]"}},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static struct criterion_test_params key_parameters(void)
{
  int *const index = cr_malloc(KEYS * sizeof *index);
  for (int i = 0; i < KEYS; ++i) {
    index[i] = i;
  }
  return cr_make_param_array(int, index, KEYS);
}

static const char *config_of(const char *key, const char *value)
{
  char *const text = test_alloc(256);
  snprintf(text, 256, "{\"%s\": %s}", key, value);
  return text;
}

ParameterizedTestParameters(config_values, good_values_are_taken)
{
  return key_parameters();
}

ParameterizedTest(int *index, config_values, good_values_are_taken)
{
  const key_values *const values = &keys[*index];
  for (int i = 0; i < MOST && values->good[i] != NULL; ++i) {
    m2po_create(config_of(values->key, values->good[i]));
  }
}

ParameterizedTestParameters(config_values, bad_values_are_refused_by_name)
{
  return key_parameters();
}

ParameterizedTest(int *index, config_values, bad_values_are_refused_by_name)
{
  const key_values *const values = &keys[*index];
  for (int i = 0; i < MOST && values->bad[i] != NULL; ++i) {
    const char *const config = config_of(values->key, values->bad[i]);
    const rft_error error = m2po_create_error(config);
    char key[64];
    snprintf(key, sizeof key, "\"%s\"", values->key);
    cr_expect_eq(error.code, RFT_INVALID_ARGUMENT, "%s", config);
    cr_expect(strstr(error.message, key) != NULL, "%s: no key in: %s", config, error.message);
    cr_expect(strstr(error.message, values->expected) != NULL, "%s: no \"%s\" in: %s", config,
              values->expected, error.message);
    // Lists and objects may be shown in short, and 1.0 as 1.
    const bool shown = strchr("[{", values->bad[i][0]) != NULL ||
                       strstr(error.message, values->bad[i]) != NULL ||
                       strtod(values->bad[i], NULL) == (int)strtod(values->bad[i], NULL);
    cr_expect(shown, "%s: the value is not in: %s", config, error.message);
  }
}

// ----------------------------------------------------------------------------------------- meaning

static rft_batch *one_token(double log_ratio)
{
  const double one = 1.0;
  return batch_new(tensor_1d(float32, 1, &log_ratio), tensor_1d(float32, 1, NULL), NULL,
                   tensor_1d(float32, 1, &one), tensor_1d(bool8, 1, &one), NULL);
}

static double masked_by(const char *config, double log_ratio)
{
  const batch_list list = batch_list_of(one_token(log_ratio));
  return metric(select_ok(m2po_create(config), &list).metrics, "masked_tokens");
}

Test(config_values, the_largest_integer_is_not_rounded_away)
{
  cr_expect_eq(masked_by("{\"min_kept_tokens\": 9223372036854775807}", 1.0), 0.0);
  cr_expect_eq(masked_by("{\"min_kept_tokens\": 0}", 1.0), 1.0);
}

Test(config_values, numbers_are_read_to_the_last_bit)
{
  const double threshold = 0.1 * 0.1; // 0.010000000000000002, not 0.01
  char config[64];
  snprintf(config, sizeof config, "{\"m2_threshold\": %.17g}", threshold);
  const double d = 0.1;
  const double one = 1.0;
  const batch_list list =
      batch_list_of(batch_new(tensor_1d(float64, 1, &d), tensor_1d(float64, 1, NULL), NULL,
                              tensor_1d(float64, 1, &one), tensor_1d(bool8, 1, &one), NULL));
  cr_expect_eq(metric(select_ok(m2po_create(config), &list).metrics, "masked_tokens"), 0.0);
  cr_expect_eq(
      metric(select_ok(m2po_create("{\"m2_threshold\": 0.01}"), &list).metrics, "masked_tokens"),
      1.0);
}

// ------------------------------------------------------------------------------------------ locale

static bool writes_a_comma(const char *name)
{
  return setlocale(LC_ALL, name) != NULL && localeconv()->decimal_point[0] == ',';
}

// An installed locale with a decimal comma, or one made for the test where the machine can.
static bool use_a_comma(void)
{
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE",      "fr_FR.UTF-8",
                                      "fr_FR.utf8",  "nl_NL.utf8", "pt_BR.utf8", "ru_RU.utf8"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (writes_a_comma(names[i])) {
      return true;
    }
  }
  const char *const make =
      "mkdir -p '" RFT_TEST_BUILD_DIR "/locale' && "
      "localedef -i de_DE -f UTF-8 '" RFT_TEST_BUILD_DIR "/locale/de_DE.UTF-8' >/dev/null 2>&1";
  // NOLINTNEXTLINE(cert-env33-c): the command is constant
  return system(make) == 0 && setenv("LOCPATH", RFT_TEST_BUILD_DIR "/locale", 1) == 0 &&
         writes_a_comma("de_DE.UTF-8");
}

Test(config_values, numbers_have_a_point_whatever_the_locale)
{
  if (!use_a_comma()) {
    cr_skip_test("no locale with a decimal comma, and no localedef to make one");
  }
  cr_expect_eq(masked_by("{\"m2_threshold\": 0.5}", 0.75), 1.0);
  cr_expect_eq(masked_by("{\"m2_threshold\": 0.6}", 0.75), 0.0);
  const rft_error range = m2po_create_error("{\"m2_threshold\": -0.25}");
  cr_expect(strstr(range.message, "-0.25") != NULL, "%s", range.message);
  m2po_create_error("{\"m2_threshold\": 0,5}");
  const double half = 0.5;
  rft_batch *const batch = one_token(0.1);
  batch->mask = tensor_1d(float32, 1, &half);
  evaluation unused;
  rft_error error = error_new();
  m2po_evaluate(m2po_create("{}"), batch, NULL, NULL, float32, &unused, &error);
  cr_expect(strstr(error.message, "0.5") != NULL, "%s", error.message);
  cr_expect_eq(localeconv()->decimal_point[0], ',', "the plugin has changed the locale");
}
