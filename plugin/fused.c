// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "fused.h"

#include "loss.h"
#include "metrics.h"
#include "pass.h"
#include "sample.h"
#include "select.h"
#include "support/error.h"

#include <float.h>

// ------------------------------------------------------------------------ by separate functions

// What a selection writes into a report.
static void copy_report(const rft_selection_report *found, rft_selection_report *report)
{
  report->valid_tokens = found->valid_tokens;
  report->kept_tokens = found->kept_tokens;
  report->sequences = found->sequences;
  for (int i = 0; report->metrics != NULL && i < M2PO_MASKED_FRACTION; ++i) {
    report->metrics[i] = found->metrics[i];
  }
}

// `problem`: an argument is wrong, as the other ranks have to be told (P17); code RFT_OK: none is.
static int32_t select_then_evaluate(const rft_instance *instance, const rft_batch *batch,
                                    const rft_collectives *collectives, double scale,
                                    const rft_tensor *mask, const rft_error *problem,
                                    rft_selection_report *report, rft_output *output,
                                    rft_error *error)
{
  // The caller's report stays as it is where the evaluation fails.
  double metrics[M2PO_METRIC_COUNT];
  rft_selection_report found = {
      .struct_size = sizeof found, .metrics = metrics, .metric_count = M2PO_METRIC_COUNT};
  rft_selection *selection = NULL;
  int32_t code = m2po_selection_begin(instance, &selection, error);
  if (code != RFT_OK) {
    m2po_selection_abstain(collectives);
    return code;
  }
  if (problem->code != RFT_OK) {
    m2po_selection_fail(selection, problem);
  } else {
    m2po_selection_add(selection, batch, NULL); // finish says it where this fails
  }
  code = m2po_selection_finish(selection, collectives, &found, error);
  if (code == RFT_OK) {
    code = m2po_selection_mask(selection, 0, mask, error);
  }
  m2po_selection_end(selection);
  if (code != RFT_OK) {
    return code;
  }
  const rft_reduction reduction = {.struct_size = sizeof reduction,
                                   .valid_tokens = found.valid_tokens,
                                   .kept_tokens = found.kept_tokens,
                                   .sequences = found.sequences,
                                   .scale = scale};
  code = m2po_evaluate_once(instance, batch, mask, &reduction, output, error);
  if (code == RFT_OK) {
    copy_report(&found, report);
  }
  return code;
}

// ----------------------------------------------------------------------------------- in one pass

// Where rounded sums don't decide, exact ones do.
static m2po_outcome run_until_decided(const rft_instance *instance, m2po_pass *pass,
                                      m2po_found *found)
{
  m2po_outcome outcome = m2po_pass_run(instance, pass, found);
  if (outcome == M2PO_UNDECIDED) {
    pass->exact = true;
    outcome = m2po_pass_run(instance, pass, found);
  }
  return outcome;
}

// False: not by this way.
static bool run(const rft_instance *instance, m2po_pass *pass, m2po_found *found,
                m2po_measures *total)
{
  const m2po_guess guess = m2po_guess_cut(instance, &pass->rule, &pass->evaluation.source);
  m2po_outcome outcome = M2PO_CUT_ELSEWHERE;
  if (guess.keeps_all) {
    pass->keeps_all = true;
    pass->bracket = (m2po_bracket){.low = FLT_MAX, .high = FLT_MAX};
    outcome = run_until_decided(instance, pass, found);
  }
  if (outcome == M2PO_CUT_ELSEWHERE) {
    pass->keeps_all = false;
    pass->bracket = guess.bracket;
    outcome = run_until_decided(instance, pass, found);
  }
  return outcome == M2PO_PASSED && m2po_evaluation_total(&pass->evaluation, total, NULL) == RFT_OK;
}

static int32_t open_mask(m2po_pass *pass, const rft_batch *batch, const rft_tensor *mask,
                         rft_error *error)
{
  int32_t code = m2po_selection_open_mask(mask, batch->logprob, &pass->mask, error);
  if (code == RFT_OK) {
    code = rft_batch_view_check_overlap(&pass->evaluation.batch, &pass->mask, "mask", error);
  }
  if (code == RFT_OK && rft_view_present(&pass->evaluation.gradient) &&
      rft_views_overlap(&pass->mask, &pass->evaluation.gradient)) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT,
                    "mask: expected memory apart from the gradient, found it to overlap it");
  }
  return code;
}

// Can it be one pass? Selection and loss have to see the same log-ratios, and what the loss divides
// by may not wait for the selection or another rank. (The other modes than these two have not
// counted.)
static bool suits_one_pass(const rft_instance *instance, const m2po_pass *pass,
                           const rft_collectives *collectives)
{
  const m2po_config *const config = &instance->config;
  const m2po_evaluation *const evaluation = &pass->evaluation;
  return evaluation->kernels != NULL && config->denominator == M2PO_VALID &&
         (config->loss_agg_mode == M2PO_TOKEN_MEAN ||
          config->loss_agg_mode == M2PO_SEQ_MEAN_TOKEN_SUM) &&
         config->m2_reference == M2PO_CURRENT && evaluation->slopes != NULL &&
         m2po_stage_is_flat(&pass->mask) &&
         (collectives == NULL ||
          (RFT_HAS_FIELD(collectives, rft_collectives, all_reduce_sum) && collectives->size == 1));
}

int32_t m2po_select_evaluate(const rft_instance *instance, const rft_batch *batch,
                             const rft_collectives *collectives, double scale,
                             const rft_tensor *mask, rft_selection_report *report,
                             rft_output *output, rft_error *error)
{
  m2po_pass pass = {.rule = m2po_rule_of(&instance->config),
                    .all_tokens = instance->config.selection == M2PO_ALL_TOKENS};
  const rft_reduction reduction = {.struct_size = sizeof reduction, .scale = scale};
  rft_error problem = {.struct_size = sizeof problem, .code = RFT_OK};
  m2po_found found;
  m2po_measures total;
  int32_t code =
      m2po_evaluation_open(instance, batch, NULL, &reduction, output, &pass.evaluation, &problem);
  if (code == RFT_OK) {
    code = open_mask(&pass, batch, mask, &problem);
  }
  if (code == RFT_OK) {
    code = m2po_selection_check_report(report, &problem);
  }
  // The quicker kernels know trust-region tokens alone, and no bracket below 0.
  pass.exact = code != RFT_OK || report->metrics != NULL || pass.all_tokens ||
               !(m2po_candidate_bound(&pass.rule) >= 0);
  const bool done = code == RFT_OK && suits_one_pass(instance, &pass, collectives) &&
                    run(instance, &pass, &found, &total);
  if (done) {
    const m2po_counts counts = {pass.evaluation.weights.valid, pass.evaluation.weights.sequences};
    m2po_selection_fill_report(&counts, found.constrained, &found.sum, &found.kept, report);
    m2po_evaluation_report(&total, output);
  }
  m2po_evaluation_free(&pass.evaluation);
  return done ? RFT_OK
              : select_then_evaluate(instance, batch, collectives, scale, mask, &problem, report,
                                     output, error);
}
