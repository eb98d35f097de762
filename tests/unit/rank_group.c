// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "rank_group.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct group {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int size;
  int arrived;
  long round;
  int64_t count;
  uint64_t *sums;   ///< of the round that is under way
  uint64_t *result; ///< of the last one
  bool broken;      ///< ranks made different calls
  bool left;        ///< a rank has returned
} group;

typedef struct member {
  group *all;
  rft_collectives collectives;
  void (*body)(void *context, const rft_collectives *collectives);
  void *context;
} member;

static void complete(group *all)
{
  free(all->result);
  all->result = all->sums;
  all->arrived = 0;
  ++all->round;
  pthread_cond_broadcast(&all->changed);
}

static bool reduce(group *all, uint64_t *values, int64_t count)
{
  const long round = all->round;
  if (all->arrived == 0) {
    all->count = count;
    all->sums = calloc((size_t)count, sizeof *values);
  }
  if (all->count != count || all->left) {
    all->broken = true;
    pthread_cond_broadcast(&all->changed);
    return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    all->sums[i] += values[i];
  }
  if (++all->arrived == all->size) {
    complete(all);
  }
  while (all->round == round && !all->broken) {
    pthread_cond_wait(&all->changed, &all->mutex);
  }
  memcpy(values, all->broken ? values : all->result, (size_t)count * sizeof *values);
  return !all->broken;
}

static int32_t all_reduce_sum(const rft_collectives *collectives, uint64_t *values, int64_t count,
                              rft_error *error)
{
  (void)error;
  group *const all = ((member *)collectives->data)->all;
  pthread_mutex_lock(&all->mutex);
  const bool done = reduce(all, values, count);
  pthread_mutex_unlock(&all->mutex);
  return done ? RFT_OK : RFT_UNAVAILABLE;
}

static void *run(void *argument)
{
  member *const me = argument;
  group *const all = me->all;
  me->body(me->context, &me->collectives);
  pthread_mutex_lock(&all->mutex);
  all->left = true;
  if (all->arrived > 0) {
    all->broken = true;
    pthread_cond_broadcast(&all->changed);
  }
  pthread_mutex_unlock(&all->mutex);
  return NULL;
}

void run_ranks(int size, void (*body)(void *context, const rft_collectives *collectives),
               void *const contexts[])
{
  group all = {.size = size};
  member members[MOST_RANKS];
  pthread_t threads[MOST_RANKS];
  pthread_mutex_init(&all.mutex, NULL);
  pthread_cond_init(&all.changed, NULL);
  for (int i = 0; i < size; ++i) {
    members[i] = (member){.all = &all,
                          .collectives = {.struct_size = sizeof(rft_collectives),
                                          .rank = i,
                                          .size = size,
                                          .data = &members[i],
                                          .all_reduce_sum = all_reduce_sum},
                          .body = body,
                          .context = contexts[i]};
    cr_assert_eq(pthread_create(&threads[i], NULL, run, &members[i]), 0);
  }
  for (int i = 0; i < size; ++i) {
    pthread_join(threads[i], NULL);
  }
  free(all.result);
  cr_assert(!all.broken, "the ranks did not make the same calls");
}
