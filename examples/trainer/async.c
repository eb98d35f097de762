// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "async.h"

#include "support/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct async_worker {
  async_rollouts *owner;
  rollout_sampler sampler;
  train_policy policy; // its own copy of the weights
  pthread_t thread;
} async_worker;

struct async_rollouts {
  pthread_mutex_t mutex; // guards all below but worker and in_use
  pthread_cond_t has_ready;
  pthread_cond_t has_free;
  bool stopping;
  train_policy published;
  int64_t version;
  int64_t next_index;
  int64_t batches;
  rollout_batch *batch;   // [batches]
  rollout_batch **ready;  // [batches], a ring: oldest at `first_ready`
  rollout_batch **unused; // [batches], a stack
  int64_t first_ready;
  int64_t ready_count;
  int64_t unused_count;

  rollout_batch *in_use; // the learner's
  int64_t workers;       // running
  async_worker *worker;  // [threads]
  int64_t threads;
};

// ---------------------------------------------------------------------------------------- workers

// Waits for a batch to fill and takes the newest weights for it; false when it is time to stop.
static bool begin_batch(async_worker *worker, rollout_batch **batch, int64_t *index,
                        int64_t *version)
{
  async_rollouts *const self = worker->owner;
  pthread_mutex_lock(&self->mutex);
  while (self->unused_count == 0 && !self->stopping) {
    pthread_cond_wait(&self->has_free, &self->mutex);
  }
  const bool go = !self->stopping;
  if (go) {
    *batch = self->unused[--self->unused_count];
    *index = self->next_index++;
    *version = self->version;
    memcpy(worker->policy.parameters, self->published.parameters,
           (size_t)self->published.count * sizeof(float));
  }
  pthread_mutex_unlock(&self->mutex);
  return go;
}

static void finish_batch(async_rollouts *self, rollout_batch *batch)
{
  pthread_mutex_lock(&self->mutex);
  self->ready[(self->first_ready + self->ready_count++) % self->batches] = batch;
  pthread_cond_signal(&self->has_ready);
  pthread_mutex_unlock(&self->mutex);
}

static void *work(void *argument)
{
  async_worker *const worker = argument;
  rollout_batch *batch = NULL;
  int64_t index = 0;
  int64_t version = 0;
  while (begin_batch(worker, &batch, &index, &version)) {
    rollout_sample(&worker->sampler, &worker->policy, index, version, batch);
    finish_batch(worker->owner, batch);
  }
  return NULL;
}

// ---------------------------------------------------------------------------------------- learner

const rollout_batch *async_next(async_rollouts *self)
{
  pthread_mutex_lock(&self->mutex);
  if (self->in_use != NULL) {
    self->unused[self->unused_count++] = self->in_use;
    pthread_cond_signal(&self->has_free);
  }
  while (self->ready_count == 0) {
    pthread_cond_wait(&self->has_ready, &self->mutex);
  }
  self->in_use = self->ready[self->first_ready];
  self->first_ready = (self->first_ready + 1) % self->batches;
  --self->ready_count;
  pthread_mutex_unlock(&self->mutex);
  return self->in_use;
}

void async_publish(async_rollouts *self, const train_policy *policy, int64_t version)
{
  pthread_mutex_lock(&self->mutex);
  memcpy(self->published.parameters, policy->parameters, (size_t)policy->count * sizeof(float));
  self->version = version;
  pthread_mutex_unlock(&self->mutex);
}

// ---------------------------------------------------------------------------------- start and stop

static bool allocate(async_rollouts *self, const async_options *options, const rollout_shape *shape,
                     const train_policy *policy)
{
  const size_t batches = (size_t)self->batches;
  self->batch = calloc(batches, sizeof(rollout_batch));
  self->ready = calloc(batches, sizeof(rollout_batch *));
  self->unused = calloc(batches, sizeof(rollout_batch *));
  self->worker = calloc((size_t)self->threads, sizeof(async_worker));
  bool whole = self->batch != NULL && self->ready != NULL && self->unused != NULL &&
               self->worker != NULL && policy_init(&self->published, policy->shape, 0);
  for (int64_t i = 0; whole && i < self->batches; ++i) {
    self->unused[self->unused_count++] = &self->batch[i];
    whole = rollout_batch_init(&self->batch[i], shape);
  }
  for (int64_t i = 0; whole && i < self->threads; ++i) {
    async_worker *const worker = &self->worker[i];
    worker->owner = self;
    whole = policy_init(&worker->policy, policy->shape, 0) &&
            rollout_sampler_init(&worker->sampler, shape, policy->shape, options->seed, 1, NULL);
  }
  return whole;
}

// Signals go to the main thread, which saves the run.
static int start_worker(async_worker *worker)
{
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  const int problem = pthread_create(&worker->thread, NULL, work, worker);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  return problem;
}

int32_t async_start(async_rollouts **self, const async_options *options, const rollout_shape *shape,
                    const train_policy *policy, rft_error *error)
{
  async_rollouts *const made = calloc(1, sizeof *made);
  if (made == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory");
  }
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->has_ready, NULL);
  pthread_cond_init(&made->has_free, NULL);
  made->batches = options->queue;
  made->threads = options->threads;
  made->next_index = options->first;
  if (!allocate(made, options, shape, policy)) {
    async_stop(made);
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for %lld rollout batches",
                    (long long)options->queue);
  }
  async_publish(made, policy, options->version);
  for (; made->workers < made->threads; ++made->workers) {
    const int problem = start_worker(&made->worker[made->workers]);
    if (problem != 0) {
      async_stop(made);
      return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "cannot start a rollout thread: %s",
                      strerror(problem));
    }
  }
  *self = made;
  return RFT_OK;
}

void async_stop(async_rollouts *self)
{
  if (self == NULL) {
    return;
  }
  pthread_mutex_lock(&self->mutex);
  self->stopping = true;
  pthread_cond_broadcast(&self->has_free);
  pthread_mutex_unlock(&self->mutex);
  for (int64_t i = 0; i < self->workers; ++i) {
    pthread_join(self->worker[i].thread, NULL);
  }
  for (int64_t i = 0; self->worker != NULL && i < self->threads; ++i) {
    policy_free(&self->worker[i].policy);
    rollout_sampler_free(&self->worker[i].sampler);
  }
  for (int64_t i = 0; self->batch != NULL && i < self->batches; ++i) {
    rollout_batch_free(&self->batch[i]);
  }
  policy_free(&self->published);
  free(self->worker);
  free(self->batch);
  free(self->ready);
  free(self->unused);
  pthread_cond_destroy(&self->has_ready);
  pthread_cond_destroy(&self->has_free);
  pthread_mutex_destroy(&self->mutex);
  free(self);
}
