// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// select_evaluate where something is wrong: the code and the message of the separate calls, report,
// loss and metrics as they were, and the same on many ranks.

#include "bad_inputs.h"
#include "compare.h"
#include "large_batches.h"
#include "one_pass.h"
#include "rank_group.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>

TestSuite(one_pass_errors, .fini = plugin_fixture_end);

static void check_failure(const char *what, const rft_instance *instance, const rft_batch *batch,
                          rft_dtype gradient)
{
  one_pass_call at_once = new_call(instance, batch, gradient);
  one_pass_call separate = new_call(instance, batch, gradient);
  call_at_once(&at_once);
  call_separately(&separate);
  check_same_failure(what, &at_once, &separate);
  one_pass_call silent = new_call(instance, batch, gradient);
  cr_assert_eq(one_pass()->select_evaluate(instance, batch, NULL, 0, silent.mask, &silent.report,
                                           &silent.output, NULL),
               separate.code, "%s: without an error", what);
}

// -------------------------------------------------------------------------------------- the batch

ParameterizedTestParameters(one_pass_errors, of_a_wrong_batch)
{
  int *const index = cr_malloc((size_t)bad_input_count * sizeof *index);
  for (int i = 0; i < bad_input_count; ++i) {
    index[i] = i;
  }
  return cr_make_param_array(int, index, (size_t)bad_input_count);
}

ParameterizedTest(int *index, one_pass_errors, of_a_wrong_batch)
{
  const bad_input *const bad = &bad_inputs[*index];
  rft_batch *const batch = bad->packed ? good_packed_batch() : good_batch();
  const bool proximal = strstr(bad->name, "proximal") != NULL;
  const rft_instance *const instance =
      m2po_create(proximal ? "{\"m2_reference\": \"proximal\"}" : "{}");
  rft_tensor *const mask = tensor_like(batch->logprob, uint8);
  rft_tensor *const gradient = tensor_like(batch->logprob, float32);
  bad->spoil(batch);
  one_pass_call at_once = new_call_into(instance, batch, mask, gradient);
  one_pass_call separate = new_call_into(instance, batch, mask, gradient);
  call_at_once(&at_once);
  call_separately(&separate);
  check_same_failure(bad->name, &at_once, &separate);
  for (int64_t i = 0; at_once.code != RFT_OUT_OF_RANGE && i < 6; ++i) {
    cr_expect_eq(((unsigned char *)mask->data)[i], 0, "%s: the mask is written", bad->name);
    cr_expect_eq(((float *)gradient->data)[i], 0.0F, "%s: the gradient is written", bad->name);
  }
}

enum { COUNT = 40001 };

// A large batch whose last token is valid, and finite.
static rft_batch *batch_to_spoil(large_kind kind)
{
  rft_batch *const batch = large_batch(2, kind, COUNT);
  tensor_set(batch->logprob, COUNT - 1, -1.0);
  tensor_set(batch->old_logprob, COUNT - 1, -1.25);
  tensor_set(batch->advantages, COUNT - 1, 1.0);
  tensor_set(batch->mask, COUNT - 1, 1);
  return batch;
}

Test(one_pass_errors, a_value_that_is_not_finite_at_the_very_end)
{
  static const double values[] = {NAN, INFINITY, -INFINITY};
  static const large_kind kinds[] = {LARGE_FRESH, LARGE_VERY_STALE, LARGE_EQUAL};
  static const char *const configs[] = {"{}", "{\"selection\": \"all_tokens\"}",
                                        "{\"m2_threshold\": null}",
                                        "{\"m2_threshold\": 0, \"boundary\": \"below\"}"};
  for (int t = 0; t < 3; ++t) {
    for (int v = 0; v < 3; ++v) {
      for (int k = 0; k < 3; ++k) {
        rft_batch *const batch = batch_to_spoil(kinds[k]);
        const rft_tensor *const tensors[] = {batch->logprob, batch->old_logprob, batch->advantages};
        tensor_set(tensors[t], COUNT - 1, values[v]);
        check_failure("last token", m2po_create(configs[(t + v + k) % 4]), batch, float32);
        tensor_set(tensors[t], COUNT - 400, values[v]); // in a whole block, and earlier
        tensor_set(batch->mask, COUNT - 400, 1);
        tensor_set(batch->mask, COUNT - 1, 0);
        check_failure("a token of a whole block", m2po_create(configs[(t + k) % 4]), batch,
                      float32);
      }
    }
  }
}

Test(one_pass_errors, a_square_that_overflows)
{
  static const char *const configs[] = {
      "{}",
      "{\"selection\": \"all_tokens\"}",
      "{\"m2_threshold\": null}",
      "{\"selection\": \"all_tokens\", \"m2_threshold\": null}",
      "{\"selection\": \"all_tokens\", \"m2_threshold\": null, \"boundary\": \"below\"}",
      "{\"m2_threshold\": 1e300}"};
  static const large_kind kinds[] = {LARGE_FRESH, LARGE_VERY_STALE};
  for (int c = 0; c < 6; ++c) {
    for (int k = 0; k < 2; ++k) {
      for (int64_t i = COUNT - 1; i > 0; i -= 20000) {
        rft_batch *const batch = batch_to_spoil(kinds[k]);
        tensor_set(batch->logprob, i, 2e19);
        tensor_set(batch->old_logprob, i, 0.0);
        tensor_set(batch->advantages, i, 1.0);
        tensor_set(batch->mask, i, 1);
        check_failure(configs[c], m2po_create(configs[c]), batch, float32);
      }
    }
  }
}

Test(one_pass_errors, a_ratio_a_loss_or_a_gradient_that_overflows)
{
  rft_batch *const batch = batch_to_spoil(LARGE_FRESH);
  tensor_set(batch->logprob, COUNT - 1, 100.0);
  tensor_set(batch->advantages, COUNT - 1, -1.0); // not in T: it stays
  check_failure("ratio", m2po_create("{\"log_ratio_clip\": null}"), batch, float32);
  tensor_set(batch->advantages, COUNT - 1, -3e38);
  tensor_set(batch->logprob, COUNT - 1, 10.0);
  check_failure("float16 gradient", m2po_create("{}"), batch, float16);
  tensor_set(batch->logprob, COUNT - 1, 18.0);
  check_failure("float32 gradient", m2po_create("{}"), batch, float32);
}

// Float32 terms that are infinite where their slopes, by a small weight, are not: an open token's
// is not in a kernel's sum.
Test(one_pass_errors, a_term_that_overflows_where_its_slope_does_not)
{
  static const int64_t counts[] = {20480, 20300, 512, 300, 3};
  for (int n = 0; n < 5; ++n) {
    rft_batch *const batch = large_batch(4, LARGE_FRESH, counts[n]);
    const int64_t places[] = {counts[n] - 1, counts[n] / 2};
    for (int p = 0; p < 2; ++p) {
      tensor_set(batch->old_logprob, places[p], 0.0);
      tensor_set(batch->logprob, places[p], 0.21); // over tau, but affordable
      tensor_set(batch->advantages, places[p], 3e38);
      tensor_set(batch->mask, places[p], 1);
      check_call("a large advantage", m2po_create("{\"m2_threshold\": 0.0225}"), batch,
                 LOSS_ADDS_UP);
      check_call("a large advantage", m2po_create("{}"), batch, LOSS_ADDS_UP);
    }
  }
}

Test(one_pass_errors, a_float_mask_that_holds_something_else_at_the_end)
{
  rft_batch *const batch = batch_to_spoil(LARGE_FRESH);
  rft_tensor *const mask = tensor_like(batch->mask, float32);
  for (int64_t i = 0; i < COUNT; ++i) {
    tensor_set(mask, i, tensor_get(batch->mask, i));
  }
  tensor_set(mask, COUNT - 1, 0.5);
  batch->mask = mask;
  check_failure("0.5", m2po_create("{}"), batch, float32);
}

Test(one_pass_errors, a_config_that_needs_what_the_batch_has_not)
{
  rft_batch *const batch = good_packed_batch();
  check_failure("proximal", m2po_create("{\"m2_reference\": \"proximal\"}"), batch, float32);
  check_failure("padded length", m2po_create("{\"loss_agg_mode\": \"seq-mean-token-sum-norm\"}"),
                batch, float32);
}

// ------------------------------------------------------------------------------ the other
// arguments

typedef void (*spoil_call)(one_pass_call *call);

static void no_mask(one_pass_call *call)
{
  call->mask = NULL;
}

static void mask_of_another_shape(one_pass_call *call)
{
  call->mask = tensor_2d(uint8, 3, 2, NULL);
}

static void mask_of_int8(one_pass_call *call)
{
  call->mask = tensor_2d(int8, 2, 3, NULL);
}

static void mask_of_stride_0(one_pass_call *call)
{
  call->mask = tensor_new(uint8, &(tensor_layout){2, {2, 3}, {0, 1}, false, 0}, NULL);
}

static void gradient_of_another_shape(one_pass_call *call)
{
  call->output.gradient = tensor_2d(float32, 3, 2, NULL);
}

static void gradient_of_int32(one_pass_call *call)
{
  call->output.gradient = tensor_2d(int32, 2, 3, NULL);
}

static void gradient_over_logprob(one_pass_call *call)
{
  call->output.gradient = call->batch->logprob;
}

static void short_report(one_pass_call *call)
{
  call->report.struct_size = RFT_STRUCT_SIZE(rft_selection_report, metrics);
}

static void report_of_few_metrics(one_pass_call *call)
{
  call->report.metric_count = 3;
}

static void report_with_reserved(one_pass_call *call)
{
  call->report.reserved = 1;
}

static void short_output(one_pass_call *call)
{
  call->output.struct_size = RFT_STRUCT_SIZE(rft_output, metrics);
}

static void output_of_few_metrics(one_pass_call *call)
{
  call->output.metric_count = 3;
}

static void scale_of_nan(one_pass_call *call)
{
  call->scale = NAN;
}

static void short_collectives(one_pass_call *call)
{
  static const rft_collectives collectives = {.struct_size = 8, .size = 1};
  call->collectives = &collectives;
}

static void short_batch(one_pass_call *call)
{
  ((rft_batch *)(uintptr_t)call->batch)->struct_size = 8;
}

Test(one_pass_errors, of_a_wrong_argument)
{
  static const struct {
    const char *what;
    spoil_call spoil;
  } wrong[] = {
      {"no mask", no_mask},
      {"mask of another shape", mask_of_another_shape},
      {"mask of int8", mask_of_int8},
      {"mask of stride 0", mask_of_stride_0},
      {"gradient of another shape", gradient_of_another_shape},
      {"gradient of int32", gradient_of_int32},
      {"gradient over logprob", gradient_over_logprob},
      {"short report", short_report},
      {"report of few metrics", report_of_few_metrics},
      {"report with reserved", report_with_reserved},
      {"short output", short_output},
      {"output of few metrics", output_of_few_metrics},
      {"scale of NaN", scale_of_nan},
      {"short collectives", short_collectives},
      {"short batch", short_batch},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    rft_batch *const batch = good_batch();
    batch->proximal_logprob = NULL; // so that one pass could do it
    one_pass_call at_once = new_call(m2po_create("{}"), batch, float32);
    one_pass_call separate = new_call(at_once.instance, batch, float32);
    wrong[i].spoil(&at_once);
    wrong[i].spoil(&separate);
    call_at_once(&at_once);
    call_separately(&separate);
    check_same_failure(wrong[i].what, &at_once, &separate);
  }
}

// The separate calls write the mask when nothing else is read any more: there it may lie anywhere.
Test(one_pass_errors, a_mask_over_something_else)
{
  rft_batch *const batch = large_batch(0, LARGE_FRESH, COUNT);
  rft_tensor *const gradient = tensor_like(batch->logprob, float32);
  const struct {
    const char *part;
    void *data;
  } places[] = {{"logprob", batch->logprob->data},
                {"old_logprob", batch->old_logprob->data},
                {"advantages", batch->advantages->data},
                {"overlap mask", batch->mask->data},
                {"gradient", gradient->data},
                {"advantages", (char *)batch->advantages->data + 3 * (size_t)COUNT}};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i) {
    rft_tensor *const mask = tensor_like(batch->logprob, uint8);
    mask->data = places[i].data;
    one_pass_call call = new_call_into(m2po_create("{}"), batch, mask, gradient);
    call_at_once(&call);
    cr_expect_eq(call.code, RFT_INVALID_ARGUMENT, "%s", places[i].part);
    cr_expect(strstr(call.error.message, "mask") != NULL, "%s", call.error.message);
    cr_expect(strstr(call.error.message, places[i].part) != NULL, "%s", call.error.message);
    check_untouched(places[i].part, &call);
  }
}

// ------------------------------------------------------------------------------------------- ranks

enum { RANKS = 3 };

static void call_on_rank(void *context, const rft_collectives *collectives)
{
  one_pass_call *const call = context;
  call->collectives = collectives;
  call_at_once(call);
}

static void run_calls(one_pass_call calls[RANKS])
{
  void *contexts[RANKS];
  for (int i = 0; i < RANKS; ++i) {
    contexts[i] = &calls[i];
  }
  run_ranks(RANKS, call_on_rank, contexts);
}

static void new_calls(const rft_instance *instance, const batch_list *parts,
                      one_pass_call calls[RANKS])
{
  for (int i = 0; i < RANKS; ++i) {
    calls[i] = new_call(instance, parts->batch[i], float32);
  }
}

static void check_ranks(const rft_instance *instance, const rft_batch *batch,
                        const int64_t sizes[RANKS])
{
  const batch_list parts = batch_split(batch, RANKS, sizes);
  one_pass_call whole = new_call(instance, batch, float32);
  one_pass_call calls[RANKS];
  new_calls(instance, &parts, calls);
  call_at_once(&whole);
  run_calls(calls);
  int64_t start = 0;
  for (int i = 0; i < RANKS; ++i) {
    const int64_t count = batch_count(parts.batch[i]);
    cr_assert_eq(calls[i].code, RFT_OK, "rank %d: %s", i, calls[i].error.message);
    cr_expect_eq(calls[i].report.valid_tokens, whole.report.valid_tokens);
    cr_expect_eq(calls[i].report.kept_tokens, whole.report.kept_tokens);
    check_same_bytes("mask", calls[i].mask, tensor_slice(whole.mask, start, count));
    check_same_bytes("gradient", calls[i].output.gradient,
                     tensor_slice(whole.output.gradient, start, count));
    start += count;
  }
}

Test(one_pass_errors, ranks_give_the_bits_of_one_call_over_everything)
{
  static const int64_t sizes[][RANKS] = {{20000, 3, 19998}, {0, 40001, 0}, {13000, 13001, 14000}};
  static const large_kind kinds[] = {LARGE_STALE, LARGE_TIES, LARGE_MASKED};
  for (int i = 0; i < 3; ++i) {
    check_ranks(m2po_create("{}"), large_batch(3, kinds[i], COUNT), sizes[i]);
  }
}

static void spoil_value(one_pass_call *call)
{
  tensor_set(call->batch->logprob, 17, NAN);
}

static void spoil_report(one_pass_call *call)
{
  call->report.metric_count = 1;
}

static void spoil_output(one_pass_call *call)
{
  call->output.struct_size = 8;
}

static void spoil_mask(one_pass_call *call)
{
  call->mask = NULL;
}

static void spoil_gradient(one_pass_call *call)
{
  call->output.gradient = call->batch->old_logprob;
}

static void spoil_scale(one_pass_call *call)
{
  call->scale = INFINITY;
}

Test(one_pass_errors, one_rank_that_fails_fails_all)
{
  static const spoil_call spoils[] = {spoil_value, spoil_report,   spoil_output,
                                      spoil_mask,  spoil_gradient, spoil_scale};
  static const int64_t sizes[RANKS] = {20000, 10001, 10000};
  for (int s = 0; s < 6; ++s) {
    rft_batch *const batch = large_batch(3, LARGE_STALE, COUNT);
    const batch_list parts = batch_split(batch, RANKS, sizes);
    one_pass_call calls[RANKS];
    new_calls(m2po_create("{\"m2_threshold\": 0.1}"), &parts, calls);
    const int bad = s % RANKS;
    tensor_set(calls[bad].batch->mask, 17, 1);
    spoils[s](&calls[bad]);
    run_calls(calls);
    for (int i = 0; i < RANKS; ++i) {
      cr_expect_neq(calls[i].code, RFT_OK, "case %d: rank %d succeeds", s, i);
      cr_expect(i != bad || calls[i].code != RFT_ABORTED, "case %d: %s", s, calls[i].error.message);
      check_untouched("a rank", &calls[i]);
    }
  }
}

Test(one_pass_errors, a_group_of_one_is_like_none)
{
  const rft_batch *const batch = large_batch(3, LARGE_STALE, COUNT);
  one_pass_call alone = new_call(m2po_create("{}"), batch, float32);
  one_pass_call in_group = new_call(alone.instance, batch, float32);
  void *const contexts[] = {&in_group};
  call_at_once(&alone);
  run_ranks(1, call_on_rank, contexts);
  in_group.collectives = NULL;
  check_same_call("a group of one", &in_group, &alone, LOSS_AVERAGES);
  cr_expect(same_bits(in_group.output.loss, alone.output.loss));
}
