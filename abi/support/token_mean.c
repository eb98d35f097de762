// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "token_mean.h"

#include "batch_view.h"
#include "error.h"
#include "structs.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { BLOCK = 256 };

typedef struct evaluation {
  rft_token_loss of_token;
  const void *context;
  rft_batch_view batch;
  rft_view keep;     ///< absent: every valid token is kept
  rft_view gradient; ///< absent: not wanted
  double weight;     ///< scale / N
} evaluation;

// Consecutive positions.
typedef struct token_block {
  int64_t start;
  int64_t count;
  double mask[BLOCK];
  double keep[BLOCK];
  double logprob[BLOCK];
  double old_logprob[BLOCK];
  double advantages[BLOCK];
  double slope[BLOCK];
} token_block;

// ------------------------------------------------------------------------------------- computing

static void load_block(const evaluation *job, int64_t start, token_block *block)
{
  const rft_batch_view *const batch = &job->batch;
  const int64_t left = batch->count - start;
  block->start = start;
  block->count = left < BLOCK ? left : BLOCK;
  rft_view_load(&batch->mask, start, block->count, block->mask);
  rft_view_load(&batch->logprob, start, block->count, block->logprob);
  rft_view_load(&batch->old_logprob, start, block->count, block->old_logprob);
  rft_batch_view_load_advantages(batch, start, block->count, block->advantages);
  memcpy(block->keep, block->mask, sizeof block->keep);
  if (rft_view_present(&job->keep)) {
    rft_view_load(&job->keep, start, block->count, block->keep);
  }
}

static int32_t fail_value(const char *tensor, int64_t index, const char *expected, double found,
                          rft_error *error)
{
  char number[RFT_NUMBER_TEXT_SIZE];
  return rft_fail(error, RFT_OUT_OF_RANGE, "%s at index %" PRId64 ": expected %s, found %s", tensor,
                  index, expected, rft_number_text(number, found));
}

static int32_t check_values(const evaluation *job, const token_block *block, int64_t i,
                            rft_error *error)
{
  const struct {
    const char *name;
    double value;
  } values[] = {{"logprob", block->logprob[i]},
                {"old_logprob", block->old_logprob[i]},
                {"advantages", block->advantages[i]}};
  const double mask = block->mask[i];
  if (rft_element_is_float(job->batch.mask.element) && mask != 0 && mask != 1) {
    return fail_value("mask", block->start + i, "0 or 1 in a float mask", mask, error);
  }
  for (size_t k = 0; mask != 0 && k < sizeof values / sizeof values[0]; ++k) {
    if (!isfinite(values[k].value)) {
      return fail_value(values[k].name, block->start + i, "a finite number at a valid position",
                        values[k].value, error);
    }
  }
  return RFT_OK;
}

static int32_t compute_block(const evaluation *job, token_block *block, double *sum,
                             double *metrics, rft_error *error)
{
  for (int64_t i = 0; i < block->count; ++i) {
    const int32_t code = check_values(job, block, i, error);
    if (code != RFT_OK) {
      return code;
    }
    block->slope[i] = 0.0;
    if (block->mask[i] == 0 || block->keep[i] == 0) {
      continue;
    }
    const rft_token token = {block->logprob[i], block->old_logprob[i], block->advantages[i]};
    const rft_token_term term = job->of_token(job->context, &token, metrics);
    block->slope[i] = job->weight * term.slope;
    *sum += job->weight * term.loss;
    if (!isfinite(*sum) || !isfinite(rft_element_round(job->gradient.element, block->slope[i]))) {
      return fail_value("logprob", block->start + i,
                        "a loss and a gradient that fit their types, found overflow and",
                        token.logprob, error);
    }
  }
  return RFT_OK;
}

static int32_t check_all(const evaluation *job, rft_error *error)
{
  double sum = 0.0;
  int32_t code = RFT_OK;
  token_block block;
  for (int64_t start = 0; code == RFT_OK && start < job->batch.count; start += BLOCK) {
    load_block(job, start, &block);
    code = compute_block(job, &block, &sum, NULL, error);
  }
  return code;
}

// After check_all nothing can fail any more.
static void write_all(const evaluation *job, int64_t metric_count, rft_output *output)
{
  double sum = 0.0;
  token_block block;
  for (int64_t i = 0; output->metrics != NULL && i < metric_count; ++i) {
    output->metrics[i] = 0.0;
  }
  for (int64_t start = 0; start < job->batch.count; start += BLOCK) {
    load_block(job, start, &block);
    compute_block(job, &block, &sum, output->metrics, NULL);
    if (rft_view_present(&job->gradient)) {
      rft_view_store(&job->gradient, start, block.count, block.slope);
    }
  }
  output->loss = sum;
}

// -------------------------------------------------------------------------------------- checking

static int32_t check_output(const rft_output *output, int64_t metric_count, rft_error *error)
{
  const int32_t code =
      rft_check_request(output, RFT_STRUCT_SIZE(rft_output, metric_count), "rft_output", error);
  if (code == RFT_OK && output->metrics != NULL && output->metric_count < metric_count) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "rft_output: expected metric_count of at least %" PRId64 ", found %" PRId64,
                    metric_count, output->metric_count);
  }
  return code;
}

static int32_t open_keep(evaluation *job, const rft_tensor *mask, const rft_batch *batch,
                         rft_error *error)
{
  const char *const name = "mask of kept tokens";
  const int32_t code =
      rft_view_like(mask, batch->logprob, RFT_CONTENT_NUMBERS, name, &job->keep, error);
  if (code == RFT_OK && job->keep.element > RFT_ELEMENT_UINT8) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected dtype bool, int8 or uint8, found type code %d with %d bits", name,
                    mask->dtype.code, mask->dtype.bits);
  }
  return code;
}

static int32_t open_gradient(evaluation *job, const rft_tensor *gradient, const rft_batch *batch,
                             rft_error *error)
{
  const char *const name = "gradient";
  int32_t code =
      rft_view_like(gradient, batch->logprob, RFT_CONTENT_FLOATS, name, &job->gradient, error);
  if (code == RFT_OK) {
    code = rft_view_check_output(&job->gradient, name, error);
  }
  if (code == RFT_OK) {
    code = rft_batch_view_check_overlap(&job->batch, &job->gradient, name, error);
  }
  if (code == RFT_OK && rft_view_present(&job->keep) &&
      rft_views_overlap(&job->gradient, &job->keep)) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected memory apart from the inputs, found it to overlap the mask of "
                    "kept tokens",
                    name);
  }
  return code;
}

static int64_t count_valid(const rft_batch_view *batch)
{
  int64_t valid = 0;
  double mask[BLOCK];
  for (int64_t start = 0; start < batch->count; start += BLOCK) {
    const int64_t left = batch->count - start;
    const int64_t count = left < BLOCK ? left : BLOCK;
    rft_view_load(&batch->mask, start, count, mask);
    for (int64_t i = 0; i < count; ++i) {
      valid += mask[i] != 0 ? 1 : 0;
    }
  }
  return valid;
}

static int32_t open_weight(evaluation *job, const rft_reduction *reduction, rft_error *error)
{
  const uint32_t size = RFT_STRUCT_SIZE(rft_reduction, scale);
  const rft_reduction none = {.struct_size = size};
  const rft_reduction *const given = reduction == NULL ? &none : reduction;
  const int32_t code = rft_check_request(given, size, "rft_reduction", error);
  if (code != RFT_OK) {
    return code;
  }
  if (given->valid_tokens < 0 || !isfinite(given->scale)) {
    char number[RFT_NUMBER_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "rft_reduction: expected valid_tokens >= 0 and a finite scale, found %" PRId64
                    " and %s",
                    given->valid_tokens, rft_number_text(number, given->scale));
  }
  const int64_t valid = given->valid_tokens == 0 ? count_valid(&job->batch) : given->valid_tokens;
  const double scale = given->scale == 0 ? 1.0 : given->scale;
  job->weight = valid == 0 ? 0.0 : scale / (double)valid;
  return RFT_OK;
}

int32_t rft_evaluate_token_mean(rft_token_loss of_token, const void *context, int64_t metric_count,
                                const rft_batch *batch, const rft_tensor *mask,
                                const rft_reduction *reduction, rft_output *output,
                                rft_error *error)
{
  evaluation job = {.of_token = of_token, .context = context};
  int32_t code = rft_batch_view_open(batch, &job.batch, error);
  if (code == RFT_OK) {
    code = check_output(output, metric_count, error);
  }
  if (code == RFT_OK && mask != NULL) {
    code = open_keep(&job, mask, batch, error);
  }
  if (code == RFT_OK && output->gradient != NULL) {
    code = open_gradient(&job, output->gradient, batch, error);
  }
  if (code == RFT_OK) {
    code = open_weight(&job, reduction, error);
  }
  if (code == RFT_OK) {
    code = check_all(&job, error);
  }
  if (code == RFT_OK) {
    write_all(&job, metric_count, output);
  }
  return code;
}
