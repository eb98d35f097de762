// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "inspect_effect.h"

#include "cli.h"
#include "support/error.h"
#include "support/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double inspect_fraction(int64_t part, int64_t whole)
{
  return whole == 0 ? 0 : (double)part / (double)whole;
}

// ------------------------------------------------------------------------------------------ states

static bool gradient_is_zero(const cli_evaluation *evaluation, int64_t position)
{
  return evaluation->gradient_dtype.bits == 64
             ? ((const double *)evaluation->gradient)[position] == 0
             : ((const float *)evaluation->gradient)[position] == 0;
}

static inspect_state state_of(const inspect_batch *batch, const cli_evaluation *evaluation,
                              int64_t position)
{
  if (!batch->valid[position]) {
    return INSPECT_INVALID;
  }
  if (evaluation->mask[position] == 0) {
    return INSPECT_MASKED;
  }
  const bool clipped = batch->advantage[position] != 0 && gradient_is_zero(evaluation, position);
  return clipped ? INSPECT_CLIPPED : INSPECT_KEPT;
}

static void read_states(const inspect_batch *batch, const cli_evaluation *evaluation,
                        inspect_effect *effect)
{
  effect->states = cli_allocate((size_t)batch->positions, 1);
  effect->cut = INFINITY;
  for (int64_t i = 0; i < batch->positions; ++i) {
    const inspect_state state = state_of(batch, evaluation, i);
    effect->states[i] = (unsigned char)state;
    effect->clipped_tokens += state == INSPECT_CLIPPED;
    effect->masked_tokens += state == INSPECT_MASKED;
    if (state == INSPECT_MASKED) {
      effect->cut = fmin(effect->cut, fabs(effect->log_ratio[i]));
    }
  }
  if (effect->masked_tokens == 0) {
    effect->cut = NAN;
  }
}

// ----------------------------------------------------------------------------------- second moment

// Trust-region tokens: those whose ratio moves the way that the advantage pushes.
static void measure(const inspect_batch *batch, inspect_effect *effect)
{
  int64_t kept = 0;
  double before = 0;
  double after = 0;
  for (int64_t i = 0; i < batch->positions; ++i) {
    const double d = effect->log_ratio[i];
    if ((batch->advantage[i] > 0 && d > 0) || (batch->advantage[i] < 0 && d < 0)) {
      const bool stays = effect->states[i] != INSPECT_MASKED;
      effect->trust_region_tokens += 1;
      kept += stays;
      before += d * d;
      after += stays ? d * d : 0;
    }
  }
  effect->m2_before =
      effect->trust_region_tokens == 0 ? 0 : before / (double)effect->trust_region_tokens;
  effect->m2_after = kept == 0 ? 0 : after / (double)kept;
}

static const double *find_metric(const inspect_effect *effect, const char *name)
{
  const rft_policy_loss *const loss = effect->subject.loss;
  for (int64_t i = 0; i < loss->metric_count; ++i) {
    if (strcmp(loss->metrics[i]->name, name) == 0) {
      return &effect->metrics[i];
    }
  }
  return NULL;
}

// What the loss reports is exact, and of the tokens that it constrains, whatever these are.
static void ask(inspect_effect *effect)
{
  const double *const tokens = find_metric(effect, INSPECT_TRUST_REGION_TOKENS);
  const double *const before = find_metric(effect, INSPECT_M2_BEFORE);
  const double *const after = find_metric(effect, INSPECT_M2_AFTER);
  if (tokens != NULL && before != NULL && after != NULL) {
    effect->trust_region_tokens = (int64_t)*tokens;
    effect->m2_before = *before;
    effect->m2_after = *after;
  }
}

// ------------------------------------------------------------------------------------------- sweep

double inspect_sweep_threshold(int point)
{
  const double middle = 0.04;
  const int octaves = point - (INSPECT_SWEEP_POINTS / 2);
  return middle * exp2((double)octaves / INSPECT_SWEEP_OCTAVE);
}

static int32_t try_threshold(const rft_registry *registry, const inspect_batch *batch, int point,
                             inspect_effect *effect, rft_error *error)
{
  const rft_policy_loss *const loss = effect->subject.loss;
  json_t *const config = json_copy(effect->config);
  json_object_set_new(config, INSPECT_THRESHOLD, json_real(inspect_sweep_threshold(point)));
  const cli_batch given = cli_subject_batch(&effect->subject, batch->source);
  char *text = NULL;
  rft_instance *instance = NULL;
  cli_evaluation evaluation;
  int32_t code = rft_json_take_text(config, 0, &text, error);
  if (code == RFT_OK) {
    code = rft_instance_create(registry, loss, text, (int64_t)strlen(text), &instance, error);
    free(text);
  }
  if (code == RFT_OK) {
    code = cli_evaluation_run(loss, effect->subject.one_pass, instance, &given, 1, NULL,
                              &evaluation, error);
    loss->destroy(instance);
  }
  if (code == RFT_OK) {
    const int64_t kept = evaluation.counts.kept_tokens;
    effect->sweep[point] = inspect_fraction(batch->valid_tokens - kept, batch->valid_tokens);
    cli_evaluation_free(&evaluation);
  }
  return code;
}

static int32_t sweep(const rft_registry *registry, const inspect_batch *batch,
                     inspect_effect *effect, rft_error *error)
{
  effect->swept = json_is_number(json_object_get(effect->config, INSPECT_THRESHOLD));
  int32_t code = RFT_OK;
  for (int i = 0; code == RFT_OK && effect->swept && i < INSPECT_SWEEP_POINTS; ++i) {
    code = try_threshold(registry, batch, i, effect, error);
  }
  return code;
}

// --------------------------------------------------------------------------------------------- run

static const double *choose_log_ratio(const inspect_batch *batch, const inspect_effect *effect)
{
  const char *const reference =
      json_string_value(json_object_get(effect->config, INSPECT_REFERENCE));
  const bool proximal = reference != NULL && strcmp(reference, INSPECT_PROXIMAL) == 0;
  return proximal && batch->proximal_log_ratio != NULL ? batch->proximal_log_ratio
                                                       : batch->log_ratio;
}

static int32_t run(const rft_registry *registry, const inspect_batch *batch, inspect_effect *effect,
                   rft_error *error)
{
  const cli_subject *const subject = &effect->subject;
  const cli_batch given = cli_subject_batch(subject, batch->source);
  cli_evaluation evaluation;
  int32_t code = rft_json_parse("config", subject->config, (int64_t)strlen(subject->config),
                                &effect->config, error);
  if (code == RFT_OK) {
    code = cli_evaluation_run(subject->loss, subject->one_pass, subject->instance, &given, 1, NULL,
                              &evaluation, error);
  }
  if (code != RFT_OK) {
    return code;
  }
  effect->loss = evaluation.loss;
  effect->log_ratio = choose_log_ratio(batch, effect);
  read_states(batch, &evaluation, effect);
  measure(batch, effect);
  effect->metrics = evaluation.metrics;
  evaluation.metrics = NULL;
  cli_evaluation_free(&evaluation);
  ask(effect);
  return sweep(registry, batch, effect, error);
}

int32_t inspect_effect_run(const rft_registry *registry, const char *loss, const char *preset,
                           const char *config, const inspect_batch *batch, inspect_effect *effect,
                           rft_error *error)
{
  *effect = (inspect_effect){.preset = preset};
  rft_error problem = {.struct_size = sizeof problem};
  int32_t code = cli_subject_open(registry, loss, preset, config, &effect->subject, &problem);
  if (code == RFT_OK) {
    effect->name = preset != NULL ? preset : effect->subject.loss->name;
    code = run(registry, batch, effect, &problem);
  }
  if (code == RFT_OK) {
    return RFT_OK;
  }
  return preset == NULL ? rft_fail(error, code, "%s", problem.message)
                        : rft_fail(error, code, "preset %s: %s", preset, problem.message);
}

void inspect_effect_free(inspect_effect *effect)
{
  cli_subject_close(&effect->subject);
  json_decref(effect->config);
  free(effect->metrics);
  free(effect->states);
}
