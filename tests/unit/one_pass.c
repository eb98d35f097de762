// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "one_pass.h"

#include "compare.h"

#include <criterion/criterion.h>

static const double loss_untouched = -777.0;

const rft_one_pass *one_pass(void)
{
  const rft_one_pass *const extension = m2po_plugin()->get_extension(RFT_PLUGIN_ONE_PASS);
  cr_assert(extension != NULL, "the plugin has no %s", RFT_PLUGIN_ONE_PASS);
  return extension;
}

one_pass_call new_call_into(const rft_instance *instance, const rft_batch *batch,
                            const rft_tensor *mask, const rft_tensor *gradient)
{
  return (one_pass_call){.instance = instance,
                         .batch = batch,
                         .mask = mask,
                         .report = {.struct_size = sizeof(rft_selection_report),
                                    .valid_tokens = -1,
                                    .kept_tokens = -2,
                                    .sequences = -3,
                                    .metrics = metrics_new(),
                                    .metric_count = m2po()->metric_count},
                         .output = {.struct_size = sizeof(rft_output),
                                    .loss = loss_untouched,
                                    .gradient = gradient,
                                    .metrics = metrics_new(),
                                    .metric_count = m2po()->metric_count},
                         .error = error_new()};
}

one_pass_call new_call(const rft_instance *instance, const rft_batch *batch, rft_dtype gradient)
{
  return new_call_into(instance, batch, tensor_like(batch->logprob, uint8),
                       tensor_like(batch->logprob, gradient));
}

void call_at_once(one_pass_call *call)
{
  call->code =
      one_pass()->select_evaluate(call->instance, call->batch, call->collectives, call->scale,
                                  call->mask, &call->report, &call->output, &call->error);
}

static int32_t select_mask(one_pass_call *call)
{
  rft_selection *selection = NULL;
  int32_t code = m2po()->selection_begin(call->instance, &selection, &call->error);
  if (code == RFT_OK) {
    code = m2po()->selection_add(selection, call->batch, &call->error);
  }
  if (code == RFT_OK) {
    code = m2po()->selection_finish(selection, call->collectives, &call->report, &call->error);
  }
  if (code == RFT_OK) {
    code = m2po()->selection_mask(selection, 0, call->mask, &call->error);
  }
  m2po()->selection_end(selection);
  return code;
}

void call_separately(one_pass_call *call)
{
  call->code = select_mask(call);
  if (call->code == RFT_OK) {
    rft_reduction reduction = reduction_of(&call->report);
    reduction.scale = call->scale;
    call->code = m2po()->evaluate(call->instance, call->batch, call->mask, &reduction,
                                  &call->output, &call->error);
  }
}

static void check_reports(const char *what, const rft_selection_report *a,
                          const rft_selection_report *b)
{
  cr_assert_eq(a->valid_tokens, b->valid_tokens, "%s: valid_tokens", what);
  cr_assert_eq(a->kept_tokens, b->kept_tokens, "%s: kept_tokens %lld, expected %lld", what,
               (long long)a->kept_tokens, (long long)b->kept_tokens);
  cr_assert_eq(a->sequences, b->sequences, "%s: sequences", what);
  for (int64_t i = 0; a->metrics != NULL && i < m2po()->metric_count; ++i) {
    cr_assert(same_bits(a->metrics[i], b->metrics[i]), "%s: %s is %a, expected %a", what,
              m2po()->metrics[i]->name, a->metrics[i], b->metrics[i]);
  }
}

// The sum of |w A r|: of the sizes of the gradient's elements.
static double sum_of_sizes(const rft_tensor *gradient)
{
  double sum = 0.0;
  for (int64_t i = 0; gradient != NULL && i < tensor_count(gradient); ++i) {
    sum += fabs(tensor_get(gradient, i));
  }
  return sum;
}

static void check_outputs(const char *what, const rft_output *a, const rft_output *b,
                          loss_closeness closeness)
{
  // A float32 term is within one and a half units in its last place.
  const double relative = closeness == LOSS_AVERAGES ? 1e-9 : 2e-7;
  cr_assert(fabs(a->loss - b->loss) <= relative * sum_of_sizes(b->gradient),
            "%s: loss is %.17g, expected %.17g, of terms that sum to %g", what, a->loss, b->loss,
            sum_of_sizes(b->gradient));
  for (int64_t i = 0; a->metrics != NULL && i < m2po()->metric_count; ++i) {
    cr_assert(
        is_close(a->metrics[i], b->metrics[i], 1e-12) || same_bits(a->metrics[i], b->metrics[i]),
        "%s: %s is %a, expected %a", what, m2po()->metrics[i]->name, a->metrics[i], b->metrics[i]);
  }
}

void check_same_call(const char *what, const one_pass_call *at_once, const one_pass_call *separate,
                     loss_closeness closeness)
{
  cr_assert_eq(separate->code, RFT_OK, "%s: %s", what, separate->error.message);
  cr_assert_eq(at_once->code, RFT_OK, "%s: %s", what, at_once->error.message);
  check_reports(what, &at_once->report, &separate->report);
  check_same_bytes(what, at_once->mask, separate->mask);
  if (separate->output.gradient != NULL) {
    check_same_bytes(what, at_once->output.gradient, separate->output.gradient);
  }
  check_outputs(what, &at_once->output, &separate->output, closeness);
}

void want_no_metrics(one_pass_call *call)
{
  call->report.metrics = NULL;
  call->report.metric_count = 0;
  call->output.metrics = NULL;
  call->output.metric_count = 0;
}

// Without metrics it takes another way.
void check_call(const char *what, const rft_instance *instance, const rft_batch *batch,
                loss_closeness closeness)
{
  one_pass_call at_once = new_call(instance, batch, float32);
  one_pass_call quiet = new_call(instance, batch, float32);
  one_pass_call separate = new_call(instance, batch, float32);
  want_no_metrics(&quiet);
  call_at_once(&at_once);
  call_at_once(&quiet);
  call_separately(&separate);
  check_same_call(what, &at_once, &separate, closeness);
  check_same_call(what, &quiet, &separate, closeness);
  cr_assert(same_bits(quiet.output.loss, at_once.output.loss),
            "%s: loss is %a without metrics, %a with them", what, quiet.output.loss,
            at_once.output.loss);
}

void check_untouched(const char *what, const one_pass_call *call)
{
  cr_assert_eq(call->output.loss, loss_untouched, "%s: the loss is written", what);
  cr_assert(call->report.valid_tokens == -1 && call->report.kept_tokens == -2 &&
                call->report.sequences == -3,
            "%s: the report is written", what);
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    cr_assert(call->report.metrics == NULL || call->report.metrics[i] == METRIC_UNWRITTEN,
              "%s: %s of the report is written", what, m2po()->metrics[i]->name);
    cr_assert(call->output.metrics == NULL || call->output.metrics[i] == METRIC_UNWRITTEN,
              "%s: %s of the output is written", what, m2po()->metrics[i]->name);
  }
}

void check_same_failure(const char *what, const one_pass_call *at_once,
                        const one_pass_call *separate)
{
  cr_assert_neq(separate->code, RFT_OK, "%s: nothing fails", what);
  cr_assert_eq(at_once->code, separate->code, "%s: code %d, expected %d", what, at_once->code,
               separate->code);
  cr_assert_eq(at_once->error.code, at_once->code, "%s", what);
  cr_assert_str_eq(at_once->error.message, separate->error.message, "%s", what);
  check_untouched(what, at_once);
}
