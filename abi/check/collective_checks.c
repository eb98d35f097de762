// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Selections over several ranks.

#include "check.h"
#include "selecting.h"
#include "verdict.h"

#include <inttypes.h>
#include <string.h>

enum { ROWS = 12, COLUMNS = 37 };

// Rank i gets rows [cuts[i], cuts[i + 1]), in micro-batches of two rows.
static void deal(const check_values *values, const int64_t *cuts, check_rank *ranks, int size)
{
  const check_form form = check_form_plain();
  for (int i = 0; i < size; ++i) {
    const check_values part = check_values_rows(values, cuts[i], cuts[i + 1] - cuts[i]);
    ranks[i].count = (int)(part.rows + 1) / 2;
    ranks[i].batches = check_split(&part, ranks[i].count, &form);
  }
}

static check_rank *new_ranks(int size)
{
  return check_memory((size_t)size * sizeof(check_rank), PLAIN);
}

static void expect_together(const char *fault)
{
  EXPECT(fault == NULL, "%s", fault);
}

static void expect_same_report(const check_subject *subject, const check_selected *found,
                               const check_selected *whole, int rank, int size)
{
  EXPECT(found->code == RFT_OK, "rank %d of %d: %s returns %d: %.400s", rank, size, found->function,
         found->code, found->error.message);
  EXPECT(found->report.valid_tokens == whole->report.valid_tokens &&
             found->report.kept_tokens == whole->report.kept_tokens &&
             found->report.sequences == whole->report.sequences,
         "rank %d of %d reports %" PRId64 " of %" PRId64 " tokens kept, one rank %" PRId64
         " of %" PRId64,
         rank, size, found->report.kept_tokens, found->report.valid_tokens,
         whole->report.kept_tokens, whole->report.valid_tokens);
  for (int64_t i = 0; i < subject->loss->metric_count; ++i) {
    EXPECT(found->metrics[i] == whole->metrics[i],
           "rank %d of %d reports %.17g as metric \"%.64s\", one rank %.17g", rank, size,
           found->metrics[i], subject->loss->metrics[i]->name, whole->metrics[i]);
  }
}

// The ranks' masks, one after the other, are those of one rank with all rows.
static void compare(const check_subject *subject, const check_values *values, const int64_t *cuts,
                    int size)
{
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const check_selected whole =
      check_select_ok("one rank", subject, instance, check_split(values, 1, &form), 1, NULL);
  check_rank *const ranks = new_ranks(size);
  deal(values, cuts, ranks, size);
  expect_together(check_run_ranks(subject, instance, ranks, size, 0));
  int64_t position = 0;
  for (int i = 0; i < size; ++i) {
    const check_selected *const selected = &ranks[i].selected;
    expect_same_report(subject, selected, &whole, i, size);
    for (int64_t k = 0; k < selected->count; ++k, ++position) {
      EXPECT(selected->mask[k] == whole.mask[position],
             "rank %d of %d: another mask than of one rank with all rows, at position %" PRId64, i,
             size, k);
    }
  }
}

static check_values spread(const check_subject *subject)
{
  rng r = {subject->seed};
  return check_values_spread(&r, ROWS, COLUMNS);
}

static void one_rank(const check_subject *subject)
{
  const check_values values = spread(subject);
  compare(subject, &values, (const int64_t[]){0, ROWS}, 1);
}

static void equal_ranks(const check_subject *subject)
{
  const check_values values = spread(subject);
  compare(subject, &values, (const int64_t[]){0, 6, ROWS}, 2);
}

static void unequal_ranks(const check_subject *subject)
{
  const check_values values = spread(subject);
  compare(subject, &values, (const int64_t[]){0, 1, 8, ROWS}, 3);
}

static void empty_ranks(const check_subject *subject)
{
  const check_values values = spread(subject);
  compare(subject, &values, (const int64_t[]){0, 0, 5, 5, ROWS}, 4);
}

// ----------------------------------------------------------------------------------------- traffic

static void ranks_call_alike(const check_subject *subject)
{
  const check_values values = spread(subject);
  const rft_instance *const instance = check_create(subject);
  check_rank *const ranks = new_ranks(3);
  deal(&values, (const int64_t[]){0, 1, 8, ROWS}, ranks, 3);
  expect_together(check_run_ranks(subject, instance, ranks, 3, 0));
  EXPECT(ranks[0].calls <= MOST_REDUCTIONS, "a rank reduces %" PRId64 " times", ranks[0].calls);
  for (int i = 1; i < 3; ++i) {
    EXPECT(ranks[i].calls == ranks[0].calls,
           "rank %d reduces %" PRId64 " times, rank 0 %" PRId64 " times", i, ranks[i].calls,
           ranks[0].calls);
    for (int64_t k = 0; k < ranks[0].calls; ++k) {
      EXPECT(ranks[i].counts[k] == ranks[0].counts[k],
             "reduction %" PRId64 ": rank %d gives %" PRId64 " values, rank 0 %" PRId64, k, i,
             ranks[i].counts[k], ranks[0].counts[k]);
    }
  }
}

static int64_t values_sent(const check_subject *subject, int64_t columns)
{
  rng r = {subject->seed};
  const check_values values = check_values_spread(&r, 4, columns);
  check_rank *const ranks = new_ranks(2);
  deal(&values, (const int64_t[]){0, 2, 4}, ranks, 2);
  expect_together(check_run_ranks(subject, check_create(subject), ranks, 2, 0));
  int64_t sent = 0;
  for (int64_t k = 0; k < ranks[0].calls && k < MOST_REDUCTIONS; ++k) {
    sent += ranks[0].counts[k];
  }
  return sent;
}

// Twice what a few tokens need is allowed for: the content decides, too.
static void traffic_does_not_grow(const check_subject *subject)
{
  const int64_t few = values_sent(subject, 64);
  const int64_t many = values_sent(subject, 16384);
  EXPECT(many <= (2 * few) + 1024,
         "a rank reduces %" PRId64 " values for 256 tokens and %" PRId64 " for 65536", few, many);
}

// ---------------------------------------------------------------------------------------- failures

static void expect_all_fail(const check_rank *ranks, int size, const char *what)
{
  for (int i = 0; i < size; ++i) {
    EXPECT(ranks[i].selected.code != RFT_OK, "%s: rank %d of %d returns OK", what, i, size);
    EXPECT(ranks[i].selected.error.message[0] != '\0', "%s: rank %d of %d has no error message",
           what, i, size);
    EXPECT(ranks[i].selected.report.valid_tokens == -1,
           "%s: rank %d of %d fails and writes the report", what, i, size);
  }
}

static void one_rank_fails(const check_subject *subject)
{
  const check_values values = spread(subject);
  const rft_instance *const instance = check_create(subject);
  for (int failing = 0; failing < 3; ++failing) {
    check_rank *const ranks = new_ranks(3);
    deal(&values, (const int64_t[]){0, 1, 8, ROWS}, ranks, 3);
    ranks[failing].batches[0]->logprob = NULL;
    expect_together(check_run_ranks(subject, instance, ranks, 3, 0));
    expect_all_fail(ranks, 3, "selection_add has failed on one rank");
  }
}

static void the_group_fails(const check_subject *subject)
{
  const check_values values = spread(subject);
  const rft_instance *const instance = check_create(subject);
  check_rank *const healthy = new_ranks(2);
  deal(&values, (const int64_t[]){0, 6, ROWS}, healthy, 2);
  expect_together(check_run_ranks(subject, instance, healthy, 2, 0));
  for (int64_t n = 1; n <= healthy[0].calls && n <= 8; ++n) {
    check_rank *const ranks = new_ranks(2);
    deal(&values, (const int64_t[]){0, 6, ROWS}, ranks, 2);
    expect_together(check_run_ranks(subject, instance, ranks, 2, n));
    expect_all_fail(ranks, 2, "a reduction has failed");
    EXPECT(ranks[0].calls == n, "a rank reduces again after a reduction has failed");
  }
}

static const check CHECKS[] = {
    {851, "one_rank", "P17", CHECK_COLLECTIVES, true, "splits_change_nothing",
     "A group of one rank is no group.", one_rank},
    {852, "equal_ranks", "P17", CHECK_COLLECTIVES, true, "splits_change_nothing",
     "Ranks select as one rank with all rows does.", equal_ranks},
    {853, "unequal_ranks", "P17", CHECK_COLLECTIVES, true, "equal_ranks",
     "So do ranks with different numbers of micro-batches.", unequal_ranks},
    {854, "empty_ranks", "P17", CHECK_COLLECTIVES, true, "equal_ranks",
     "So do ranks of which some have no token.", empty_ranks},
    {855, "ranks_call_alike", "P17", CHECK_COLLECTIVES, true, "unequal_ranks",
     "Every rank makes the same reductions in the same order.", ranks_call_alike},
    {856, "traffic_does_not_grow", "P17", CHECK_COLLECTIVES, true, "unequal_ranks",
     "What is reduced does not grow with the tokens.", traffic_does_not_grow},
    {857, "one_rank_fails", "P9, P17", CHECK_COLLECTIVES, true, "unequal_ranks",
     "When one rank has failed, all return an error and none waits.", one_rank_fails},
    {858, "the_group_fails", "P9, P17", CHECK_COLLECTIVES, true, "equal_ranks",
     "When a reduction fails, every rank returns an error.", the_group_fails},
};

const check_area collective_checks = CHECK_AREA(CHECKS);
