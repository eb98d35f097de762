// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "host_fixture.h"

#include "rng.h"
#include "tensors.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, MESSAGES_SIZE = 4096 };

typedef struct test_host {
  rft_host host;
  rft_log log;
  rft_parallel parallel;
  host_threads threads;
  rng order;
  pthread_mutex_t lock;
  char messages[RFT_LOG_ERROR + 1][MESSAGES_SIZE];
  char asked[MESSAGES_SIZE];
} test_host;

static void write_message(const rft_log *log, int32_t level, const char *message)
{
  test_host *const self = log->host->host_data;
  pthread_mutex_lock(&self->lock);
  char *const text = self->messages[level];
  strncat(text, message, MESSAGES_SIZE - strlen(text) - 1);
  strncat(text, "\n", MESSAGES_SIZE - strlen(text) - 1);
  pthread_mutex_unlock(&self->lock);
}

// ------------------------------------------------------------------------------------ parallel_for

typedef void (*loop_body)(void *context, int64_t i);

static void run_reversed(int64_t count, loop_body body, void *context)
{
  for (int64_t i = count - 1; i >= 0; --i) {
    body(context, i);
  }
}

static void run_shuffled(test_host *self, int64_t count, loop_body body, void *context)
{
  int64_t *const order = malloc((size_t)(count + 1) * sizeof *order);
  for (int64_t i = 0; i < count; ++i) {
    order[i] = i;
  }
  for (int64_t i = count - 1; i > 0; --i) {
    const int64_t j = rng_below(&self->order, i + 1);
    const int64_t taken = order[i];
    order[i] = order[j];
    order[j] = taken;
  }
  for (int64_t i = 0; i < count; ++i) {
    body(context, order[i]);
  }
  free(order);
}

typedef struct shared_loop {
  atomic_llong next;
  int64_t count;
  loop_body body;
  void *context;
} shared_loop;

static void *run_share(void *argument)
{
  shared_loop *const loop = argument;
  for (int64_t i; (i = atomic_fetch_add(&loop->next, 1)) < loop->count;) {
    loop->body(loop->context, i);
  }
  return NULL;
}

static void run_threaded(int64_t count, loop_body body, void *context)
{
  shared_loop loop = {.count = count, .body = body, .context = context};
  pthread_t thread[THREADS];
  int started = 0;
  while (started < THREADS && pthread_create(&thread[started], NULL, run_share, &loop) == 0) {
    ++started;
  }
  run_share(&loop);
  while (started > 0) {
    pthread_join(thread[--started], NULL);
  }
}

static void parallel_for(const rft_parallel *parallel, int64_t count, loop_body body, void *context)
{
  test_host *const self = parallel->host->host_data;
  switch (self->threads) {
  case HOST_SHUFFLED:
    run_shuffled(self, count, body, context);
    break;
  case HOST_THREADED:
    run_threaded(count, body, context);
    break;
  default:
    run_reversed(count, body, context);
    break;
  }
}

// -------------------------------------------------------------------------------------------- host

static const void *get_service(const rft_host *host, const char *id)
{
  const test_host *const self = host->host_data;
  if (strcmp(id, RFT_HOST_LOG) == 0) {
    return &self->log;
  }
  if (strcmp(id, RFT_HOST_PARALLEL) == 0 && self->threads != HOST_SERIAL) {
    return &self->parallel;
  }
  return NULL;
}

const rft_host *host_new(host_threads threads, int32_t hint)
{
  test_host *const self = test_alloc(sizeof *self);
  *self = (test_host){
      .host = {.struct_size = sizeof self->host,
               .abi_minor = RFT_ABI_MINOR,
               .name = "test",
               .version = "1.0.0",
               .host_data = self,
               .get_service = get_service},
      .log = {.struct_size = sizeof self->log, .host = &self->host, .write = write_message},
      .parallel = {.struct_size = sizeof self->parallel,
                   .threads = hint,
                   .host = &self->host,
                   .parallel_for = parallel_for},
      .threads = threads,
      .order = {UINT64_C(7)},
  };
  pthread_mutex_init(&self->lock, NULL);
  return &self->host;
}

const char *host_messages(const rft_host *host, int32_t level)
{
  test_host *const self = host->host_data;
  self->asked[0] = '\0';
  for (int32_t i = level; i <= RFT_LOG_ERROR; ++i) {
    strncat(self->asked, self->messages[i], MESSAGES_SIZE - strlen(self->asked) - 1);
  }
  return self->asked;
}
