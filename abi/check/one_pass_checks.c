// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The one-pass functions, where a plugin offers them, beside the loss's own.

#include "check.h"
#include "selecting.h"
#include "subjects.h"
#include "verdict.h"

#include <inttypes.h>

enum { ROWS = 12, COLUMNS = 300 };

static const rft_one_pass *offered(const check_subject *subject)
{
  const rft_one_pass *const one_pass = subject->plugin->get_extension(RFT_PLUGIN_ONE_PASS);
  if (one_pass == NULL) {
    check_skip("the plugin does not offer %s", RFT_PLUGIN_ONE_PASS);
  }
  return one_pass;
}

static void one_pass_is_whole(const check_subject *subject)
{
  const rft_one_pass *const one_pass = offered(subject);
  EXPECT(one_pass->struct_size >= RFT_STRUCT_SIZE(rft_one_pass, select_evaluate),
         "rft_one_pass: expected struct_size of at least %u, found %u",
         RFT_STRUCT_SIZE(rft_one_pass, select_evaluate), one_pass->struct_size);
  EXPECT(one_pass->evaluate != NULL, "rft_one_pass: evaluate is NULL");
  EXPECT(one_pass->select_evaluate != NULL, "rft_one_pass: select_evaluate is NULL");
}

// --------------------------------------------------------------------------------------------
// calls

/// The outputs of a call, and what it returned.
typedef struct one_pass_call {
  rft_selection_report report;
  double *selection_metrics;
  const rft_tensor *mask;
  check_outcome outcome;
  const rft_tensor *gradient;
} one_pass_call;

static one_pass_call new_call(const check_subject *subject, const rft_batch *batch)
{
  const check_layout layout = {.placement = PLAIN};
  const size_t size = (size_t)subject->loss->metric_count * sizeof(double);
  one_pass_call made = {.selection_metrics = check_memory(size, PLAIN),
                        .mask = check_mask_like(batch, DTYPE_UINT8, &layout),
                        .gradient = check_mask_like(batch, DTYPE_FLOAT32, &layout)};
  made.report = check_report(subject, made.selection_metrics);
  made.outcome = (check_outcome){.error.struct_size = sizeof(rft_error),
                                 .count = check_tensor_count(batch->logprob),
                                 .metric_count = subject->loss->metric_count,
                                 .metrics = check_memory(size, PLAIN)};
  for (int64_t i = 0; i < made.outcome.metric_count; ++i) {
    made.outcome.metrics[i] = UNWRITTEN;
  }
  return made;
}

static rft_output output_of(const one_pass_call *call)
{
  return (rft_output){.struct_size = RFT_STRUCT_SIZE(rft_output, metric_count),
                      .loss = UNWRITTEN,
                      .gradient = call->gradient,
                      .metrics = call->outcome.metrics,
                      .metric_count = call->outcome.metric_count};
}

static void select_evaluate(const check_subject *subject, const rft_instance *instance,
                            const rft_batch *batch, one_pass_call *call)
{
  rft_output output = output_of(call);
  check_outcome *const outcome = &call->outcome;
  outcome->code = offered(subject)->select_evaluate(instance, batch, NULL, 0, call->mask,
                                                    &call->report, &output, &outcome->error);
  outcome->loss = output.loss;
  outcome->gradient = check_tensor_values(call->gradient);
}

static rft_batch *spread_batch(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_spread(&r, ROWS, COLUMNS);
  const check_form form = check_form_plain();
  return check_batch(&values, &form);
}

// -----------------------------------------------------------------------------------------
// evaluate

static void expect_same_evaluate(const char *what, const check_subject *subject,
                                 const rft_instance *instance, const rft_batch *batch,
                                 const rft_tensor *keep, const rft_reduction *reduction)
{
  const check_outcome expected =
      check_evaluate_ok(what, subject, instance, batch, keep, reduction, NULL);
  check_subject once = *subject;
  rft_policy_loss loss = *subject->loss;
  loss.evaluate = offered(subject)->evaluate;
  once.loss = &loss;
  const check_outcome found =
      check_evaluate_ok(what, &once, instance, batch, keep, reduction, NULL);
  EXPECT(check_same_outcome(&found, &expected),
         "%s: one_pass.evaluate gives other bits than evaluate; the loss is %.17g and %.17g", what,
         found.loss, expected.loss);
}

static void one_pass_evaluates(const check_subject *subject)
{
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = spread_batch(subject);
  const rft_reduction reduction = {.struct_size = RFT_STRUCT_SIZE(rft_reduction, scale),
                                   .valid_tokens = (int64_t)2 * ROWS * COLUMNS,
                                   .kept_tokens = (int64_t)ROWS * COLUMNS,
                                   .sequences = (int64_t)2 * ROWS,
                                   .scale = 3};
  expect_same_evaluate("counting the batch", subject, instance, batch, NULL, NULL);
  expect_same_evaluate("with counts", subject, instance, batch, batch->mask, &reduction);
}

// ------------------------------------------------------------------------------------------
// selecting

static void expect_same_report(const check_subject *subject, const one_pass_call *found,
                               const check_selected *expected)
{
  EXPECT(found->report.valid_tokens == expected->report.valid_tokens &&
             found->report.kept_tokens == expected->report.kept_tokens &&
             found->report.sequences == expected->report.sequences,
         "select_evaluate keeps %" PRId64 " of %" PRId64 " tokens, the separate functions %" PRId64
         " of %" PRId64,
         found->report.kept_tokens, found->report.valid_tokens, expected->report.kept_tokens,
         expected->report.valid_tokens);
  for (int64_t i = 0; i < subject->loss->metric_count; ++i) {
    EXPECT(found->selection_metrics[i] == expected->metrics[i],
           "select_evaluate: metric \"%.64s\" of the selection is %.17g, of the separate functions "
           "%.17g",
           subject->loss->metrics[i]->name, found->selection_metrics[i], expected->metrics[i]);
  }
  const double *const mask = check_tensor_values(found->mask);
  for (int64_t i = 0; i < expected->count; ++i) {
    EXPECT(mask[i] == expected->mask[i],
           "select_evaluate: another mask than the separate functions, first at position %" PRId64,
           i);
  }
}

static void one_pass_selects(const check_subject *subject)
{
  const double tolerance = 1e-5; // of float32 gradients
  const rft_instance *const instance = check_create(subject);
  rft_batch *const batch = spread_batch(subject);
  const check_selected selected =
      check_select_ok("separate functions", subject, instance, &batch, 1, NULL);
  one_pass_call call = new_call(subject, batch);
  select_evaluate(subject, instance, batch, &call);
  EXPECT(call.outcome.code == RFT_OK, "select_evaluate returns %d: %.400s", call.outcome.code,
         call.outcome.error.message);
  expect_same_report(subject, &call, &selected);
  const rft_reduction reduction = check_reduction_of(&selected.report);
  const check_outcome expected = check_evaluate_ok("separate functions", subject, instance, batch,
                                                   call.mask, &reduction, NULL);
  check_expect_near("select_evaluate", &call.outcome, &expected, tolerance);
}

static void one_pass_selects_nothing(const check_subject *subject)
{
  if (check_selects(subject->loss)) {
    return;
  }
  const rft_batch *const batch = spread_batch(subject);
  one_pass_call call = new_call(subject, batch);
  select_evaluate(subject, check_create(subject), batch, &call);
  EXPECT(call.outcome.code == RFT_UNIMPLEMENTED,
         "a loss that selects nothing: expected %d from select_evaluate, found %d",
         RFT_UNIMPLEMENTED, call.outcome.code);
}

// ---------------------------------------------------------------------------------------------
// errors

static void expect_untouched(const char *what, const one_pass_call *call)
{
  const check_outcome *const outcome = &call->outcome;
  EXPECT(outcome->error.code == outcome->code && outcome->error.message[0] != '\0',
         "%s: select_evaluate returns %d, the error says %d and \"%.100s\"", what, outcome->code,
         outcome->error.code, outcome->error.message);
  EXPECT(outcome->loss == UNWRITTEN, "%s: select_evaluate returns %d and has written the loss",
         what, outcome->code);
  EXPECT(call->report.valid_tokens == -1 && call->report.kept_tokens == -1 &&
             call->report.sequences == -1,
         "%s: select_evaluate returns %d and has written the report", what, outcome->code);
  for (int64_t i = 0; i < outcome->metric_count; ++i) {
    EXPECT(outcome->metrics[i] == UNWRITTEN && call->selection_metrics[i] == UNWRITTEN,
           "%s: select_evaluate returns %d and has written metrics", what, outcome->code);
  }
}

// Tokens are read and may be written before a value is found that can't be used; all else is known
// before.
static void one_pass_errors(const check_subject *subject)
{
  const check_layout layout = {.placement = PLAIN};
  const rft_instance *const instance = check_create(subject);
  rng r = {subject->seed};
  const check_form form = check_form_plain();
  const check_values values = check_values_spread(&r, ROWS, COLUMNS);
  const rft_batch *const good = check_batch(&values, &form);
  one_pass_call wrong_mask = new_call(subject, good);
  wrong_mask.mask = check_tensor(NULL, 2, ROWS, COLUMNS + 1, DTYPE_UINT8, &layout);
  select_evaluate(subject, instance, good, &wrong_mask);
  EXPECT(wrong_mask.outcome.code != RFT_OK, "a mask of another shape is accepted");
  expect_untouched("a mask of another shape", &wrong_mask);
  size_t size = 0;
  const unsigned char *const bytes = check_tensor_bytes(wrong_mask.gradient, &size);
  for (size_t i = 0; i < size; ++i) {
    EXPECT(bytes[i] == 0xA5, "a mask of another shape: select_evaluate has written the gradient");
  }
  values.mask[(ROWS * COLUMNS) - 1] = 1;
  values.logprob[(ROWS * COLUMNS) - 1] = __builtin_nan("");
  const rft_batch *const bad = check_batch(&values, &form);
  one_pass_call late = new_call(subject, bad);
  select_evaluate(subject, instance, bad, &late);
  if (late.outcome.code != RFT_OK) {
    expect_untouched("a NaN at the last position", &late);
  }
}

static const check CHECKS[] = {
    {871, "one_pass_is_whole", "P1, P22", CHECK_PLUGIN, true, "unknown_extension",
     "The one-pass functions are both set, in a table of at least the size of version 1.1.",
     one_pass_is_whole},
    {872, "one_pass_evaluates", "P22", CHECK_CONFIG, true, "one_pass_is_whole",
     "one_pass.evaluate gives the bits of evaluate.", one_pass_evaluates},
    {873, "one_pass_selects", "P22", CHECK_SELECTION, true, "one_pass_is_whole",
     "select_evaluate gives mask, counts, loss and gradient of the separate functions.",
     one_pass_selects},
    {874, "one_pass_selects_nothing", "P22", CHECK_LOSS, true, "one_pass_is_whole",
     "select_evaluate is UNIMPLEMENTED for a loss that selects nothing.", one_pass_selects_nothing},
    {875, "one_pass_errors", "P8, P22", CHECK_SELECTION, true, "one_pass_selects",
     "A call of select_evaluate that is refused leaves report, loss and metrics alone.",
     one_pass_errors},
};

const check_area one_pass_checks = CHECK_AREA(CHECKS);
