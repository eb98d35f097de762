// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Ranks are threads, and their all-reduce a sum that the last to arrive completes.

#include "selecting.h"
#include "support/error.h"
#include "verdict.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct group {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int size;
  int arrived;
  int64_t round;
  int64_t fail_at;
  int64_t count;
  uint64_t *sums;
  uint64_t *result;
  const char *fault; ///< of the ranks together: the group has ended
  bool left;         ///< a rank has returned
} group;

typedef struct member {
  const check_subject *subject;
  const rft_instance *instance;
  check_rank *rank;
  group *all;
  rft_collectives collectives;
} member;

static void give_up(group *all, const char *fault)
{
  all->fault = all->fault == NULL ? fault : all->fault;
  pthread_cond_broadcast(&all->changed);
}

static void contribute(group *all, const uint64_t *values, int64_t count)
{
  if (all->arrived++ == 0) {
    all->count = count;
    all->sums = check_memory((size_t)count * sizeof *values, PLAIN);
  }
  if (all->count != count) {
    give_up(all, "ranks reduce different numbers of values at once");
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    all->sums[i] += values[i];
  }
}

static void complete(group *all)
{
  all->result = all->sums;
  all->arrived = 0;
  ++all->round;
  pthread_cond_broadcast(&all->changed);
}

static int32_t reduce(group *all, uint64_t *values, int64_t count)
{
  const int64_t round = all->round;
  if (all->left) {
    give_up(all, "a rank has returned while another still reduces");
  }
  if (all->fault != NULL) {
    return RFT_ABORTED;
  }
  contribute(all, values, count);
  if (all->arrived == all->size) {
    complete(all);
  }
  while (all->round == round && all->fault == NULL) {
    pthread_cond_wait(&all->changed, &all->mutex);
  }
  if (all->fault != NULL) {
    return RFT_ABORTED;
  }
  memcpy(values, all->result, (size_t)count * sizeof *values);
  return round + 1 == all->fail_at ? RFT_UNAVAILABLE : RFT_OK;
}

static int32_t all_reduce_sum(const rft_collectives *collectives, uint64_t *values, int64_t count,
                              rft_error *error)
{
  member *const me = collectives->data;
  check_rank *const rank = me->rank;
  pthread_mutex_lock(&me->all->mutex);
  if (rank->calls < MOST_REDUCTIONS) {
    rank->counts[rank->calls] = count;
  }
  ++rank->calls;
  const int32_t code = reduce(me->all, values, count);
  pthread_mutex_unlock(&me->all->mutex);
  return code == RFT_OK ? RFT_OK : rft_fail(error, code, "the group has failed");
}

static void *run_rank(void *argument)
{
  member *const me = argument;
  me->rank->selected =
      check_select(me->subject, me->instance, me->rank->batches, me->rank->count, &me->collectives);
  pthread_mutex_lock(&me->all->mutex);
  me->all->left = true;
  if (me->all->arrived > 0) {
    give_up(me->all, "a rank has returned while another still reduces");
  }
  pthread_mutex_unlock(&me->all->mutex);
  return NULL;
}

const char *check_run_ranks(const check_subject *subject, const rft_instance *instance,
                            check_rank *ranks, int size, int64_t fail_at)
{
  group all = {.size = size, .fail_at = fail_at};
  member members[MOST_RANKS];
  pthread_t threads[MOST_RANKS];
  pthread_mutex_init(&all.mutex, NULL);
  pthread_cond_init(&all.changed, NULL);
  for (int i = 0; i < size; ++i) {
    ranks[i].calls = 0;
    members[i] = (member){subject, instance, &ranks[i], &all, {0}};
    members[i].collectives =
        (rft_collectives){.struct_size = RFT_STRUCT_SIZE(rft_collectives, all_reduce_sum),
                          .rank = i,
                          .size = size,
                          .data = &members[i],
                          .all_reduce_sum = all_reduce_sum};
    if (pthread_create(&threads[i], NULL, run_rank, &members[i]) != 0) {
      check_skip("no thread can be started");
    }
  }
  for (int i = 0; i < size; ++i) {
    pthread_join(threads[i], NULL);
  }
  return all.fault;
}
