// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "learner.h"

#include "support/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Views of one micro-batch: rows [first, first + count) of the optimizer batch's arrays.
struct learner_part {
  int64_t tokens[2];    // shape [count, answer_length]
  int64_t sequences[1]; // shape [count]
  rft_tensor logprob;
  rft_tensor old_logprob;
  rft_tensor advantages;
  rft_tensor mask;
  rft_tensor keep;
  rft_tensor dlogprob;
  rft_batch batch;
  double loss;
};

static const rft_dtype float32 = {RFT_DTYPE_FLOAT, 32, 1};
static const rft_dtype boolean = {RFT_DTYPE_BOOL, 8, 1};

static rft_tensor view(void *data, rft_dtype dtype, int32_t ndim, int64_t *shape)
{
  return (rft_tensor){
      .data = data, .device = {RFT_DEVICE_CPU, 0}, .ndim = ndim, .dtype = dtype, .shape = shape};
}

// The proximal policy is the one that training on a batch starts from. A batch here is one
// optimizer step, which makes it the current one.
static void view_part(train_learner *self, int64_t i, const rollout_batch *batch)
{
  learner_part *const part = &self->part[i];
  const teacher_block *const block = &self->teacher.block[i];
  const int64_t at = block->first * self->shape.task.answer_length;

  part->tokens[0] = block->count;
  part->tokens[1] = self->shape.task.answer_length;
  part->sequences[0] = block->count;
  part->logprob = view(self->teacher.logprob + at, float32, 2, part->tokens);
  part->old_logprob = view(batch->logprob + at, float32, 2, part->tokens);
  part->advantages = view(self->advantages + block->first, float32, 1, part->sequences);
  part->mask = view(self->mask + at, boolean, 2, part->tokens);
  part->keep = view(self->keep + at, boolean, 2, part->tokens);
  part->dlogprob = view(self->teacher.dlogprob + at, float32, 2, part->tokens);
  part->batch = (rft_batch){.struct_size = sizeof part->batch,
                            .logprob = &part->logprob,
                            .old_logprob = &part->old_logprob,
                            .proximal_logprob =
                                algorithm_wants_proximal(self->algorithm) ? &part->logprob : NULL,
                            .advantages = &part->advantages,
                            .mask = &part->mask};
}

static double mean(const float *values, int64_t count)
{
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) {
    sum += (double)values[i];
  }
  return sum / (double)count;
}

// GRPO (arXiv 2402.03300): the reward against the mean of its group, in standard deviations. A
// group of equal rewards says nothing.
static void group_advantages(train_learner *self, const float *reward)
{
  static const double epsilon = 1e-6;
  const int64_t samples = self->shape.samples;
  for (int64_t group = 0; group < self->shape.prompts; ++group) {
    const float *const r = reward + group * samples;
    const double middle = mean(r, samples);
    double squares = 0.0;
    for (int64_t i = 0; i < samples; ++i) {
      squares += ((double)r[i] - middle) * ((double)r[i] - middle);
    }
    const double deviation = sqrt(squares / (double)(samples - 1));
    for (int64_t i = 0; i < samples; ++i) {
      self->advantages[group * samples + i] =
          (float)(((double)r[i] - middle) / (deviation + epsilon));
    }
  }
}

// --------------------------------------------------------------------------------------- selection

static int32_t add_parts(const train_learner *self, rft_selection *selection, rft_error *error)
{
  int32_t code = RFT_OK;
  for (int64_t i = 0; code == RFT_OK && i < self->teacher.blocks; ++i) {
    code = self->algorithm->loss->selection_add(selection, &self->part[i].batch, error);
  }
  return code;
}

static int32_t run_selection(train_learner *self, rft_selection *selection,
                             rft_reduction *reduction, rft_error *error)
{
  const rft_policy_loss *const loss = self->algorithm->loss;
  rft_selection_report report = {.struct_size = sizeof report,
                                 .metrics = self->selection_metrics,
                                 .metric_count = loss->metric_count};
  // A rank whose add failed finishes too, for the others wait for it (P17).
  const int32_t added = add_parts(self, selection, error);
  int32_t code = loss->selection_finish(selection, self->group->collectives, &report,
                                        added == RFT_OK ? error : NULL);
  code = added == RFT_OK ? code : added;
  for (int64_t i = 0; code == RFT_OK && i < self->teacher.blocks; ++i) {
    code = loss->selection_mask(selection, i, &self->part[i].keep, error);
  }
  if (code == RFT_OK) {
    reduction->valid_tokens = report.valid_tokens;
    reduction->kept_tokens = report.kept_tokens;
    reduction->sequences = report.sequences;
  }
  return code;
}

// Which tokens the optimizer batch keeps: chosen once over all of it, whatever the micro-batches
// and ranks.
static int32_t select_tokens(train_learner *self, rft_reduction *reduction, rft_error *error)
{
  const rft_policy_loss *const loss = self->algorithm->loss;
  if (loss->selection_begin == NULL) {
    reduction->sequences = rollout_all_prompts(&self->shape) * self->shape.samples;
    reduction->valid_tokens = reduction->sequences * self->shape.task.answer_length;
    reduction->kept_tokens = reduction->valid_tokens;
    return RFT_OK;
  }
  rft_selection *selection = NULL;
  int32_t code = loss->selection_begin(self->algorithm->instance, &selection, error);
  code = self->group->agree(self->group, code, error);
  if (code == RFT_OK) {
    code = run_selection(self, selection, reduction, error);
  }
  loss->selection_end(selection);
  return code;
}

static int32_t check_selection(const train_learner *self, const rollout_batch *batch,
                               const rft_reduction *reduction, rft_error *error)
{
  const train_group *const group = self->group;
  const train_selected selected = {.loss = self->algorithm->loss,
                                   .instance = self->algorithm->instance,
                                   .sequences = self->teacher.sequences,
                                   .tokens = self->shape.task.answer_length,
                                   .logprob = self->teacher.logprob,
                                   .old_logprob = batch->logprob,
                                   .is_proximal = algorithm_wants_proximal(self->algorithm),
                                   .advantages = self->advantages,
                                   .keep = self->keep,
                                   .counts = reduction,
                                   .metrics = self->selection_metrics};
  return group->check == NULL || selected.loss->selection_begin == NULL
             ? RFT_OK
             : group->check(group, &selected, error);
}

// -------------------------------------------------------------------------------------------- loss

// In one pass where the plugin can: an update that fails ends the run, and what it leaves is not
// looked at.
static int32_t evaluate_part(const train_algorithm *algorithm, const learner_part *part,
                             const rft_reduction *reduction, rft_output *output, rft_error *error)
{
  const rft_policy_loss *const loss = algorithm->loss;
  const rft_tensor *const keep = loss->selection_begin == NULL ? NULL : &part->keep;
  return algorithm->one_pass != NULL
             ? algorithm->one_pass->evaluate(algorithm->instance, &part->batch, keep, reduction,
                                             output, error)
             : loss->evaluate(algorithm->instance, &part->batch, keep, reduction, output, error);
}

// Loss and d loss / d logprob, micro-batch by micro-batch.
static int32_t evaluate(train_learner *self, const rft_reduction *reduction, rft_error *error)
{
  const rft_policy_loss *const loss = self->algorithm->loss;
  int32_t code = RFT_OK;
  for (int64_t i = 0; code == RFT_OK && i < self->teacher.blocks; ++i) {
    learner_part *const part = &self->part[i];
    rft_output output = {.struct_size = sizeof output,
                         .gradient = &part->dlogprob,
                         .metrics = self->part_metrics + i * loss->metric_count,
                         .metric_count = loss->metric_count};
    code = evaluate_part(self->algorithm, part, reduction, &output, error);
    part->loss = output.loss;
  }
  return code;
}

static void start_totals(train_learner *self)
{
  const rft_policy_loss *const loss = self->algorithm->loss;
  self->totals[LEARNER_LOSS] = 0.0;
  self->totals[LEARNER_REWARDS] = 0.0;
  rft_metrics_reset(loss, self->totals + LEARNER_METRICS);
  if (loss->selection_begin != NULL) {
    rft_metrics_combine(loss, RFT_METRIC_SELECTION, self->totals + LEARNER_METRICS,
                        self->selection_metrics);
  }
}

// The parts of the micro-batches add up, over all ranks.
static int32_t add_up(train_learner *self, const float *reward, rft_error *error)
{
  const train_group *const group = self->group;
  const rft_policy_loss *const loss = self->algorithm->loss;
  const int64_t bytes = (LEARNER_METRICS + loss->metric_count) * (int64_t)sizeof(double);
  start_totals(self);
  int32_t code = group->take(group, self->totals, bytes, error);
  for (int64_t i = 0; i < self->teacher.blocks; ++i) {
    self->totals[LEARNER_LOSS] += self->part[i].loss;
    rft_metrics_combine(loss, RFT_METRIC_EVALUATE, self->totals + LEARNER_METRICS,
                        self->part_metrics + i * loss->metric_count);
  }
  for (int64_t i = 0; i < self->shape.prompts; ++i) {
    self->totals[LEARNER_REWARDS] += mean(reward + i * self->shape.samples, self->shape.samples);
  }
  if (code == RFT_OK) {
    code = group->give(group, self->totals, bytes, error);
  }
  rft_metrics_finish(loss, self->totals + LEARNER_METRICS);
  return code;
}

static int32_t add_gradients(train_learner *self, const train_policy *policy, rft_error *error)
{
  const train_group *const group = self->group;
  const int64_t bytes = policy->count * (int64_t)sizeof(float);
  teacher_backward(&self->teacher, policy);
  const int32_t code = group->take(group, self->teacher.gradient, bytes, error);
  if (code != RFT_OK) {
    return code;
  }
  teacher_add_gradients(&self->teacher);
  return group->give(group, self->teacher.gradient, bytes, error);
}

// ------------------------------------------------------------------------------------------ update

static int32_t compute_loss(train_learner *self, const rollout_batch *batch, rft_error *error)
{
  const train_group *const group = self->group;
  rft_reduction reduction = {.struct_size = sizeof reduction};
  int32_t code = select_tokens(self, &reduction, error);
  if (code == RFT_OK) {
    code = evaluate(self, &reduction, error);
  }
  code = group->agree(group, code, error);
  return code == RFT_OK ? check_selection(self, batch, &reduction, error) : code;
}

int32_t learner_update(train_learner *self, train_policy *policy, const rollout_batch *batch,
                       learner_step *step, rft_error *error)
{
  group_advantages(self, batch->reward);
  teacher_forward(&self->teacher, policy, batch->sequences);
  for (int64_t i = 0; i < self->teacher.blocks; ++i) {
    view_part(self, i, batch);
  }
  int32_t code = compute_loss(self, batch, error);
  if (code == RFT_OK) {
    code = add_up(self, batch->reward, error);
  }
  if (code == RFT_OK) {
    code = add_gradients(self, policy, error);
  }
  if (code == RFT_OK) {
    *step = (learner_step){
        .loss = self->totals[LEARNER_LOSS],
        .reward = self->totals[LEARNER_REWARDS] / (double)rollout_all_prompts(&self->shape),
        .gradient_norm =
            adamw_step(&self->adamw, &self->options, policy->parameters, self->teacher.gradient)};
  }
  return code;
}

int32_t learner_init(train_learner *self, const train_algorithm *algorithm,
                     const train_group *group, const rollout_shape *shape,
                     const adamw_options *options, int64_t micro_batches,
                     const train_policy *policy, rft_error *error)
{
  const int64_t sequences = rollout_sequences(shape);
  const size_t tokens = (size_t)(sequences * shape->task.answer_length);
  const size_t metrics = (size_t)algorithm->loss->metric_count;
  *self =
      (train_learner){.algorithm = algorithm,
                      .group = group,
                      .shape = *shape,
                      .options = *options,
                      .part = calloc((size_t)micro_batches, sizeof(learner_part)),
                      .advantages = calloc((size_t)sequences, sizeof(float)),
                      .mask = malloc(tokens),
                      .keep = malloc(tokens),
                      .selection_metrics = calloc(metrics + 1, sizeof(double)),
                      .part_metrics = calloc((size_t)micro_batches * metrics + 1, sizeof(double)),
                      .totals = calloc(LEARNER_METRICS + metrics, sizeof(double))};
  if (self->part == NULL || self->advantages == NULL || self->mask == NULL || self->keep == NULL ||
      self->selection_metrics == NULL || self->part_metrics == NULL || self->totals == NULL ||
      !adamw_init(&self->adamw, policy->count) ||
      !teacher_init(&self->teacher, &shape->task, policy, sequences, micro_batches,
                    parallel_service(algorithm_host(algorithm)))) {
    learner_free(self);
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED,
                    "out of memory for an optimizer batch of %lld sequences", (long long)sequences);
  }
  memset(self->mask, 1, tokens);
  memset(self->keep, 1, tokens);
  return RFT_OK;
}

void learner_free(train_learner *self)
{
  adamw_free(&self->adamw);
  teacher_free(&self->teacher);
  free(self->part);
  free(self->advantages);
  free(self->mask);
  free(self->keep);
  free(self->selection_metrics);
  free(self->part_metrics);
  free(self->totals);
  *self = (train_learner){0};
}
