// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "pool.h"

#include "support/error.h"
#include "support/system_error.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A loop in progress, on its caller's stack. It is in the pool's list as long as items are left to
// claim, and only then do workers see it.
typedef struct loop {
  void (*body)(void *context, int64_t i);
  void *context;
  int64_t next;
  int64_t count;
  int64_t running; // items claimed by workers and not finished
  pthread_cond_t finished;
  struct loop *following;
} loop;

struct rft_pool {
  pthread_mutex_t mutex; // guards all below, and the fields of every loop
  pthread_cond_t work;
  loop *loops;
  bool stopping;
  pid_t process;
  int32_t worker_count;
  pthread_t workers[];
};

static void unlink_loop(rft_pool *pool, const loop *done)
{
  loop **link = &pool->loops;
  while (*link != done) {
    link = &(*link)->following;
  }
  *link = done->following;
}

// The next item of a loop that has one.
static int64_t claim(rft_pool *pool, loop *from)
{
  const int64_t item = from->next++;
  if (from->next == from->count) {
    unlink_loop(pool, from);
  }
  return item;
}

static void *work(void *argument)
{
  rft_pool *const pool = argument;
  pthread_mutex_lock(&pool->mutex);
  while (!pool->stopping) {
    loop *const current = pool->loops;
    if (current == NULL) {
      pthread_cond_wait(&pool->work, &pool->mutex);
      continue;
    }
    const int64_t item = claim(pool, current);
    ++current->running;
    pthread_mutex_unlock(&pool->mutex);
    current->body(current->context, item);
    pthread_mutex_lock(&pool->mutex);
    if (--current->running == 0) {
      pthread_cond_signal(&current->finished);
    }
  }
  pthread_mutex_unlock(&pool->mutex);
  return NULL;
}

void rft_pool_run(rft_pool *pool, int64_t count, void (*body)(void *context, int64_t i),
                  void *context)
{
  if (count <= 0) {
    return;
  }
  loop own = {.body = body, .context = context, .count = count};
  pthread_cond_init(&own.finished, NULL);
  pthread_mutex_lock(&pool->mutex);
  own.following = pool->loops;
  // cppcheck-suppress autoVariables ; unlinked before this function returns
  pool->loops = &own;
  for (int64_t i = 1; i < count && i <= pool->worker_count; ++i) {
    pthread_cond_signal(&pool->work);
  }
  while (own.next < own.count) {
    const int64_t item = claim(pool, &own);
    pthread_mutex_unlock(&pool->mutex);
    body(context, item);
    pthread_mutex_lock(&pool->mutex);
  }
  while (own.running > 0) {
    pthread_cond_wait(&own.finished, &pool->mutex);
  }
  pthread_mutex_unlock(&pool->mutex);
  pthread_cond_destroy(&own.finished);
}

// Signals go to the program's own threads, which know what to do with them.
static int start_worker(rft_pool *pool)
{
  sigset_t all;
  sigset_t previous;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &previous);
  const int problem = pthread_create(&pool->workers[pool->worker_count], NULL, work, pool);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pool->worker_count += problem == 0;
  return problem;
}

int32_t rft_pool_create(int32_t workers, rft_pool **pool, rft_error *error)
{
  rft_pool *const made = calloc(1, sizeof *made + (size_t)workers * sizeof made->workers[0]);
  if (made == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for %d threads", workers);
  }
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->work, NULL);
  made->process = getpid();
  for (int32_t i = 0; i < workers; ++i) {
    const int problem = start_worker(made);
    if (problem != 0) {
      rft_pool_destroy(made);
      char words[RFT_SYSTEM_ERROR_SIZE];
      return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "cannot start thread %d of %d: %s", i + 1,
                      workers, rft_system_error(words, problem));
    }
  }
  *pool = made;
  return RFT_OK;
}

void rft_pool_destroy(rft_pool *pool)
{
  if (pool == NULL) {
    return;
  }
  // A forked child has the memory but not the threads, and would wait for them forever.
  if (pool->process == getpid()) {
    pthread_mutex_lock(&pool->mutex);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int32_t i = 0; i < pool->worker_count; ++i) {
      pthread_join(pool->workers[i], NULL);
    }
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
  }
  free(pool);
}
