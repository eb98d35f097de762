// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "selecting.h"

#include "verdict.h"

#include <string.h>

rft_selection_report check_report(const check_subject *subject, double *metrics)
{
  const int64_t count = subject->loss->metric_count;
  for (int64_t i = 0; i < count; ++i) {
    metrics[i] = UNWRITTEN;
  }
  return (rft_selection_report){.struct_size = RFT_STRUCT_SIZE(rft_selection_report, metric_count),
                                .valid_tokens = -1,
                                .kept_tokens = -1,
                                .sequences = -1,
                                .metrics = metrics,
                                .metric_count = count};
}

rft_tensor *check_mask_like(const rft_batch *batch, rft_dtype dtype, const check_layout *layout)
{
  const rft_tensor *const logprob = batch->logprob;
  const bool flat = logprob->ndim == 1;
  return check_tensor(NULL, logprob->ndim, flat ? 1 : logprob->shape[0],
                      logprob->shape[flat ? 0 : 1], dtype, layout);
}

rft_reduction check_reduction_of(const rft_selection_report *report)
{
  return (rft_reduction){.struct_size = RFT_STRUCT_SIZE(rft_reduction, scale),
                         .valid_tokens = report->valid_tokens,
                         .kept_tokens = report->kept_tokens,
                         .sequences = report->sequences};
}

// ------------------------------------------------------------------------------------------- calls

rft_selection *check_begin(const check_subject *subject, const rft_instance *instance)
{
  rft_selection *selection = NULL;
  rft_error error = {.struct_size = sizeof error};
  const int32_t code = subject->loss->selection_begin(instance, &selection, &error);
  EXPECT(code == RFT_OK, "selection_begin returns %d: %.400s", code, error.message);
  EXPECT(selection != NULL, "selection_begin returns OK and no selection");
  return selection;
}

void check_add(const check_subject *subject, rft_selection *selection, const rft_batch *batch)
{
  rft_error error = {.struct_size = sizeof error};
  const int32_t code = subject->loss->selection_add(selection, batch, &error);
  EXPECT(code == RFT_OK, "selection_add returns %d: %.400s", code, error.message);
}

void check_finish(const check_subject *subject, rft_selection *selection)
{
  rft_error error = {.struct_size = sizeof error};
  double *const metrics =
      check_memory((size_t)subject->loss->metric_count * sizeof *metrics, PLAIN);
  rft_selection_report report = check_report(subject, metrics);
  const int32_t code = subject->loss->selection_finish(selection, NULL, &report, &error);
  EXPECT(code == RFT_OK, "selection_finish returns %d: %.400s", code, error.message);
}

static void read_masks(const check_subject *subject, rft_selection *selection,
                       rft_batch *const *batches, int count, check_selected *selected)
{
  const check_layout layout = {.placement = PLAIN};
  for (int i = 0; i < count; ++i) {
    selected->count += check_tensor_count(batches[i]->logprob);
  }
  selected->mask = check_memory((size_t)selected->count * sizeof(double), PLAIN);
  double *next = selected->mask;
  for (int i = 0; i < count && selected->code == RFT_OK; ++i) {
    const rft_tensor *const mask = check_mask_like(batches[i], DTYPE_UINT8, &layout);
    selected->code = subject->loss->selection_mask(selection, i, mask, &selected->error);
    selected->function = "selection_mask";
    const int64_t size = check_tensor_count(mask);
    memcpy(next, check_tensor_values(mask), (size_t)size * sizeof *next);
    next += size;
  }
}

check_selected check_select(const check_subject *subject, const rft_instance *instance,
                            rft_batch *const *batches, int count,
                            const rft_collectives *collectives)
{
  const rft_policy_loss *const loss = subject->loss;
  check_selected selected = {.error.struct_size = sizeof(rft_error)};
  rft_selection *const selection = check_begin(subject, instance);
  for (int i = 0; i < count && selected.code == RFT_OK; ++i) {
    selected.code = loss->selection_add(selection, batches[i], &selected.error);
    selected.function = "selection_add";
  }
  selected.metrics = check_memory((size_t)loss->metric_count * sizeof(double), PLAIN);
  selected.report = check_report(subject, selected.metrics);
  const int32_t finished =
      loss->selection_finish(selection, collectives, &selected.report, &selected.error);
  if (finished != RFT_OK) {
    selected.code = finished;
    selected.function = "selection_finish";
  }
  if (selected.code == RFT_OK) {
    read_masks(subject, selection, batches, count, &selected);
  }
  loss->selection_end(selection);
  return selected;
}

check_selected check_select_ok(const char *what, const check_subject *subject,
                               const rft_instance *instance, rft_batch *const *batches, int count,
                               const rft_collectives *collectives)
{
  const check_selected selected = check_select(subject, instance, batches, count, collectives);
  EXPECT(selected.code == RFT_OK, "%s: %s returns %d: %.400s", what, selected.function,
         selected.code, selected.error.message);
  return selected;
}

// ------------------------------------------------------------------------------------------ values

check_values check_values_spread(rng *r, int64_t rows, int64_t columns)
{
  check_values values = check_values_exact(r, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const double spread = rng_below(r, 5) == 0 ? (double)rng_below(r, 25) / 4 - 3 : 0;
    values.old_logprob[i] -= spread;
    values.proximal_logprob[i] -= spread / 2;
  }
  return values;
}

rft_batch **check_split(const check_values *values, int parts, const check_form *form)
{
  rft_batch **const batches = check_memory((size_t)parts * sizeof(void *), PLAIN);
  for (int i = 0; i < parts; ++i) {
    const int64_t first = values->rows * i / parts;
    const int64_t end = values->rows * (i + 1) / parts;
    const check_values part = check_values_rows(values, first, end - first);
    batches[i] = check_batch(&part, form);
  }
  return batches;
}
