// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "warm_start.h"

#include "adamw.h"
#include "support/error.h"

#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 8, EVALUATE_EVERY = 10, REPORT_EVERY = 100 };

typedef struct warm_start_run {
  const train_config *config;
  const train_task *task;
  train_teacher teacher;
  train_adamw adamw;
  uint8_t *sequences; // [batch, prompt_length + answer_length]
} warm_start_run;

// One step on a batch of its own; the loss is the mean of -logprob over all answer digits.
static void step(warm_start_run *run, train_policy *policy, int64_t index)
{
  const train_config *const config = run->config;
  const train_task *const task = run->task;
  const adamw_options options = {.learning_rate = config->warm_start_learning_rate,
                                 .beta1 = 0.9,
                                 .beta2 = 0.999,
                                 .epsilon = 1e-8,
                                 .max_norm = 1.0};
  const int64_t digits = config->warm_start_batch * task->answer_length;
  train_rng generator = rng_make((uint64_t)config->seed, RNG_WARM_START, index);

  for (int64_t i = 0; i < config->warm_start_batch; ++i) {
    uint8_t *const sequence = run->sequences + i * (task->prompt_length + task->answer_length);
    task_draw(task, false, &generator, sequence);
    task_solve(task, sequence, sequence + task->prompt_length);
  }
  teacher_forward(&run->teacher, policy, run->sequences);
  for (int64_t i = 0; i < digits; ++i) {
    run->teacher.dlogprob[i] = -1.0F / (float)digits;
  }
  teacher_backward(&run->teacher, policy);
  teacher_add_gradients(&run->teacher);
  adamw_step(&run->adamw, &options, policy->parameters, run->teacher.gradient);
}

static int32_t train(warm_start_run *run, train_held_out *held_out, train_progress *progress,
                     const volatile sig_atomic_t *stop, train_policy *policy, rft_error *error)
{
  const double target = run->config->warm_start_target;
  double accuracy = held_out_accuracy(held_out, policy);
  int64_t taken = 0;
  while (accuracy < target && taken < run->config->warm_start_max_steps) {
    step(run, policy, taken++);
    if (taken % EVALUATE_EVERY == 0) {
      char text[128];
      accuracy = held_out_accuracy(held_out, policy);
      snprintf(text, sizeof text, "warm start: step %lld, accuracy %.3f", (long long)taken,
               accuracy);
      progress_show(progress, taken, 0, taken % REPORT_EVERY == 0 || accuracy >= target, text);
    }
    if (*stop) {
      return rft_fail(error, RFT_CANCELLED, "interrupted in the warm start, which is not saved");
    }
  }
  return accuracy >= target
             ? RFT_OK
             : rft_fail(error, RFT_DEADLINE_EXCEEDED,
                        "warm start: expected accuracy %g within max_steps = %lld, found %g",
                        target, (long long)run->config->warm_start_max_steps, accuracy);
}

int32_t warm_start(const train_config *config, const train_task *task, train_held_out *held_out,
                   const rft_parallel *parallel, train_progress *progress,
                   const volatile sig_atomic_t *stop, train_policy *policy, rft_error *error)
{
  const int64_t length = task->prompt_length + task->answer_length;
  warm_start_run run = {.config = config,
                        .task = task,
                        .sequences = malloc((size_t)(config->warm_start_batch * length))};
  int32_t code = RFT_OK;
  if (run.sequences == NULL || !adamw_init(&run.adamw, policy->count) ||
      !teacher_init(&run.teacher, task, policy, config->warm_start_batch, BLOCKS, parallel)) {
    code = rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for the warm start");
  } else {
    progress_begin(progress, 0);
    code = train(&run, held_out, progress, stop, policy, error);
  }
  free(run.sequences);
  adamw_free(&run.adamw);
  teacher_free(&run.teacher);
  return code;
}
