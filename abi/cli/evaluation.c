// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation.h"

#include "cli.h"
#include "support/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const rft_dtype MASK_DTYPE = {RFT_DTYPE_UINT, 8, 1};

typedef struct job {
  const rft_policy_loss *loss;
  int32_t (*evaluate)(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                      const rft_reduction *reduction, rft_output *output, rft_error *error);
  const rft_instance *instance;
  const cli_batch *batch;
  const cli_group *group;
  cli_slice *slices; // of this rank's rows
  int64_t slice_count;
  double *part; // metrics of one call
  cli_evaluation *out;
} job;

// --------------------------------------------------------------------------------------- selection

// A loss counts rows and columns within the micro-batch that it is given.
static int32_t fail_in_slice(const job *run, int64_t index, const rft_error *problem,
                             rft_error *error)
{
  if (run->slice_count == 1) {
    return rft_fail(error, problem->code, "%s: %s", run->batch->path, problem->message);
  }
  return rft_fail(error, problem->code, "%s, micro-batch %" PRId64 " of %" PRId64 ": %s",
                  run->batch->path, index + 1, run->slice_count, problem->message);
}

static int32_t finish_selection(const job *run, rft_selection *selection, rft_error *error)
{
  cli_evaluation *const out = run->out;
  rft_selection_report report = {
      .struct_size = RFT_STRUCT_SIZE(rft_selection_report, metric_count),
      .metrics = run->part,
      .metric_count = run->loss->metric_count,
  };
  const rft_collectives *const collectives = run->group == NULL ? NULL : run->group->collectives;
  int32_t code = run->loss->selection_finish(selection, collectives, &report, error);
  if (code != RFT_OK) {
    return code;
  }
  // Of the whole group already: one rank adds it.
  if (cli_group_leads(run->group)) {
    rft_metrics_combine(run->loss, RFT_METRIC_SELECTION, out->metrics, run->part);
  }
  out->counts.valid_tokens = report.valid_tokens;
  out->counts.kept_tokens = report.kept_tokens;
  out->counts.sequences = report.sequences;
  for (int64_t i = 0; code == RFT_OK && i < run->slice_count; ++i) {
    const rft_tensor mask = cli_slice_view(&run->slices[i], out->mask, MASK_DTYPE);
    code = run->loss->selection_mask(selection, i, &mask, error);
  }
  return code;
}

static int32_t add_slices(const job *run, rft_selection *selection, rft_error *error)
{
  rft_error problem = {.struct_size = sizeof problem};
  for (int64_t i = 0; i < run->slice_count; ++i) {
    const int32_t code = run->loss->selection_add(selection, &run->slices[i].batch, &problem);
    if (code != RFT_OK) {
      return fail_in_slice(run, i, &problem, error);
    }
  }
  return RFT_OK;
}

static int32_t select_tokens(const job *run, rft_error *error)
{
  rft_selection *selection = NULL;
  int32_t code = run->loss->selection_begin(run->instance, &selection, error);
  code = cli_group_agree(run->group, code, error);
  if (code == RFT_OK) {
    // A rank whose add failed finishes too: the others wait for it (P17).
    code = add_slices(run, selection, error);
    const int32_t finished = finish_selection(run, selection, code == RFT_OK ? error : NULL);
    code = code == RFT_OK ? finished : code;
  }
  run->loss->selection_end(selection);
  return code;
}

// ------------------------------------------------------------------------------------ no selection

// Valid is what is not zero; -0.0 is.
static bool is_nonzero(const rft_tensor *tensor, int64_t index)
{
  const size_t size = tensor->dtype.bits / 8U;
  const unsigned char *const bytes =
      (const unsigned char *)tensor->data + tensor->byte_offset + (size_t)index * size;
  const bool is_float =
      tensor->dtype.code == RFT_DTYPE_FLOAT || tensor->dtype.code == RFT_DTYPE_BFLOAT;
  uint64_t bits = 0;
  memcpy(&bits, bytes, size);
  return (is_float ? bits << (64 - 8 * size + 1) : bits) != 0;
}

// A loss that selects nothing keeps every valid token, and leaves the counting to the host.
static void keep_valid_tokens(const job *run)
{
  cli_evaluation *const out = run->out;
  const cli_batch *const batch = run->batch;
  for (int64_t row = 0; row < batch->rows; ++row) {
    const int64_t before = out->counts.valid_tokens;
    const int64_t end = cli_batch_positions(batch, row + 1);
    for (int64_t i = cli_batch_positions(batch, row); i < end; ++i) {
      out->mask[i] = is_nonzero(batch->mask, i);
      out->counts.valid_tokens += out->mask[i];
    }
    out->counts.sequences += out->counts.valid_tokens > before;
  }
  out->counts.kept_tokens = out->counts.valid_tokens;
}

// -------------------------------------------------------------------------------------------- loss

static int32_t evaluate_slice(const job *run, const cli_slice *slice, bool selected,
                              rft_error *error)
{
  cli_evaluation *const out = run->out;
  const rft_tensor mask = cli_slice_view(slice, out->mask, MASK_DTYPE);
  const rft_tensor gradient = cli_slice_view(slice, out->gradient, out->gradient_dtype);
  rft_output output = {
      .struct_size = RFT_STRUCT_SIZE(rft_output, metric_count),
      .gradient = &gradient,
      .metrics = run->part,
      .metric_count = run->loss->metric_count,
  };
  const int32_t code = run->evaluate(run->instance, &slice->batch, selected ? &mask : NULL,
                                     &out->counts, &output, error);
  if (code == RFT_OK) {
    out->loss += output.loss;
    rft_metrics_combine(run->loss, RFT_METRIC_EVALUATE, out->metrics, run->part);
  }
  return code;
}

static int32_t evaluate_all(const job *run, rft_error *error)
{
  const bool selects = run->loss->selection_begin != NULL;
  int32_t code = RFT_OK;
  if (selects) {
    code = select_tokens(run, error);
  } else {
    keep_valid_tokens(run);
  }
  rft_error problem = {.struct_size = sizeof problem};
  for (int64_t i = 0; code == RFT_OK && i < run->slice_count; ++i) {
    code = evaluate_slice(run, &run->slices[i], selects, &problem);
    if (code != RFT_OK) {
      fail_in_slice(run, i, &problem, error);
    }
  }
  return cli_group_agree(run->group, code, error);
}

// ------------------------------------------------------------------------------------------ gather

// Mask and gradient stand where they belong already: each rank has those of its own rows.
static int32_t gather_tokens(const job *run, int64_t *start, rft_error *error)
{
  cli_evaluation *const out = run->out;
  const int64_t size = cli_group_size(run->group);
  for (int64_t rank = 0; rank <= size; ++rank) {
    const int64_t row = cli_group_start(run->group, run->batch->rows, rank);
    start[rank] = cli_batch_positions(run->batch, row);
  }
  int32_t code = cli_group_gather(run->group, out->mask, start, 1, error);
  if (code == RFT_OK) {
    code = cli_group_gather(run->group, out->gradient, start, out->gradient_dtype.bits / 8, error);
  }
  return code;
}

// The ranks' losses and metrics, in the order of the ranks; `parts` is [size, 1 + metric_count].
static int32_t gather_sums(const job *run, const int64_t *start, double *parts, rft_error *error)
{
  cli_evaluation *const out = run->out;
  const int64_t width = run->loss->metric_count + 1;
  double *const own = parts + cli_group_rank(run->group) * width;
  own[0] = out->loss;
  memcpy(own + 1, out->metrics, (size_t)run->loss->metric_count * sizeof(double));
  const int32_t code =
      cli_group_gather(run->group, parts, start, width * (int64_t)sizeof(double), error);
  for (int64_t rank = 1; code == RFT_OK && rank < cli_group_size(run->group); ++rank) {
    out->loss += parts[rank * width];
    rft_metrics_combine(run->loss, RFT_METRIC_EVALUATE, out->metrics, parts + rank * width + 1);
  }
  return code;
}

static int32_t gather(const job *run, rft_error *error)
{
  cli_evaluation *const out = run->out;
  const int64_t rank = cli_group_rank(run->group);
  const int64_t size = cli_group_size(run->group);
  if (run->group == NULL) {
    return RFT_OK;
  }
  int64_t *const start = cli_allocate((size_t)size + 1, sizeof *start);
  double *const parts = cli_allocate((size_t)(size * (run->loss->metric_count + 1)), sizeof *parts);
  out->traffic = cli_allocate((size_t)size, sizeof *out->traffic);
  out->traffic[rank] = run->group->traffic(run->group);
  int32_t code = gather_tokens(run, start, error);
  for (int64_t i = 0; i <= size; ++i) {
    start[i] = i;
  }
  if (code == RFT_OK) {
    code = gather_sums(run, start, parts, error);
  }
  if (code == RFT_OK) {
    code = cli_group_gather(run->group, out->traffic, start, sizeof *out->traffic, error);
  }
  free(start);
  free(parts);
  return cli_group_agree(run->group, code, error);
}

// --------------------------------------------------------------------------------------------- run

static int64_t rows_of_rank(const job *run)
{
  const int64_t rank = cli_group_rank(run->group);
  return cli_group_start(run->group, run->batch->rows, rank + 1) -
         cli_group_start(run->group, run->batch->rows, rank);
}

static void make_slices(job *run)
{
  const int64_t each = run->slice_count == 0 ? 0 : rows_of_rank(run) / run->slice_count;
  const int64_t larger = run->slice_count == 0 ? 0 : rows_of_rank(run) % run->slice_count;
  int64_t first = cli_group_start(run->group, run->batch->rows, cli_group_rank(run->group));
  for (int64_t i = 0; i < run->slice_count; ++i) {
    const int64_t rows = each + (i < larger);
    cli_slice_make(run->batch, first, rows, &run->slices[i]);
    first += rows;
  }
}

static void allocate_results(const job *run)
{
  const rft_dtype logprob = run->batch->logprob->dtype;
  const bool wide = logprob.code == RFT_DTYPE_FLOAT && logprob.bits == 64;
  const size_t positions = (size_t)cli_batch_positions(run->batch, run->batch->rows);
  cli_evaluation *const out = run->out;
  *out = (cli_evaluation){
      .counts = {.struct_size = RFT_STRUCT_SIZE(rft_reduction, scale)},
      .metrics = cli_allocate((size_t)run->loss->metric_count, sizeof(double)),
      .mask = cli_allocate(positions, 1),
      .gradient = cli_allocate(positions, wide ? sizeof(double) : sizeof(float)),
      .gradient_dtype = {RFT_DTYPE_FLOAT, wide ? 64 : 32, 1},
  };
  rft_metrics_reset(run->loss, out->metrics);
}

int32_t cli_evaluation_run(const rft_policy_loss *loss, const rft_one_pass *one_pass,
                           const rft_instance *instance, const cli_batch *batch,
                           int64_t micro_batches, const cli_group *group,
                           cli_evaluation *evaluation, rft_error *error)
{
  // One micro-batch may be empty: an optimizer batch without a row is a legal one.
  if (micro_batches > batch->rows && micro_batches > 1) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected at most %" PRId64 " micro-batches, one a row, found %" PRId64,
                    batch->path, batch->rows, micro_batches);
  }
  job run = {.loss = loss,
             .evaluate = one_pass == NULL ? loss->evaluate : one_pass->evaluate,
             .instance = instance,
             .batch = batch,
             .group = group,
             .part = cli_allocate((size_t)loss->metric_count, sizeof(double)),
             .out = evaluation};
  const int64_t rows = rows_of_rank(&run);
  run.slice_count = rows < micro_batches && batch->rows > 0 ? rows : micro_batches;
  run.slices = cli_allocate((size_t)run.slice_count, sizeof(cli_slice));
  make_slices(&run);
  allocate_results(&run);
  int32_t code = evaluate_all(&run, error);
  if (code == RFT_OK) {
    code = gather(&run, error);
  }
  rft_metrics_finish(loss, evaluation->metrics);
  for (int64_t i = 0; i < run.slice_count; ++i) {
    cli_slice_free(&run.slices[i]);
  }
  free(run.slices);
  free(run.part);
  if (code != RFT_OK) {
    cli_evaluation_free(evaluation);
  }
  return code;
}

void cli_evaluation_free(cli_evaluation *evaluation)
{
  free(evaluation->metrics);
  free(evaluation->mask);
  free(evaluation->gradient);
  free(evaluation->traffic);
  *evaluation = (cli_evaluation){.loss = 0};
}
