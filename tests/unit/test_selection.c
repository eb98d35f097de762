// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The plugin's selection against the literal Algorithm 1, on batches made to break shortcuts. Every
// comparison is exact: masks, counts, and the sums and means of squared log-ratios.

#include "compare.h"
#include "plugin_fixture.h"
#include "random_batches.h"
#include "reference_config.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

TestSuite(selection, .fini = plugin_fixture_end);

static const char *label(const char *what, uint64_t seed, const reference_selection *config)
{
  const reference_config whole = {*config, reference_objective_default()};
  char *const text = test_alloc(512);
  snprintf(text, 512, "%s, seed %llu, %s", what, (unsigned long long)seed,
           reference_config_text(&whole));
  return text;
}

static rft_instance *create(const reference_selection *config)
{
  const reference_config whole = {*config, reference_objective_default()};
  return m2po_create(reference_config_text(&whole));
}

static void check_masks(const char *what, const selection_result *got, const batch_list *list,
                        const bool *keep)
{
  int64_t position = 0;
  for (int64_t k = 0; k < list->count; ++k) {
    for (int64_t i = 0; i < tensor_count(got->mask[k]); ++i, ++position) {
      cr_assert_eq(tensor_get(got->mask[k], i), keep[position],
                   "%s: position %d (index %d of micro-batch %d) is %g", what, (int)position,
                   (int)i, (int)k, tensor_get(got->mask[k], i));
    }
  }
}

static void check_metric(const char *what, const selection_result *got, const char *name,
                         double expected)
{
  const double value = metric(got->metrics, name);
  cr_assert(value == expected, "%s: %s is %a, expected %a", what, name, value, expected);
}

static int64_t sequences_of(const batch_list *list)
{
  int64_t sequences = 0;
  for (int64_t k = 0; k < list->count; ++k) {
    const int64_t count = batch_count(list->batch[k]);
    bool *const keep = test_alloc(count);
    sequences += reference_count(batch_tokens(list->batch[k]), count, keep, 0).sequences;
  }
  return sequences;
}

// The plugin on this optimizer batch, in these micro-batches, against the reference.
static selection_result check(const char *what, const rft_instance *instance,
                              const batch_list *list, const reference_selection *config)
{
  const int64_t count = batch_list_positions(list);
  bool *const keep = test_alloc(count);
  const reference_counts expected = reference_select(config, batch_list_tokens(list), count, keep);
  const selection_result got = select_ok(instance, list);
  check_masks(what, &got, list, keep);
  check_metric(what, &got, "valid_tokens", (double)expected.valid);
  check_metric(what, &got, "trust_region_tokens", (double)expected.trust_region);
  check_metric(what, &got, "masked_tokens", (double)expected.masked);
  check_metric(what, &got, "m2_sum_before", expected.sum_before);
  check_metric(what, &got, "m2_sum_after", expected.sum_after);
  check_metric(what, &got, "m2_before", expected.m2_before);
  check_metric(what, &got, "m2_after", expected.m2_after);
  cr_assert_eq(got.report.valid_tokens, expected.valid, "%s", what);
  cr_assert_eq(got.report.kept_tokens, expected.valid - expected.masked, "%s", what);
  cr_assert_eq(got.report.sequences, sequences_of(list), "%s", what);
  return got;
}

// ---------------------------------------------------------------------------------- random batches

enum { SIZES = 9, THRESHOLDS = 9 };
static const int64_t sizes[SIZES] = {0, 1, 2, 3, 7, 64, 65, 300, 1100};

// Thresholds where a rounded sum or a compare that is off by one decides wrongly: the exact mean
// before and after, rounded to double, and its neighbours.
static double threshold_for(rng *r, const rft_batch *batch, const reference_selection *config)
{
  bool *const keep = test_alloc(batch_count(batch));
  reference_selection other = *config;
  other.tau = 0.04;
  const reference_counts counts =
      reference_select(&other, batch_tokens(batch), batch_count(batch), keep);
  const double thresholds[THRESHOLDS] = {
      0.0,
      0.04,
      0.0625, // the square that all tokens of BATCH_EQUAL have
      1e300,
      5e-324,
      counts.m2_before,
      nextafter(counts.m2_before, 0),
      counts.m2_after,
      nextafter(counts.m2_after, 0),
  };
  return thresholds[rng_below(r, THRESHOLDS)];
}

static reference_selection random_config(rng *r, const rft_batch *batch)
{
  reference_selection config = {
      .off = rng_below(r, 20) == 0,
      .all_tokens = rng_below(r, 3) == 0,
      .proximal = rng_below(r, 3) == 0,
      .below = rng_below(r, 3) == 0,
      .min_kept = rng_below(r, 3) == 0 ? rng_below(r, 20) : 0,
  };
  config.tau = threshold_for(r, batch, &config);
  return config;
}

typedef struct random_case {
  batch_kind kind;
  batch_dtypes dtypes;
  char name[64];
} random_case;

enum { DTYPE_SETS = 6, CASES = 54, ROUNDS = 4 };

static struct criterion_test_params random_cases(void)
{
  const batch_dtypes sets[DTYPE_SETS] = {
      all_of(float32),
      all_of(float64),
      all_of(float16),
      all_of(bfloat16),
      {float32, float64, float32, bfloat16},
      {bfloat16, float32, float64, float16},
  };
  random_case *const cases = cr_malloc(CASES * sizeof *cases);
  size_t count = 0;
  for (int kind = 0; kind < BATCH_KINDS; ++kind) {
    for (int set = 0; set < DTYPE_SETS; ++set) {
      random_case *const added = &cases[count++];
      *added = (random_case){.kind = (batch_kind)kind, .dtypes = sets[set]};
      snprintf(added->name, sizeof added->name, "%s %s-%s", batch_kind_names[kind],
               dtype_name(sets[set].logprob), dtype_name(sets[set].old_logprob));
    }
  }
  return cr_make_param_array(random_case, cases, count);
}

ParameterizedTestParameters(selection, agrees_with_the_reference_however_split)
{
  return random_cases();
}

ParameterizedTest(random_case *parameter, selection, agrees_with_the_reference_however_split)
{
  for (int size = 0; size < SIZES; ++size) {
    for (uint64_t round = 0; round < ROUNDS; ++round) {
      const uint64_t seed = (uint64_t)parameter->kind * 1000 + (uint64_t)size * 10 + round;
      rng r = {seed};
      const rft_batch *const batch =
          random_batch(&r, parameter->kind, &parameter->dtypes, sizes[size]);
      const reference_selection config = random_config(&r, batch);
      const char *const what = label(parameter->name, seed, &config);
      rft_instance *const instance = create(&config);
      const batch_list whole = batch_list_of(batch);
      check(what, instance, &whole, &config);
      const batch_list parts = random_split(&r, batch, 1 + rng_below(&r, 9));
      check(what, instance, &parts, &config);
      plugin_fixture_end();
    }
  }
}

// One batch of 5000 for each kind: the reference needs some seconds for all of them.
ParameterizedTestParameters(selection, agrees_on_large_batches)
{
  batch_kind *const kinds = cr_malloc(BATCH_KINDS * sizeof *kinds);
  for (int kind = 0; kind < BATCH_KINDS; ++kind) {
    kinds[kind] = (batch_kind)kind;
  }
  return cr_make_param_array(batch_kind, kinds, BATCH_KINDS);
}

ParameterizedTest(batch_kind *kind, selection, agrees_on_large_batches)
{
  const uint64_t seed = (uint64_t)*kind;
  rng r = {seed};
  const batch_dtypes dtypes = all_of(float32);
  const rft_batch *const batch = random_batch(&r, *kind, &dtypes, 5000);
  const reference_selection config = {.tau = *kind == BATCH_EXPONENTS ? 1e20 : 0.01};
  const batch_list parts = random_split(&r, batch, 7);
  check(label(batch_kind_names[*kind], seed, &config), create(&config), &parts, &config);
}

Test(selection, dtypes_may_differ_between_micro_batches)
{
  const batch_dtypes sets[] = {all_of(float32),
                               all_of(float64),
                               all_of(bfloat16),
                               {float64, float16, float32, float32},
                               all_of(float16)};
  enum { PARTS = sizeof sets / sizeof sets[0] };
  for (uint64_t seed = 0; seed < 60; ++seed) {
    rng r = {seed};
    const rft_batch *parts[PARTS];
    for (int k = 0; k < PARTS; ++k) {
      const batch_kind kind = seed % 2 == 0 ? BATCH_TIES : (batch_kind)rng_below(&r, BATCH_KINDS);
      parts[k] = random_batch(&r, kind, &sets[(seed + (uint64_t)k) % PARTS], rng_below(&r, 90));
    }
    const batch_list list = {PARTS, parts};
    const reference_selection config = random_config(&r, parts[rng_below(&r, PARTS)]);
    check(label("mixed dtypes", seed, &config), create(&config), &list, &config);
    plugin_fixture_end();
  }
}

Test(selection, selections_of_one_instance_do_not_disturb_each_other)
{
  rng r = {1};
  const batch_dtypes dtypes = all_of(float32);
  const reference_selection config = {.tau = 0.04};
  rft_instance *const instance = create(&config);
  rft_selection *open[3];
  batch_list list[3];
  for (int s = 0; s < 3; ++s) {
    list[s] = random_split(&r, random_batch(&r, BATCH_PLAIN, &dtypes, 200), 3);
    cr_assert_eq(m2po()->selection_begin(instance, &open[s], NULL), RFT_OK);
  }
  for (int64_t k = 0; k < 3; ++k) {
    for (int s = 0; s < 3; ++s) {
      cr_assert_eq(m2po()->selection_add(open[s], list[s].batch[k], NULL), RFT_OK);
    }
  }
  for (int s = 0; s < 3; ++s) {
    const selection_result alone = check("alone", instance, &list[s], &config);
    rft_selection_report report = {.struct_size = sizeof report};
    cr_assert_eq(m2po()->selection_finish(open[s], NULL, &report, NULL), RFT_OK);
    cr_expect_eq(report.kept_tokens, alone.report.kept_tokens);
    m2po()->selection_end(open[s]);
  }
}
