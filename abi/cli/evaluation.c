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
  const rft_instance *instance;
  const cli_batch *batch;
  cli_slice *slices;
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
  int32_t code = run->loss->selection_finish(selection, NULL, &report, error);
  if (code != RFT_OK) {
    return code;
  }
  rft_metrics_combine(run->loss, RFT_METRIC_SELECTION, out->metrics, run->part);
  out->counts.valid_tokens = report.valid_tokens;
  out->counts.kept_tokens = report.kept_tokens;
  out->counts.sequences = report.sequences;
  for (int64_t i = 0; code == RFT_OK && i < run->slice_count; ++i) {
    const rft_tensor mask = cli_slice_view(&run->slices[i], out->mask, MASK_DTYPE);
    code = run->loss->selection_mask(selection, i, &mask, error);
  }
  return code;
}

static int32_t select_tokens(const job *run, rft_error *error)
{
  rft_selection *selection = NULL;
  rft_error problem = {.struct_size = sizeof problem};
  int32_t code = run->loss->selection_begin(run->instance, &selection, error);
  for (int64_t i = 0; code == RFT_OK && i < run->slice_count; ++i) {
    code = run->loss->selection_add(selection, &run->slices[i].batch, &problem);
    if (code != RFT_OK) {
      fail_in_slice(run, i, &problem, error);
    }
  }
  if (code == RFT_OK) {
    code = finish_selection(run, selection, error);
  }
  run->loss->selection_end(selection);
  return code;
}

// ---------------------------------------------------------------------------------------------- no
// selection

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
  const int32_t code = run->loss->evaluate(run->instance, &slice->batch, selected ? &mask : NULL,
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
  rft_metrics_finish(run->loss, run->out->metrics);
  return code;
}

// --------------------------------------------------------------------------------------------- run

static void make_slices(job *run)
{
  const int64_t each = run->batch->rows / run->slice_count;
  const int64_t larger = run->batch->rows % run->slice_count;
  int64_t first = 0;
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

int32_t cli_evaluation_run(const rft_policy_loss *loss, const rft_instance *instance,
                           const cli_batch *batch, int64_t micro_batches,
                           cli_evaluation *evaluation, rft_error *error)
{
  // One micro-batch may be empty: an optimizer batch without a row is a legal one.
  if (micro_batches > batch->rows && micro_batches > 1) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected at most %" PRId64 " micro-batches, one a row, found %" PRId64,
                    batch->path, batch->rows, micro_batches);
  }
  job run = {.loss = loss,
             .instance = instance,
             .batch = batch,
             .slices = cli_allocate((size_t)micro_batches, sizeof(cli_slice)),
             .slice_count = micro_batches,
             .part = cli_allocate((size_t)loss->metric_count, sizeof(double)),
             .out = evaluation};
  make_slices(&run);
  allocate_results(&run);
  const int32_t code = evaluate_all(&run, error);
  for (int64_t i = 0; i < micro_batches; ++i) {
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
  *evaluation = (cli_evaluation){.loss = 0};
}
