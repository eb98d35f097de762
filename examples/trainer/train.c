// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "train.h"

#include "async.h"
#include "checkpoint.h"
#include "held_out.h"
#include "learner.h"
#include "log.h"
#include "record.h"
#include "stale.h"
#include "support/error.h"
#include "support/json.h"
#include "warm_start.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EVALUATION_BLOCKS = 8 };

typedef struct train_run {
  const train_config *config;
  const train_group *group;
  train_progress *progress;
  const volatile sig_atomic_t *stop;
  rollout_shape shape;   // this rank's share
  int64_t micro_batches; // likewise
  train_algorithm algorithm;
  const rft_parallel *parallel;
  json_t *identity;
  train_policy policy;
  train_held_out held_out;
  train_learner learner;
  stale_queue queue;     // mode stale
  async_rollouts *async; // mode async
  train_log log;
  int64_t update;   // optimizer steps taken
  double accuracy;  // measured last, by rank 0
  int64_t taken;    // optimizer steps of this process
  double staleness; // their sum
} train_run;

// ------------------------------------------------------------------------------------------ setup

static bool leads(const train_run *run)
{
  return run->group->rank == 0;
}

static int32_t agree(const train_run *run, int32_t code, rft_error *error)
{
  return run->group->agree(run->group, code, error);
}

// What every rank would say is said by one.
static void say(void *progress, int32_t level, const char *message)
{
  if (progress != NULL) {
    progress_message(progress, level, message);
  }
}

// Whole problems, so that a group of answers has its advantages on one rank.
static void take_share(train_run *run)
{
  const train_config *const config = run->config;
  const train_group *const group = run->group;
  const int64_t first = parallel_split(config->prompts, group->size, group->rank);
  const int64_t end = parallel_split(config->prompts, group->size, group->rank + 1);
  run->shape = (rollout_shape){.task = config_task(config),
                               .prompts = end - first,
                               .samples = config->samples,
                               .before = first,
                               .after = config->prompts - end};
  const int64_t parts = (config->micro_batches + group->size - 1) / group->size;
  const int64_t most = rollout_sequences(&run->shape);
  run->micro_batches = parts < most ? parts : most;
}

static void describe(const train_run *run)
{
  char text[1024];
  char *const args = rft_json_text(algorithm_args(&run->algorithm), 0);
  snprintf(text, sizeof text, "%s: policy loss %s %s", run->config->algorithm_type,
           run->algorithm.loss->name, args == NULL ? "" : args);
  free(args);
  progress_message(run->progress, RFT_LOG_INFO, text);
}

static int32_t out_of_memory(rft_error *error)
{
  return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for the model and its rollouts");
}

// Read from its file, or trained, and then written for the next run.
static int32_t find_base(train_run *run, rft_error *error)
{
  const train_config *const config = run->config;
  const char *const path = config->warm_start_file;
  json_t *const identity = checkpoint_base_identity(config);
  int32_t code = RFT_OK;
  if (path != NULL && access(path, F_OK) == 0) {
    code = checkpoint_load_base(path, identity, &run->policy, error);
  } else {
    code = warm_start(config, &run->shape.task, &run->held_out, run->parallel, run->progress,
                      run->stop, &run->policy, error);
    if (code == RFT_OK && path != NULL) {
      code = checkpoint_save_base(path, &run->policy, identity, error);
    }
  }
  json_decref(identity);
  return code;
}

// The base policy of all ranks.
static int32_t make_base(train_run *run, rft_error *error)
{
  const int32_t code = agree(run, leads(run) ? find_base(run, error) : RFT_OK, error);
  const int64_t bytes = run->policy.count * (int64_t)sizeof(float);
  return code == RFT_OK ? run->group->share(run->group, run->policy.parameters, bytes, error)
                        : code;
}

static checkpoint_state state_of(train_run *run)
{
  return (checkpoint_state){.update = run->update,
                            .policy = &run->policy,
                            .adamw = &run->learner.adamw,
                            .queue = config_is_async(run->config) ? NULL : &run->queue};
}

static int32_t load_run(train_run *run, rft_error *error)
{
  checkpoint_state state = state_of(run);
  const int32_t code = checkpoint_load(run->config->checkpoint, run->identity, &state, error);
  run->update = state.update;
  return code;
}

static int32_t save_run(train_run *run, rft_error *error)
{
  const checkpoint_state state = state_of(run);
  const int32_t code = log_sync(&run->log, error);
  return code == RFT_OK ? checkpoint_save(run->config->checkpoint, &state, run->identity, error)
                        : code;
}

static int32_t make_model(train_run *run, rft_error *error)
{
  const train_config *const config = run->config;
  const uint64_t seed = (uint64_t)config->seed;
  const policy_shape shape =
      decode_policy_shape(&run->shape.task, config->embedding, config->hidden);
  const adamw_options options = {.learning_rate = config->learning_rate,
                                 .beta1 = config->beta1,
                                 .beta2 = config->beta2,
                                 .epsilon = 1e-8,
                                 .weight_decay = config->weight_decay,
                                 .max_norm = config->grad_clip};
  if (!policy_init(&run->policy, shape, seed) ||
      !held_out_init(&run->held_out, &run->shape.task, shape, seed, config->held_out,
                     EVALUATION_BLOCKS, run->parallel)) {
    return out_of_memory(error);
  }
  if (!config_is_async(config) && !stale_init(&run->queue, config->staleness, &run->shape, shape,
                                              seed, run->micro_batches, run->parallel)) {
    return out_of_memory(error);
  }
  return learner_init(&run->learner, &run->algorithm, run->group, &run->shape, &options,
                      run->micro_batches, &run->policy, error);
}

static int32_t start_rollouts(train_run *run, bool resume, rft_error *error)
{
  const train_config *const config = run->config;
  if (config_is_async(config)) {
    const async_options options = {.threads = config->rollout_threads,
                                   .queue = config->queue,
                                   .first = run->update,
                                   .version = run->update,
                                   .seed = (uint64_t)config->seed};
    return async_start(&run->async, &options, &run->shape, &run->policy, error);
  }
  if (!resume) {
    stale_begin(&run->queue, &run->policy);
  }
  return RFT_OK;
}

static int32_t open_model(train_run *run, rft_error *error)
{
  const train_config *const config = run->config;
  take_share(run);
  const int32_t code =
      algorithm_open(&run->algorithm, config, say, leads(run) ? run->progress : NULL, error);
  if (code != RFT_OK) {
    return code;
  }
  run->parallel = parallel_service(algorithm_host(&run->algorithm));
  run->identity = checkpoint_run_identity(config, run->algorithm.preset);
  describe(run);
  return make_model(run, error);
}

static int32_t set_up(train_run *run, bool resume, rft_error *error)
{
  int32_t code = agree(run, open_model(run, error), error);
  if (code == RFT_OK) {
    code = resume ? load_run(run, error) : make_base(run, error);
  }
  if (code == RFT_OK) {
    code = log_open(&run->log, leads(run) ? run->config->log : NULL, run->update, error);
  }
  if (code == RFT_OK) {
    code = start_rollouts(run, resume, error);
  }
  return agree(run, code, error);
}

static void tear_down(train_run *run)
{
  async_stop(run->async);
  stale_free(&run->queue);
  log_close(&run->log);
  learner_free(&run->learner);
  held_out_free(&run->held_out);
  policy_free(&run->policy);
  json_decref(run->identity);
  algorithm_close(&run->algorithm);
}

// ------------------------------------------------------------------------------------------- loop

// One update: a batch to learn from, one optimizer step, and the rollout threads told of it.
static int32_t take_update(train_run *run, rollout_batch *batch, learner_step *step,
                           rft_error *error)
{
  const train_config *const config = run->config;
  *batch = config_is_async(config) ? *async_next(run->async)
                                   : stale_next(&run->queue, &run->policy, run->update);
  const int32_t code = learner_update(&run->learner, &run->policy, batch, step, error);
  if (code != RFT_OK) {
    return code;
  }
  ++run->update;
  if (config_is_async(config) && run->update % config->publish_every == 0) {
    async_publish(run->async, &run->policy, run->update);
  }
  return RFT_OK;
}

static bool is_evaluated(const train_run *run)
{
  return run->update == 1 || run->update == run->config->updates ||
         run->update % run->config->evaluate_every == 0;
}

static void show(const train_run *run, const log_entry *entry)
{
  char text[160];
  snprintf(text, sizeof text,
           "update %lld/%lld, accuracy %.3f, reward %.3f, staleness %lld, loss %+.4f",
           (long long)run->update, (long long)run->config->updates, run->accuracy, entry->reward,
           (long long)entry->staleness, entry->loss);
  progress_show(run->progress, run->update, run->config->updates, !isnan(entry->accuracy), text);
}

// What is left of an update: the record, the accuracy, the log line, the checkpoint.
static int32_t report(train_run *run, const rollout_batch *batch, const learner_step *step,
                      double seconds, rft_error *error)
{
  const train_config *const config = run->config;
  log_entry entry = {.update = run->update,
                     .staleness = run->update - 1 - batch->version,
                     .loss = step->loss,
                     .seconds = seconds,
                     .reward = step->reward,
                     .gradient_norm = step->gradient_norm,
                     .accuracy = (double)NAN,
                     .policy_loss = run->algorithm.loss,
                     .metrics = run->learner.totals + LEARNER_METRICS};
  int32_t code = RFT_OK;
  if (config->record != NULL && run->update == config->record_update) {
    code = record_write(config->record, &run->learner, batch, run->update, error);
  }
  if (code == RFT_OK && leads(run) && is_evaluated(run)) {
    run->accuracy = held_out_accuracy(&run->held_out, &run->policy);
    entry.accuracy = run->accuracy;
  }
  if (code == RFT_OK) {
    code = log_write(&run->log, &entry, error);
  }
  if (code == RFT_OK && config->checkpoint != NULL && run->update % config->checkpoint_every == 0) {
    code = save_run(run, error);
  }
  ++run->taken;
  run->staleness += (double)entry.staleness;
  show(run, &entry);
  return code;
}

static double measure(train_run *run)
{
  return leads(run) ? held_out_accuracy(&run->held_out, &run->policy) : 0.0;
}

// A signal may reach the ranks at different updates: they stop at the same.
static bool is_stopped(const train_run *run)
{
  return agree(run, *run->stop ? RFT_CANCELLED : RFT_OK, NULL) != RFT_OK;
}

static int32_t loop(train_run *run, rft_error *error)
{
  int32_t code = RFT_OK;
  progress_begin(run->progress, run->update);
  run->accuracy = measure(run);
  while (code == RFT_OK && run->update < run->config->updates && !is_stopped(run)) {
    rollout_batch batch;
    learner_step step;
    const double start = progress_clock();
    code = take_update(run, &batch, &step, error);
    if (code == RFT_OK) {
      code = report(run, &batch, &step, progress_clock() - start, error);
      code = agree(run, code, error);
    }
  }
  if (code == RFT_OK && run->config->checkpoint != NULL) {
    code = save_run(run, error);
  }
  return code;
}

int32_t train(const train_config *config, bool resume, const train_group *group,
              train_progress *progress, const volatile sig_atomic_t *stop, train_result *result,
              rft_error *error)
{
  train_run run = {.config = config, .group = group, .progress = progress, .stop = stop};
  const double start = progress_clock();
  int32_t code = set_up(&run, resume, error);
  if (code == RFT_OK) {
    code = loop(&run, error);
  }
  if (code == RFT_OK) {
    *result = (train_result){.update = run.update,
                             .accuracy = measure(&run),
                             .seconds = progress_clock() - start,
                             .staleness = run.taken == 0 ? 0.0 : run.staleness / (double)run.taken};
    if (run.update < config->updates) {
      code = rft_fail(error, RFT_CANCELLED, "interrupted after update %lld of %lld%s",
                      (long long)run.update, (long long)config->updates,
                      config->checkpoint == NULL ? "; no checkpoint was asked for"
                                                 : "; saved: --resume goes on");
    }
  }
  tear_down(&run);
  return code;
}
