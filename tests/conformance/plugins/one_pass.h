// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The plugin of base.h with the one-pass functions, made of the separate ones.

#ifndef CONFORMANCE_ONE_PASS_H
#define CONFORMANCE_ONE_PASS_H

#include "base.h"

#define SELECT_EVALUATE_PARAMETERS                                                                 \
  const rft_instance *instance, const rft_batch *batch, const rft_collectives *collectives,        \
      double scale, const rft_tensor *mask, rft_selection_report *report, rft_output *output,      \
      rft_error *error
#define SELECT_EVALUATE_ARGUMENTS instance, batch, collectives, scale, mask, report, output, error

static int32_t select_mask(const rft_instance *instance, const rft_batch *batch,
                           const rft_collectives *collectives, const rft_tensor *mask,
                           rft_selection_report *report, rft_error *error)
{
  rft_selection *selection = NULL;
  int32_t code = begin(instance, &selection, error);
  if (code != RFT_OK) {
    return code;
  }
  code = add(selection, batch, error);
  const int32_t finished = finish(selection, collectives, report, code == RFT_OK ? error : NULL);
  code = code == RFT_OK ? finished : code;
  if (code == RFT_OK) {
    code = give_mask(selection, 0, mask, error);
  }
  end(selection);
  return code;
}

static int32_t select_evaluate(SELECT_EVALUATE_PARAMETERS)
{
  if (fixture.selection_begin == NULL) {
    return rft_fail(error, RFT_UNIMPLEMENTED, "select_evaluate: the loss selects nothing");
  }
  double sums[METRIC_COUNT] = {0};
  rft_selection_report found = *report; // which stays as it is on an error
  found.metrics = sums;
  int32_t code = select_mask(instance, batch, collectives, mask, &found, error);
  const rft_reduction reduction = {.struct_size = RFT_STRUCT_SIZE(rft_reduction, scale),
                                   .valid_tokens = found.valid_tokens,
                                   .kept_tokens = found.kept_tokens,
                                   .sequences = found.sequences,
                                   .scale = scale};
  code = code == RFT_OK ? evaluate(instance, batch, mask, &reduction, output, error) : code;
  if (code != RFT_OK) {
    return code;
  }
  found.metrics = report->metrics;
  *report = found;
  if (report->metrics != NULL) {
    report->metrics[KEPT_TOKENS] = sums[KEPT_TOKENS];
  }
  return RFT_OK;
}

static rft_one_pass one_pass = {.struct_size = RFT_STRUCT_SIZE(rft_one_pass, select_evaluate),
                                .evaluate = evaluate,
                                .select_evaluate = select_evaluate};

static const void *offer_one_pass(const char *id)
{
  return strcmp(id, RFT_PLUGIN_ONE_PASS) == 0 ? &one_pass : NULL;
}

/// SPOIL for a plugin that offers them.
#define SPOIL_ONE_PASS(...) SPOIL(plugin.get_extension = offer_one_pass; __VA_ARGS__)

#endif // CONFORMANCE_ONE_PASS_H
