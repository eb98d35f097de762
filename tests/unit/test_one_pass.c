// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The extension "rft.plugin.one_pass/1" against the separate calls and the literal reference: every
// way through it gives the masks, counts, gradients and selection metrics of those, bit by bit.

#include "compare.h"
#include "golden.h"
#include "large_batches.h"
#include "loss_batches.h"
#include "one_pass.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(one_pass, .fini = plugin_fixture_end);

// ----------------------------------------------------------------------------------- large batches

static const char *const configs[] = {
    "{}",
    "{\"m2_threshold\": 0}",
    "{\"m2_threshold\": null}",
    "{\"m2_threshold\": null, \"boundary\": \"below\", \"selection\": \"all_tokens\"}",
    "{\"m2_threshold\": 1e-4}",
    "{\"m2_threshold\": 0.3}",
    "{\"m2_threshold\": 0.0625}", // the square that all tokens of one kind have
    "{\"m2_threshold\": 0.0625, \"boundary\": \"below\"}",
    "{\"m2_threshold\": 0, \"boundary\": \"below\"}",
    "{\"selection\": \"all_tokens\"}",
    "{\"selection\": \"all_tokens\", \"m2_threshold\": 1e-5, \"boundary\": \"below\"}",
    "{\"min_kept_tokens\": 3000, \"m2_threshold\": 1e-6}",
    "{\"min_kept_tokens\": 1000000000}",
    "{\"loss_agg_mode\": \"seq-mean-token-sum\"}",
    "{\"log_ratio_clip\": 0.1}",
    "{\"log_ratio_clip\": null}",
};
enum { CONFIGS = sizeof configs / sizeof configs[0] };

static struct criterion_test_params large_kinds(void)
{
  large_kind *const kinds = cr_malloc(LARGE_KINDS * sizeof *kinds);
  for (int kind = 0; kind < LARGE_KINDS; ++kind) {
    kinds[kind] = (large_kind)kind;
  }
  return cr_make_param_array(large_kind, kinds, LARGE_KINDS);
}

static const char *label(large_kind kind, int64_t count, const char *config)
{
  char *const text = test_alloc(256);
  snprintf(text, 256, "%s, %d tokens, %s", large_kind_names[kind], (int)count, config);
  return text;
}

ParameterizedTestParameters(one_pass, large_batches_are_those_of_the_separate_calls)
{
  return large_kinds();
}

ParameterizedTest(large_kind *kind, one_pass, large_batches_are_those_of_the_separate_calls)
{
  static const int64_t counts[] = {20000, 16384, 65536 + 511, 300000};
  for (int n = 0; n < 4; ++n) {
    // The largest with the default config only: it takes its time.
    for (int c = 0; c < (n == 3 ? 1 : CONFIGS); ++c) {
      const rft_batch *const batch = large_batch((uint64_t)n, *kind, counts[n]);
      check_call(label(*kind, counts[n], configs[c]), m2po_create(configs[c]), batch, LOSS_ADDS_UP);
      plugin_fixture_end();
    }
  }
}

// Where nothing lines up, what terms are rounded by averages out.
Test(one_pass, the_loss_of_many_tokens_is_that_of_the_separate_calls_to_nine_digits)
{
  static const large_kind kinds[] = {LARGE_FRESH, LARGE_STALE, LARGE_VERY_STALE, LARGE_HALVES};
  for (int k = 0; k < 4; ++k) {
    const rft_batch *const batch = large_batch(3, kinds[k], 300000);
    check_call(label(kinds[k], 300000, "{}"), m2po_create("{}"), batch, LOSS_AVERAGES);
    plugin_fixture_end();
  }
}

// An outlier decides wherever it is, whether a sample sees it or not.
Test(one_pass, an_outlier_anywhere)
{
  enum { COUNT = 32768, PLACES = 40 };
  rft_batch *const batch = large_batch(0, LARGE_FRESH, COUNT);
  const rft_instance *const instance = m2po_create("{}");
  for (int64_t p = 0; p < PLACES; ++p) {
    const int64_t i = p == 0 ? 0 : p == 1 ? COUNT - 1 : p * 811;
    const double before[] = {tensor_get(batch->logprob, i), tensor_get(batch->old_logprob, i),
                             tensor_get(batch->advantages, i), tensor_get(batch->mask, i)};
    tensor_set(batch->logprob, i, 60.0);
    tensor_set(batch->old_logprob, i, 0.0);
    tensor_set(batch->advantages, i, 1.0);
    tensor_set(batch->mask, i, 1.0);
    check_call("outlier", instance, batch, LOSS_ADDS_UP);
    tensor_set(batch->logprob, i, before[0]);
    tensor_set(batch->old_logprob, i, before[1]);
    tensor_set(batch->advantages, i, before[2]);
    tensor_set(batch->mask, i, before[3]);
  }
}

enum { LARGE_COUNT = (1 << 22) + 1000, LARGE_PARTS = 3 };

// The bits of a large call are those of its parts, which are small, and of the mask.
static void check_parts(const char *what, const one_pass_call *call)
{
  static const int64_t sizes[LARGE_PARTS] = {1 << 21, 1 << 21, 1000};
  const batch_list parts = batch_split(call->batch, LARGE_PARTS, sizes);
  const batch_list list = batch_list_of(call->batch);
  const rft_reduction reduction = reduction_of(&call->report);
  double loss = 0.0;
  for (int64_t k = 0, start = 0; k < LARGE_PARTS; start += sizes[k++]) {
    const rft_tensor *const mask = tensor_slice(call->mask, start, sizes[k]);
    const evaluation part = evaluate_ok(call->instance, parts.batch[k], mask, &reduction, float32);
    check_same_bytes(what, tensor_slice(call->output.gradient, start, sizes[k]), part.gradient);
    loss += part.loss;
  }
  cr_assert(is_close(call->output.loss, loss, 1e-6), "%s: loss is %.17g, expected %.17g", what,
            call->output.loss, loss);
  check_same_bytes(what, call->mask, select_ok(call->instance, &list).mask[0]);
}

// Gradients from 16 MiB on are written past the caches where they, and the mask, are aligned for
// it: with malloc's 16 bytes past a page, 48 bytes on.
Test(one_pass, a_gradient_larger_than_caches)
{
  static const struct {
    const char *name;
    large_kind kind;
    int64_t offset;
    bool metrics;
  } ways[] = {{"aligned, fresh", LARGE_FRESH, 48, false},
              {"aligned, stale", LARGE_STALE, 48, false},
              {"aligned, stale, with metrics", LARGE_STALE, 48, true},
              {"not aligned", LARGE_STALE, 0, false}};
  const rft_instance *const instance = m2po_create_on(host_new(HOST_THREADED, 4), "{}");
  for (int way = 0; way < 4; ++way) {
    const rft_batch *const batch = large_batch(1, ways[way].kind, LARGE_COUNT);
    const tensor_layout layout = {1, {LARGE_COUNT, 0}, {1, 0}, false, ways[way].offset};
    one_pass_call call = new_call_into(instance, batch, tensor_new(uint8, &layout, NULL),
                                       tensor_new(float32, &layout, NULL));
    call.output.metrics = NULL;
    call.report.metrics = ways[way].metrics ? call.report.metrics : NULL;
    call_at_once(&call);
    cr_assert_eq(call.code, RFT_OK, "%s: %s", ways[way].name, call.error.message);
    check_parts(ways[way].name, &call);
  }
}

// Thresholds about the exact mean, where one unit in the last place decides.
Test(one_pass, thresholds_at_the_mean_and_beside_it)
{
  static const large_kind kinds[] = {LARGE_FRESH, LARGE_STALE, LARGE_TIES, LARGE_EQUAL};
  for (int k = 0; k < 4; ++k) {
    const rft_batch *const batch = large_batch(9, kinds[k], 20000);
    one_pass_call plain = new_call(m2po_create("{}"), batch, float32);
    call_separately(&plain);
    const double means[] = {metric(plain.report.metrics, "m2_before"),
                            metric(plain.report.metrics, "m2_after")};
    for (int t = 0; t < 12; ++t) {
      const double mean = means[t % 2];
      const double tau = t / 4 == 0 ? mean : nextafter(mean, t / 4 == 1 ? 0.0 : 1.0);
      char config[128];
      snprintf(config, sizeof config, "{\"m2_threshold\": %.17g, \"boundary\": \"%s\"}", tau,
               t / 2 % 2 == 0 ? "at_most" : "below");
      check_call(label(kinds[k], 20000, config), m2po_create(config), batch, LOSS_ADDS_UP);
    }
  }
}

// --------------------------------------------------------------------- every layout, dtype, config

static rft_tensor *rounded(const rft_tensor *source, rft_dtype dtype)
{
  rft_tensor *const tensor = tensor_like(source, dtype);
  for (int64_t i = 0; i < tensor_count(source); ++i) {
    tensor_set(tensor, i, tensor_get(source, i));
  }
  return tensor;
}

Test(one_pass, padded_and_packed_batches)
{
  static const large_kind kinds[] = {LARGE_FRESH, LARGE_STALE, LARGE_MASKED};
  static const int64_t rows[] = {1, 3, 100, 30000};
  for (int k = 0; k < 3; ++k) {
    for (int c = 0; c < CONFIGS; c += 3) {
      const rft_batch *const flat = large_batch(5, kinds[k], 30000);
      const rft_instance *const instance = m2po_create(configs[c]);
      for (int i = 0; i < 4; ++i) {
        check_call("padded", instance, large_padded(flat, rows[i]), LOSS_ADDS_UP);
        check_call("packed", instance, large_packed((uint64_t)i, flat, rows[i]), LOSS_ADDS_UP);
      }
      plugin_fixture_end();
    }
  }
}

Test(one_pass, inputs_of_any_dtype)
{
  const rft_dtype floats[] = {float16, bfloat16, float32, float64};
  const rft_dtype masks[] = {bool8, int8, uint8, int32, int64, float32, float16};
  const rft_batch *const source = large_batch(6, LARGE_STALE, 20001);
  const rft_instance *const instance = m2po_create("{}");
  for (int t = 0; t < 16; ++t) {
    const rft_dtype dtype = floats[t % 4];
    const rft_batch *const batch =
        batch_new(rounded(source->logprob, dtype), rounded(source->old_logprob, floats[t / 4]),
                  NULL, rounded(source->advantages, dtype_is_wide(dtype) ? bfloat16 : dtype),
                  rounded(source->mask, masks[t % 7]), NULL);
    check_call(dtype_name(dtype), instance, batch, LOSS_ADDS_UP);
  }
}

// Any non-zero byte is valid, and so is a negative one.
Test(one_pass, masks_of_any_bytes)
{
  rft_batch *const batch = large_batch(7, LARGE_STALE, 20001);
  unsigned char *const bytes = batch->mask->data;
  for (int64_t i = 0; i < 20001; ++i) {
    bytes[i] = bytes[i] == 0 ? 0 : (unsigned char)(1 + i % 255);
  }
  ((rft_tensor *)(uintptr_t)batch->mask)->dtype = int8;
  check_call("int8", m2po_create("{}"), batch, LOSS_ADDS_UP);
}

typedef struct output_layout {
  const char *name;
  tensor_layout layout;
} output_layout;

enum { ROWS = 50, COLUMNS = 411 };

Test(one_pass, outputs_in_any_layout)
{
  static const output_layout layouts[] = {
      {"compact", {2, {ROWS, COLUMNS}, {0, 0}, true, 0}},
      {"a byte further", {2, {ROWS, COLUMNS}, {0, 0}, true, 1}},
      {"an element further", {2, {ROWS, COLUMNS}, {0, 0}, true, 8}},
      {"transposed", {2, {ROWS, COLUMNS}, {1, ROWS}, false, 0}},
      {"rows with gaps", {2, {ROWS, COLUMNS}, {COLUMNS + 3, 1}, false, 0}},
      {"columns with gaps", {2, {ROWS, COLUMNS}, {COLUMNS * 2, 2}, false, 0}},
      {"reversed", {2, {ROWS, COLUMNS}, {-COLUMNS, -1}, false, 0}},
  };
  const rft_dtype gradients[] = {float16, bfloat16, float32, float64};
  const rft_batch *const batch = large_padded(large_batch(8, LARGE_STALE, ROWS * COLUMNS), ROWS);
  const rft_instance *const instance = m2po_create("{}");
  for (int m = 0; m < 7; ++m) {
    for (int g = 0; g < 7; ++g) {
      one_pass_call call[2];
      for (int i = 0; i < 2; ++i) {
        call[i] = new_call_into(instance, batch,
                                tensor_new(g % 2 == 0 ? bool8 : uint8, &layouts[m].layout, NULL),
                                tensor_new(gradients[(m + g) % 4], &layouts[g].layout, NULL));
      }
      call_at_once(&call[0]);
      call_separately(&call[1]);
      check_same_call(layouts[m].name, &call[0], &call[1], LOSS_ADDS_UP);
    }
  }
}

Test(one_pass, outputs_that_are_not_wanted_may_be_null)
{
  const rft_batch *const batch = large_batch(8, LARGE_STALE, 20000);
  const rft_instance *const instance = m2po_create("{}");
  for (int without = 0; without < 8; ++without) {
    one_pass_call call[2];
    for (int i = 0; i < 2; ++i) {
      call[i] = new_call(instance, batch, float32);
      call[i].scale = 4.0;
      call[i].output.gradient = (without & 1) != 0 ? NULL : call[i].output.gradient;
      call[i].output.metrics = (without & 2) != 0 ? NULL : call[i].output.metrics;
      call[i].report.metrics = (without & 4) != 0 ? NULL : call[i].report.metrics;
    }
    call_at_once(&call[0]);
    call_separately(&call[1]);
    check_same_call("without some outputs", &call[0], &call[1], LOSS_ADDS_UP);
  }
}

// Each shape of the loss: most are not computed in one pass.
ParameterizedTestParameters(one_pass, every_loss)
{
  return loss_cases();
}

ParameterizedTest(loss_case *parameter, one_pass, every_loss)
{
  const batch_dtypes dtypes = all_of(float32);
  const rft_batch *batch = loss_batch(1, &dtypes, 12, 100);
  if (!parameter->proximal) {
    batch =
        batch_new(batch->logprob, batch->old_logprob, NULL, batch->advantages, batch->mask, NULL);
  }
  reference_config config = parameter->config;
  for (int proximal = 0; proximal <= (parameter->proximal ? 1 : 0); ++proximal) {
    config.selection.proximal = proximal != 0;
    check_call(parameter->name, m2po_create(reference_config_text(&config)), batch, LOSS_ADDS_UP);
  }
}

// -------------------------------------------------------------------------------------- reference

static void check_against_reference(const char *what, const one_pass_call *call,
                                    const reference_selection *config)
{
  const int64_t count = batch_count(call->batch);
  bool *const keep = test_alloc(count);
  const reference_counts expected =
      reference_select(config, batch_tokens(call->batch), count, keep);
  for (int64_t i = 0; i < count; ++i) {
    cr_assert_eq(tensor_get(call->mask, i), keep[i], "%s: position %d", what, (int)i);
  }
  const double *const metrics = call->report.metrics;
  cr_assert_eq(metric(metrics, "trust_region_tokens"), (double)expected.trust_region, "%s", what);
  cr_assert_eq(metric(metrics, "masked_tokens"), (double)expected.masked, "%s", what);
  cr_assert(metric(metrics, "m2_sum_before") == expected.sum_before, "%s", what);
  cr_assert(metric(metrics, "m2_sum_after") == expected.sum_after, "%s", what);
  cr_assert(metric(metrics, "m2_before") == expected.m2_before, "%s", what);
  cr_assert(metric(metrics, "m2_after") == expected.m2_after, "%s", what);
  cr_assert_eq(call->report.kept_tokens, expected.valid - expected.masked, "%s", what);
}

static reference_selection some_selection(rng *r, const rft_batch *batch)
{
  reference_selection config = {.tau = 0.04};
  bool *const keep = test_alloc(batch_count(batch));
  const reference_counts counts =
      reference_select(&config, batch_tokens(batch), batch_count(batch), keep);
  const double thresholds[] = {0.0,
                               0.04,
                               0.0625,
                               1e300,
                               5e-324,
                               1e-41,
                               counts.m2_before,
                               nextafter(counts.m2_before, 0),
                               counts.m2_after};
  config = (reference_selection){.off = rng_below(r, 20) == 0,
                                 .tau = thresholds[rng_below(r, 9)],
                                 .all_tokens = rng_below(r, 3) == 0,
                                 .below = rng_below(r, 3) == 0,
                                 .min_kept = rng_below(r, 3) == 0 ? rng_below(r, 20) : 0};
  return config;
}

ParameterizedTestParameters(one_pass, agrees_with_the_reference)
{
  batch_kind *const kinds = cr_malloc(BATCH_KINDS * sizeof *kinds);
  for (int kind = 0; kind < BATCH_KINDS; ++kind) {
    kinds[kind] = (batch_kind)kind;
  }
  return cr_make_param_array(batch_kind, kinds, BATCH_KINDS);
}

ParameterizedTest(batch_kind *kind, one_pass, agrees_with_the_reference)
{
  static const int64_t counts[] = {0, 1, 2, 7, 64, 300, 511, 512, 513, 700, 1100};
  const batch_dtypes sets[] = {all_of(float32), all_of(bfloat16), all_of(float16), all_of(float64)};
  for (uint64_t seed = 0; seed < 66; ++seed) {
    rng r = {seed};
    const rft_batch *const random =
        random_batch(&r, *kind, &sets[seed % 7 < 4 ? 0 : seed % 7 - 3], counts[seed % 11]);
    const rft_batch *const batch = batch_new(random->logprob, random->old_logprob, NULL,
                                             random->advantages, random->mask, NULL);
    const reference_selection selection = some_selection(&r, batch);
    const reference_config config = {selection, reference_objective_default()};
    char what[512];
    snprintf(what, sizeof what, "%s, seed %d, %s", batch_kind_names[*kind], (int)seed,
             reference_config_text(&config));
    one_pass_call at_once = new_call(m2po_create(reference_config_text(&config)), batch, float32);
    one_pass_call separate = new_call(at_once.instance, batch, float32);
    call_at_once(&at_once);
    call_separately(&separate);
    if (separate.code != RFT_OK) { // a loss may overflow
      check_same_failure(what, &at_once, &separate);
    } else {
      check_same_call(what, &at_once, &separate, LOSS_ADDS_UP);
      check_against_reference(what, &at_once, &selection);
    }
    plugin_fixture_end();
  }
}

ParameterizedTestParameters(one_pass, golden_answer)
{
  return golden_parameters(false);
}

ParameterizedTest(int *index, one_pass, golden_answer)
{
  const golden_case golden = golden_open(*index);
  if (golden.token_count > 0) {
    return; // the caller's count of tokens is not the batch's: not for one pass
  }
  const rft_dtype dtype = dtype_is_wide(golden.batch->logprob->dtype) ? float64 : float32;
  one_pass_call call = new_call(m2po_create(golden.config_text), golden.batch, dtype);
  call.scale = golden.scale;
  call_at_once(&call);
  cr_assert_eq(call.code, RFT_OK, "%s: %s", golden.name, call.error.message);
  cr_expect(is_close(call.output.loss, golden_number(&golden, "loss"), LOSS_TOLERANCE),
            "%s: loss is %.17g", golden.name, call.output.loss);
  cr_expect_eq(metric(call.report.metrics, "m2_after"), golden_number(&golden, "m2_after"), "%s",
               golden.name);
  for (int64_t i = 0; i < batch_count(golden.batch); ++i) {
    cr_expect_eq(tensor_get(call.mask, i), golden_element(&golden, "keep", i), "%s: keep[%d]",
                 golden.name, (int)i);
    const double gradient = tensor_get(call.output.gradient, i);
    cr_expect(is_close(gradient, golden_element(&golden, "grad", i), LOSS_TOLERANCE),
              "%s: gradient[%d] is %.17g", golden.name, (int)i, gradient);
  }
}

// -------------------------------------------------------------------- what must not change a bit

static void check_bits(const char *what, const one_pass_call *a, const one_pass_call *b)
{
  check_same_call(what, a, b, LOSS_AVERAGES);
  cr_assert(same_bits(a->output.loss, b->output.loss), "%s: loss is %a and %a", what,
            a->output.loss, b->output.loss);
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    cr_assert(same_bits(a->output.metrics[i], b->output.metrics[i]), "%s: %s", what,
              m2po()->metrics[i]->name);
  }
}

ParameterizedTestParameters(one_pass, threads_and_their_order_change_no_bit)
{
  return large_kinds();
}

ParameterizedTest(large_kind *kind, one_pass, threads_and_their_order_change_no_bit)
{
  static const int32_t hints[] = {1, 2, 8};
  const rft_batch *const batch = large_batch(11, *kind, 150000);
  one_pass_call serial = new_call(m2po_create("{}"), batch, float32);
  call_at_once(&serial);
  for (int t = HOST_REVERSED; t <= HOST_THREADED; ++t) {
    for (int h = 0; h < 3; ++h) {
      const rft_host *const host = host_new((host_threads)t, hints[h]);
      one_pass_call other = new_call(m2po_create_on(host, "{}"), batch, float32);
      call_at_once(&other);
      check_bits(large_kind_names[*kind], &other, &serial);
    }
  }
}

ParameterizedTestParameters(one_pass, every_instruction_set_gives_the_same_bits)
{
  return large_kinds();
}

ParameterizedTest(large_kind *kind, one_pass, every_instruction_set_gives_the_same_bits)
{
  static const char *const names[] = {"baseline", "avx2", "avx512"};
  const rft_batch *const batch = large_batch(12, *kind, 50000);
  one_pass_call best = new_call(m2po_create("{}"), batch, float32);
  call_at_once(&best);
  for (int t = 0; t < 3; ++t) {
    setenv("M2PO_TARGET", names[t], 1);
    rft_instance *instance = NULL;
    if (m2po()->create(m2po(), host_new(HOST_SERIAL, 1), "{}", 2, &instance, NULL) != RFT_OK) {
      continue; // not of this processor
    }
    one_pass_call other = new_call(instance, batch, float32);
    call_at_once(&other);
    m2po()->destroy(instance);
    check_bits(names[t], &other, &best);
  }
}

Test(one_pass, an_unknown_instruction_set_is_refused_with_those_that_there_are)
{
  setenv("M2PO_TARGET", "mmx", 1);
  const rft_error error = m2po_create_error("{}");
  cr_expect_eq(error.code, RFT_INVALID_ARGUMENT);
  cr_expect(strstr(error.message, "M2PO_TARGET") != NULL, "%s", error.message);
  cr_expect(strstr(error.message, "\"mmx\"") != NULL, "%s", error.message);
  cr_expect(strstr(error.message, "baseline") != NULL, "%s", error.message);
}

// ---------------------------------------------------------------------------------------- evaluate

static void check_evaluate(const char *what, const rft_instance *instance, const rft_batch *batch,
                           const rft_tensor *mask, const rft_reduction *reduction, rft_dtype dtype)
{
  const evaluation twice = evaluate_ok(instance, batch, mask, reduction, dtype);
  one_pass_call once = new_call(instance, batch, dtype);
  cr_assert_eq(one_pass()->evaluate(instance, batch, mask, reduction, &once.output, &once.error),
               RFT_OK, "%s: %s", what, once.error.message);
  cr_assert(same_bits(once.output.loss, twice.loss), "%s: loss", what);
  check_same_bytes(what, once.output.gradient, twice.gradient);
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    cr_assert(same_bits(once.output.metrics[i], twice.metrics[i]), "%s: %s", what,
              m2po()->metrics[i]->name);
  }
}

ParameterizedTestParameters(one_pass, evaluate_gives_the_same_bits)
{
  return large_kinds();
}

ParameterizedTest(large_kind *kind, one_pass, evaluate_gives_the_same_bits)
{
  const rft_dtype dtypes[] = {float32, float64, bfloat16};
  const rft_batch *const batch = large_batch(13, *kind, 20011);
  for (int c = 0; c < CONFIGS; ++c) {
    rft_instance *const instance = m2po_create_on(host_new(HOST_THREADED, 4), configs[c]);
    const batch_list list = batch_list_of(batch);
    const selection_result selection = select_ok(instance, &list);
    const rft_reduction reduction = reduction_of(&selection.report);
    check_evaluate("with a mask", instance, batch, selection.mask[0], &reduction, dtypes[c % 3]);
    check_evaluate("without", instance, batch, NULL, NULL, dtypes[c % 3]);
  }
}
