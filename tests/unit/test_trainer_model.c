// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The trainer's numbers: the policy against a literal double-precision version and its finite
// differences, the optimizer against its paper's formulas, and rollouts against their promises.

#include "adamw.h"
#include "held_out.h"
#include "policy.h"
#include "stale.h"
#include "task.h"
#include "teacher.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(trainer_model);

// ------------------------------------------------------------------------------- literal versions

// out = in weights + bias, then relu where asked.
static void literal_layer(const double *in, const double *weights, const double *bias,
                          int64_t inputs, int64_t outputs, bool relu, double *out)
{
  for (int64_t o = 0; o < outputs; ++o) {
    double sum = bias[o];
    for (int64_t i = 0; i < inputs; ++i) {
      sum += in[i] * weights[i * outputs + o];
    }
    out[o] = relu && sum < 0.0 ? 0.0 : sum;
  }
}

static double literal_logprob(const train_policy *policy, const double *p, const uint8_t *symbols,
                              uint8_t action)
{
  const policy_shape *const s = &policy->shape;
  const int64_t *const at = policy->offset;
  double x[64] = {0.0};
  double h1[16] = {0.0};
  double h2[16] = {0.0};
  double logits[POLICY_ACTIONS];
  for (int64_t i = 0; i < s->slots; ++i) {
    for (int64_t j = 0; j < s->embedding; ++j) {
      x[i * s->embedding + j] = p[at[POLICY_EMBEDDING] + symbols[i] * s->embedding + j];
    }
  }
  literal_layer(x, p + at[POLICY_W1], p + at[POLICY_B1], s->slots * s->embedding, s->hidden, true,
                h1);
  literal_layer(h1, p + at[POLICY_W2], p + at[POLICY_B2], s->hidden, s->hidden, true, h2);
  literal_layer(h2, p + at[POLICY_W3], p + at[POLICY_B3], s->hidden, POLICY_ACTIONS, false, logits);
  double sum = 0.0;
  for (int i = 0; i < POLICY_ACTIONS; ++i) {
    sum += exp(logits[i]);
  }
  return logits[action] - log(sum);
}

enum { ROWS = 7, SLOTS = 4, PARAMETERS = 1024 };

// A small policy with a batch of rows, and a scalar L = sum over rows of weight * logprob(chosen).
typedef struct fixture {
  train_policy policy;
  policy_workspace workspace;
  double parameters[PARAMETERS];
  uint8_t symbols[ROWS * SLOTS];
  uint8_t chosen[ROWS];
  float weight[ROWS];
} fixture;

static fixture *fixture_new(void)
{
  fixture *const f = calloc(1, sizeof *f);
  train_rng generator = rng_make(1, RNG_SAMPLE, 0);
  const policy_shape shape = {.slots = SLOTS, .embedding = 3, .hidden = 6};
  cr_assert(policy_init(&f->policy, shape, 3) && policy_workspace_init(&f->workspace, shape, ROWS));
  cr_assert_leq(f->policy.count, PARAMETERS);
  for (int64_t i = 0; i < f->policy.count; ++i) { // biases too: zeros would hide their gradients
    f->policy.parameters[i] += (float)(0.2 * rng_uniform(&generator) - 0.1);
    f->parameters[i] = (double)f->policy.parameters[i];
  }
  for (int i = 0; i < ROWS * SLOTS; ++i) {
    f->symbols[i] = (uint8_t)rng_below(&generator, f->policy.shape.symbols);
  }
  for (int i = 0; i < ROWS; ++i) {
    f->chosen[i] = (uint8_t)rng_below(&generator, POLICY_ACTIONS);
    f->weight[i] = (float)(2.0 * rng_uniform(&generator) - 1.0);
  }
  return f;
}

static void fixture_free(fixture *f)
{
  policy_free(&f->policy);
  policy_workspace_free(&f->workspace);
  free(f);
}

static double literal_scalar(const fixture *f)
{
  double total = 0.0;
  for (int64_t row = 0; row < ROWS; ++row) {
    total += (double)f->weight[row] *
             literal_logprob(&f->policy, f->parameters, f->symbols + row * SLOTS, f->chosen[row]);
  }
  return total;
}

Test(trainer_model, log_probabilities_are_those_of_the_literal_network)
{
  fixture *const f = fixture_new();
  policy_forward(&f->policy, f->symbols, ROWS, &f->workspace);
  for (int64_t row = 0; row < ROWS; ++row) {
    for (uint8_t action = 0; action < POLICY_ACTIONS; ++action) {
      const double expected =
          literal_logprob(&f->policy, f->parameters, f->symbols + row * SLOTS, action);
      const double got = (double)f->workspace.logprob[row * POLICY_ACTIONS + action];
      cr_assert_float_eq(got, expected, 1e-5, "row %d, action %d: %g, expected %g", (int)row,
                         action, got, expected);
    }
  }
  fixture_free(f);
}

Test(trainer_model, policy_gradient_is_that_of_finite_differences)
{
  fixture *const f = fixture_new();
  float *const gradient = calloc((size_t)f->policy.count, sizeof(float));
  const double h = 1e-6;
  policy_forward(&f->policy, f->symbols, ROWS, &f->workspace);
  policy_backward(&f->policy, f->symbols, f->chosen, f->weight, ROWS, &f->workspace, gradient);
  for (int64_t i = 0; i < f->policy.count; ++i) {
    const double middle = f->parameters[i];
    f->parameters[i] = middle + h;
    const double above = literal_scalar(f);
    f->parameters[i] = middle - h;
    const double below = literal_scalar(f);
    f->parameters[i] = middle;
    const double expected = (above - below) / (2.0 * h);
    cr_assert_float_eq((double)gradient[i], expected, 1e-4, "parameter %d: %g, expected %g", (int)i,
                       (double)gradient[i], expected);
  }
  free(gradient);
  fixture_free(f);
}

// ----------------------------------------------------------------------------------------- AdamW

Test(trainer_model, adamw_takes_the_steps_of_its_paper)
{
  const adamw_options o = {.learning_rate = 0.01,
                           .beta1 = 0.9,
                           .beta2 = 0.99,
                           .epsilon = 1e-8,
                           .weight_decay = 0.1,
                           .max_norm = 1.0};
  const float gradients[3][2] = {{0.3F, -0.4F}, {3.0F, 4.0F}, {-0.1F, 0.0F}};
  float parameters[2] = {1.0F, -2.0F};
  double expected[2] = {1.0, -2.0};
  double m[2] = {0.0, 0.0};
  double v[2] = {0.0, 0.0};
  train_adamw adamw;
  cr_assert(adamw_init(&adamw, 2));
  for (int t = 1; t <= 3; ++t) {
    const float *const g = gradients[t - 1];
    const double norm = hypot((double)g[0], (double)g[1]);
    const double found = adamw_step(&adamw, &o, parameters, g);
    cr_assert_float_eq(found, norm, 1e-6);
    for (int i = 0; i < 2; ++i) {
      const double clipped = (double)g[i] * (norm > 1.0 ? 1.0 / norm : 1.0);
      m[i] = o.beta1 * m[i] + (1.0 - o.beta1) * clipped;
      v[i] = o.beta2 * v[i] + (1.0 - o.beta2) * clipped * clipped;
      const double mean = m[i] / (1.0 - pow(o.beta1, t));
      const double square = v[i] / (1.0 - pow(o.beta2, t));
      expected[i] -=
          o.learning_rate * (mean / (sqrt(square) + o.epsilon) + o.weight_decay * expected[i]);
      cr_assert_float_eq((double)parameters[i], expected[i], 1e-6,
                         "step %d, parameter %d: %.9g, expected %.9g", t, i, (double)parameters[i],
                         expected[i]);
    }
  }
  adamw_free(&adamw);
}

// -------------------------------------------------------------------------------------- rollouts

Test(trainer_model, samples_follow_the_distribution)
{
  enum { DRAWS = 100000 };
  float logprob[POLICY_ACTIONS];
  int64_t count[POLICY_ACTIONS] = {0};
  train_rng generator = rng_make(11, RNG_SAMPLE, 0);
  for (int i = 0; i < POLICY_ACTIONS; ++i) {
    logprob[i] = logf((float)(i + 1) / 55.0F);
  }
  for (int i = 0; i < DRAWS; ++i) {
    ++count[policy_sample(logprob, &generator)];
  }
  for (int i = 0; i < POLICY_ACTIONS; ++i) {
    const double share = (i + 1) / 55.0;
    const double deviation = sqrt(DRAWS * share * (1.0 - share));
    cr_assert_float_eq((double)count[i], DRAWS * share, 5.0 * deviation, "action %d", i);
  }
  cr_assert_eq(policy_greedy(logprob), 9);
}

static const rollout_shape small = {.task = {.kind = &task_addition,
                                             .size = 2,
                                             .symbols = TASK_FIRST_WORD,
                                             .prompt_length = 4,
                                             .answer_length = 3,
                                             .result_length = 3,
                                             .row_length = 6},
                                    .prompts = 5,
                                    .samples = 4};
enum { SEQUENCES = 20, LENGTH = 7, ANSWER = 3 };

Test(trainer_model, sampled_log_probabilities_are_those_that_the_teacher_finds)
{
  const policy_shape shape = decode_policy_shape(&small.task, 4, 8);
  train_policy policy;
  rollout_sampler sampler;
  rollout_batch batch;
  train_teacher teacher;
  cr_assert(policy_init(&policy, shape, 2) && rollout_batch_init(&batch, &small) &&
            rollout_sampler_init(&sampler, &small, shape, 2, 1, NULL) &&
            teacher_init(&teacher, &small.task, &policy, SEQUENCES, 3, NULL));
  rollout_sample(&sampler, &policy, 0, 0, &batch);
  teacher_forward(&teacher, &policy, batch.sequences);
  for (int i = 0; i < SEQUENCES * ANSWER; ++i) {
    cr_assert_float_eq((double)batch.logprob[i], (double)teacher.logprob[i], 1e-5, "digit %d", i);
  }
  teacher_free(&teacher);
  rollout_sampler_free(&sampler);
  rollout_batch_free(&batch);
  policy_free(&policy);
}

Test(trainer_model, samples_of_a_group_answer_one_prompt)
{
  const policy_shape shape = decode_policy_shape(&small.task, 4, 8);
  train_policy policy;
  rollout_sampler sampler;
  rollout_batch batch;
  cr_assert(policy_init(&policy, shape, 2) && rollout_batch_init(&batch, &small) &&
            rollout_sampler_init(&sampler, &small, shape, 2, 3, NULL));
  rollout_sample(&sampler, &policy, 0, 0, &batch);
  for (int64_t s = 0; s < SEQUENCES; ++s) {
    const uint8_t *const sequence = batch.sequences + s * LENGTH;
    const uint8_t *const first = batch.sequences + s / 4 * 4 * LENGTH;
    cr_assert_arr_eq(sequence, first, 4, "sequence %d", (int)s);
    cr_assert_eq(batch.reward[s], task_reward(&small.task, sequence, sequence + 4));
  }
  const uint8_t *const second = batch.sequences + (ptrdiff_t)4 * LENGTH;
  const uint8_t *const third = batch.sequences + (ptrdiff_t)8 * LENGTH;
  cr_assert(memcmp(batch.sequences, second, 4) != 0 || memcmp(second, third, 4) != 0);
  rollout_sampler_free(&sampler);
  rollout_batch_free(&batch);
  policy_free(&policy);
}

Test(trainer_model, rollouts_are_exactly_as_old_as_asked)
{
  enum { STALENESS = 3 };
  const policy_shape shape = decode_policy_shape(&small.task, 4, 8);
  train_policy policy;
  stale_queue queue;
  rollout_sampler fresh;
  rollout_batch expected;
  uint8_t seen[12][SEQUENCES * LENGTH];
  cr_assert(policy_init(&policy, shape, 2) && rollout_batch_init(&expected, &small) &&
            stale_init(&queue, STALENESS, &small, shape, 2, 3, NULL) &&
            rollout_sampler_init(&fresh, &small, shape, 2, 3, NULL));
  for (int i = 0; i < STALENESS; ++i) {
    rollout_sample(&fresh, &policy, i, 0, &expected);
    memcpy(seen[i], expected.sequences, sizeof seen[i]);
  }
  stale_begin(&queue, &policy);
  for (int update = 0; update < 8; ++update) {
    policy.parameters[0] += 0.5F; // a policy of its own for each update
    rollout_sample(&fresh, &policy, update + STALENESS, update, &expected);
    memcpy(seen[update + STALENESS], expected.sequences, sizeof seen[0]);
    const rollout_batch batch = stale_next(&queue, &policy, update);
    cr_assert_eq(update - batch.version, update < STALENESS ? update : STALENESS);
    cr_assert_arr_eq(batch.sequences, seen[update], sizeof seen[0], "update %d", update);
  }
  rollout_sampler_free(&fresh);
  stale_free(&queue);
  rollout_batch_free(&expected);
  policy_free(&policy);
}
