// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What the host offers to plugins (P16).

#include "rft/host.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ITEMS = 1000, CALLERS = 8, ROUNDS = 50 };

static rft_registry *registry_with_threads(int32_t threads)
{
  const rft_registry_options options = {.struct_size = sizeof options, .threads = threads};
  rft_registry *registry = NULL;
  cr_assert_eq(rft_registry_create(&options, &registry, NULL), RFT_OK);
  return registry;
}

static const rft_parallel *parallel_of(const rft_registry *registry)
{
  const rft_host *const host = rft_registry_host(registry);
  return host->get_service(host, RFT_HOST_PARALLEL);
}

static void count_item(void *context, int64_t i)
{
  atomic_fetch_add(&((atomic_int *)context)[i], 1);
}

static void expect_each_once(const rft_parallel *parallel, int64_t count)
{
  atomic_int runs[ITEMS] = {0};
  parallel->parallel_for(parallel, count, count_item, runs);
  for (int64_t i = 0; i < ITEMS; ++i) {
    cr_assert_eq(atomic_load(&runs[i]), i < count, "item %lld of %lld", (long long)i,
                 (long long)count);
  }
}

Test(services, offers_no_threads_and_no_log_unless_asked)
{
  rft_registry *const registry = registry_with_threads(1);
  const rft_host *const host = rft_registry_host(registry);
  cr_expect_null(host->get_service(host, RFT_HOST_PARALLEL));
  cr_expect_null(host->get_service(host, RFT_HOST_LOG));
  cr_expect_null(host->get_service(host, "rft.host.unheard_of/1"));
  rft_registry_destroy(registry);
}

Test(services, parallel_for_runs_each_item_once, .timeout = 30)
{
  rft_registry *const registry = registry_with_threads(THREADS);
  const rft_parallel *const parallel = parallel_of(registry);
  cr_expect_eq(parallel->threads, THREADS);
  const int64_t counts[] = {0, 1, 2, THREADS, THREADS + 1, ITEMS};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
    expect_each_once(parallel, counts[i]);
  }
  rft_registry_destroy(registry);
}

static void *call_many_times(void *parallel)
{
  for (int i = 0; i < ROUNDS; ++i) {
    expect_each_once(parallel, ITEMS / 10);
  }
  return NULL;
}

Test(services, parallel_for_may_be_called_by_many_threads, .timeout = 60)
{
  rft_registry *const registry = registry_with_threads(THREADS);
  pthread_t callers[CALLERS];
  for (int i = 0; i < CALLERS; ++i) {
    cr_assert_eq(pthread_create(&callers[i], NULL, call_many_times, (void *)parallel_of(registry)),
                 0);
  }
  for (int i = 0; i < CALLERS; ++i) {
    pthread_join(callers[i], NULL);
  }
  rft_registry_destroy(registry);
}

typedef struct meeting {
  pthread_mutex_t mutex;
  pthread_cond_t all_here;
  int here;
} meeting;

static void meet(void *context, int64_t i)
{
  (void)i;
  meeting *const place = context;
  pthread_mutex_lock(&place->mutex);
  if (++place->here == THREADS) {
    pthread_cond_broadcast(&place->all_here);
  }
  while (place->here < THREADS) {
    pthread_cond_wait(&place->all_here, &place->mutex);
  }
  pthread_mutex_unlock(&place->mutex);
}

Test(services, all_threads_work_at_once, .timeout = 30)
{
  rft_registry *const registry = registry_with_threads(THREADS);
  const rft_parallel *const parallel = parallel_of(registry);
  meeting place = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};
  parallel->parallel_for(parallel, THREADS, meet, &place);
  cr_expect_eq(place.here, THREADS);
  rft_registry_destroy(registry);
}

Test(services, parallel_for_needs_no_worker, .timeout = 30)
{
  rft_registry *const registry = registry_with_threads(THREADS);
  expect_each_once(parallel_of(registry), ITEMS);
  const pid_t child = fork(); // has the pool but none of its threads
  if (child == 0) {
    expect_each_once(parallel_of(registry), ITEMS);
    rft_registry_destroy(registry);
    _exit(0);
  }
  int status = 0;
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  rft_registry_destroy(registry);
}

Test(services, thread_counts_out_of_range_are_refused)
{
  rft_registry *registry = NULL;
  const int32_t wrong[] = {-1, 1025};
  for (size_t i = 0; i < 2; ++i) {
    const rft_registry_options options = {.struct_size = sizeof options, .threads = wrong[i]};
    cr_expect_eq(rft_registry_create(&options, &registry, NULL), RFT_INVALID_ARGUMENT);
  }
  cr_expect_null(registry);
}

static void store_message(void *context, int32_t level, const char *message)
{
  cr_expect_eq(level, RFT_LOG_WARNING);
  *(const char **)context = message;
}

Test(services, log_reaches_the_program)
{
  const char *stored = NULL;
  const rft_registry_options options = {
      .struct_size = sizeof options, .log = store_message, .log_context = &stored};
  rft_registry *registry = NULL;
  cr_assert_eq(rft_registry_create(&options, &registry, NULL), RFT_OK);
  const rft_host *const host = rft_registry_host(registry);
  const rft_log *const log = host->get_service(host, RFT_HOST_LOG);
  cr_assert_not_null(log);
  log->write(log, RFT_LOG_WARNING, "hello");
  cr_expect_str_eq(stored, "hello");
  rft_registry_destroy(registry);
}
