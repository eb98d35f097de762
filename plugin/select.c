// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "select.h"

#include "gather.h"
#include "metrics.h"
#include "reduce.h"
#include "support/error.h"
#include "support/structs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef enum selection_state {
  ADDING,
  FAILED,   // an add failed: finish still takes part in the reductions, to tell the other ranks
  FINISHED, // with masks to give
  SPENT     // finish failed
} selection_state;

struct rft_selection {
  const rft_instance *instance;
  m2po_rule rule;
  selection_state state;
  rft_error failure; ///< of the add that failed
  int64_t count;     ///< of micro-batches
  int64_t capacity;
  m2po_gathered *gathered;  ///< [count]
  m2po_square_list squares; ///< m of every candidate
  m2po_totals totals;       ///< of this rank
  bool cuts;                ///< something is dropped
  m2po_cut cut;
  m2po_bin bins[M2PO_BINS]; ///< scratch; part of the struct so that finish can't run out of memory
};

int32_t m2po_selection_begin(const rft_instance *instance, rft_selection **selection,
                             rft_error *error)
{
  rft_selection *const made = calloc(1, sizeof *made);
  if (made == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "m2po: out of memory in selection_begin");
  }
  made->instance = instance;
  made->rule = m2po_rule_of(&instance->config);
  made->squares = m2po_squares_begin(1);
  made->failure.struct_size = sizeof made->failure;
  *selection = made;
  return RFT_OK;
}

void m2po_selection_end(rft_selection *selection)
{
  if (selection == NULL) {
    return;
  }
  for (int64_t i = 0; i < selection->count; ++i) {
    free(selection->gathered[i].valid);
    free(selection->gathered[i].candidate);
  }
  free(selection->gathered);
  m2po_squares_free(&selection->squares);
  free(selection);
}

// Room for one more micro-batch.
static bool reserve(rft_selection *selection)
{
  if (selection->count < selection->capacity) {
    return true;
  }
  const int64_t capacity = selection->capacity == 0 ? 8 : selection->capacity * 2;
  m2po_gathered *const gathered =
      realloc(selection->gathered, (size_t)capacity * sizeof selection->gathered[0]);
  if (gathered == NULL) {
    return false;
  }
  selection->gathered = gathered;
  selection->capacity = capacity;
  return true;
}

static int32_t check_state(const rft_selection *selection, selection_state expected,
                           const char *function, rft_error *error)
{
  if (selection->state == expected) {
    return RFT_OK;
  }
  if (selection->state == FAILED) {
    return rft_fail(error, RFT_FAILED_PRECONDITION, "%s: an earlier selection_add failed: %.400s",
                    function, selection->failure.message);
  }
  return rft_fail(error, RFT_FAILED_PRECONDITION, "%s: expected a call %s selection_finish%s",
                  function, expected == ADDING ? "before" : "after",
                  selection->state == SPENT ? ", which failed" : "");
}

void m2po_selection_fail(rft_selection *selection, const rft_error *failure)
{
  selection->failure = *failure;
  selection->state = FAILED;
}

int32_t m2po_selection_add(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  int32_t code = check_state(selection, ADDING, "selection_add", error);
  if (code != RFT_OK) {
    return code;
  }
  rft_error *const failure = &selection->failure;
  code = !reserve(selection)
             ? rft_fail(failure, RFT_RESOURCE_EXHAUSTED, "m2po: out of memory in selection_add")
             : m2po_gather(selection->instance, &selection->rule, batch,
                           selection->gathered + selection->count, &selection->squares,
                           &selection->totals, failure);
  if (code != RFT_OK) {
    selection->state = FAILED;
    return rft_fail(error, code, "%s", failure->message);
  }
  ++selection->count;
  return RFT_OK;
}

// What the first reduction carries: all sums of integers. Two digests are equal on all ranks just
// when their variance is 0, and every rank sees the same variance.
typedef struct rank_summary {
  uint64_t failed;
  uint64_t ranks;
  uint64_t digest[2];        ///< 24 bits each
  uint64_t digest_square[2]; ///< theirs
  uint64_t wide;
  uint64_t valid;
  uint64_t sequences;
  uint64_t constrained;
  uint64_t candidates;
  m2po_exact sum;
  m2po_exact rest;
} rank_summary;

enum { DIGEST_BITS = 24 };

static rank_summary summarize(const rft_selection *selection, bool failed)
{
  const m2po_totals *const totals = &selection->totals;
  rank_summary summary = {.failed = failed ? 1 : 0,
                          .ranks = 1,
                          .valid = (uint64_t)totals->valid,
                          .sequences = (uint64_t)totals->sequences,
                          .constrained = (uint64_t)totals->constrained,
                          .candidates = (uint64_t)totals->candidates,
                          .sum = totals->sum,
                          .rest = totals->rest};
  for (int i = 0; i < 2; ++i) {
    const uint64_t digest = selection->instance->config.digest >> (i * DIGEST_BITS);
    summary.digest[i] = digest & ((UINT64_C(1) << DIGEST_BITS) - 1);
    summary.digest_square[i] = summary.digest[i] * summary.digest[i];
  }
  for (const m2po_squares *part = selection->squares.first; part != NULL; part = part->next) {
    summary.wide |= part->wide ? 1 : 0;
  }
  return summary;
}

static int32_t reduce_summary(const rft_collectives *collectives, rank_summary *summary,
                              rft_error *error)
{
  const int32_t code = m2po_reduce(collectives, (uint64_t *)summary,
                                   (int64_t)(sizeof *summary / sizeof(uint64_t)), error);
  m2po_exact_carry(&summary->sum);
  m2po_exact_carry(&summary->rest);
  return code;
}

static int32_t check_collectives(const rft_collectives *collectives, rft_error *error)
{
  return collectives == NULL
             ? RFT_OK
             : rft_check_table(collectives, RFT_STRUCT_SIZE(rft_collectives, all_reduce_sum),
                               "rft_collectives", error);
}

void m2po_selection_abstain(const rft_collectives *collectives)
{
  rank_summary summary = {.failed = 1, .ranks = 1};
  if (check_collectives(collectives, NULL) == RFT_OK) {
    reduce_summary(collectives, &summary, NULL);
  }
}

static int32_t check_summary(const rank_summary *summary, rft_error *error)
{
  if (summary->failed != 0) {
    return rft_fail(error, RFT_ABORTED,
                    "selection_finish: selection_add failed on %" PRIu64 " of %" PRIu64
                    " ranks; their errors say why",
                    summary->failed, summary->ranks);
  }
  for (int i = 0; i < 2; ++i) {
    const m2po_u128 mean_square = (m2po_u128)summary->digest[i] * summary->digest[i];
    if ((m2po_u128)summary->digest_square[i] * summary->ranks != mean_square) {
      return rft_fail(error, RFT_INVALID_ARGUMENT,
                      "selection_finish: expected one config on all %" PRIu64
                      " ranks, found different ones",
                      summary->ranks);
    }
  }
  return RFT_OK;
}

static int32_t find_cut(rft_selection *selection, const rank_summary *summary,
                        const rft_collectives *collectives, m2po_kept *kept, rft_error *error)
{
  const int64_t constrained = (int64_t)summary->constrained;
  const bool nothing = isinf(selection->rule.threshold) ||
                       m2po_affordable(&selection->rule, &summary->sum, constrained);
  selection->cuts = !nothing;
  if (nothing) {
    *kept = (m2po_kept){summary->sum, constrained};
    return RFT_OK;
  }
  *kept = (m2po_kept){summary->rest, constrained - (int64_t)summary->candidates};
  return m2po_find_cut(&selection->rule, selection->squares.first, summary->wide != 0, collectives,
                       selection->bins, kept, &selection->cut, error);
}

void m2po_selection_fill_report(const m2po_counts *counts, int64_t constrained,
                                const m2po_exact *sum, const m2po_kept *kept,
                                rft_selection_report *report)
{
  const int64_t masked = constrained - kept->count;
  report->valid_tokens = counts->valid;
  report->kept_tokens = counts->valid - masked;
  report->sequences = counts->sequences;
  double *const metrics = report->metrics;
  if (metrics == NULL) {
    return;
  }
  metrics[M2PO_VALID_TOKENS] = (double)report->valid_tokens;
  metrics[M2PO_TRUST_REGION_TOKENS] = (double)constrained;
  metrics[M2PO_MASKED_TOKENS] = (double)masked;
  metrics[M2PO_M2_SUM_BEFORE] = m2po_exact_mean(sum, 1);
  metrics[M2PO_M2_SUM_AFTER] = m2po_exact_mean(&kept->sum, 1);
  metrics[M2PO_M2_BEFORE] = m2po_exact_mean(sum, constrained);
  metrics[M2PO_M2_AFTER] = m2po_exact_mean(&kept->sum, kept->count);
}

int32_t m2po_selection_check_report(const rft_selection_report *report, rft_error *error)
{
  const int32_t code = rft_check_request(
      report, RFT_STRUCT_SIZE(rft_selection_report, metric_count), "rft_selection_report", error);
  return code == RFT_OK ? m2po_metrics_check(report->metrics, report->metric_count,
                                             "rft_selection_report", error)
                        : code;
}

int32_t m2po_selection_finish(rft_selection *selection, const rft_collectives *collectives,
                              rft_selection_report *report, rft_error *error)
{
  if (selection->state == FINISHED || selection->state == SPENT) {
    return check_state(selection, ADDING, "selection_finish", error);
  }
  int32_t code = check_collectives(collectives, error);
  if (code != RFT_OK) {
    return code;
  }
  // A rank that can't go on takes part all the same: the others wait for it in the reduction (P17).
  const bool failed = selection->state == FAILED ||
                      m2po_selection_check_report(report, &selection->failure) != RFT_OK;
  selection->state = SPENT; // until all has gone well
  rank_summary summary = summarize(selection, failed);
  m2po_kept kept;
  code = reduce_summary(collectives, &summary, error);
  if (code == RFT_OK && failed) {
    code = rft_fail(error, selection->failure.code, "%s", selection->failure.message);
  }
  if (code == RFT_OK) {
    code = check_summary(&summary, error);
  }
  if (code == RFT_OK) {
    code = find_cut(selection, &summary, collectives, &kept, error);
  }
  if (code != RFT_OK) {
    return code;
  }
  const m2po_counts counts = {(int64_t)summary.valid, (int64_t)summary.sequences};
  m2po_selection_fill_report(&counts, (int64_t)summary.constrained, &summary.sum, &kept, report);
  selection->state = FINISHED;
  return RFT_OK;
}

// The kept ones of 64 positions.
static uint64_t keep_word(const rft_selection *selection, const m2po_gathered *gathered,
                          int64_t word, m2po_cut_reader *reader)
{
  const uint64_t valid = gathered->valid[word];
  const uint64_t candidates = gathered->candidate[word];
  return selection->cuts
             ? (valid & ~candidates) | m2po_cut_keeps(&selection->cut, candidates, reader)
             : valid;
}

static void write_mask(const rft_selection *selection, int64_t batch_index, const rft_view *mask)
{
  const m2po_gathered *const gathered = &selection->gathered[batch_index];
  m2po_cut_reader reader = m2po_cut_reader_at(gathered->squares);
  for (int64_t start = 0; start < gathered->count; start += M2PO_WORD_BITS) {
    const int64_t left = gathered->count - start;
    const uint64_t kept = keep_word(selection, gathered, start / M2PO_WORD_BITS, &reader);
    rft_view_store_bits(mask, start, left < M2PO_WORD_BITS ? left : M2PO_WORD_BITS, kept);
  }
}

int32_t m2po_selection_open_mask(const rft_tensor *mask, const rft_tensor *logprob, rft_view *view,
                                 rft_error *error)
{
  int32_t code = rft_view_like(mask, logprob, RFT_CONTENT_NUMBERS, "mask", view, error);
  if (code == RFT_OK && view->element != RFT_ELEMENT_BOOL && view->element != RFT_ELEMENT_UINT8) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT,
                    "mask: expected dtype bool or uint8, found type code %d with %d bits",
                    mask->dtype.code, mask->dtype.bits);
  }
  if (code == RFT_OK) {
    code = rft_view_check_output(view, "mask", error);
  }
  return code;
}

// The mask has the shape of the batch's logprob, which is gone by now.
static int32_t open_mask(const m2po_gathered *gathered, const rft_tensor *mask, rft_view *view,
                         rft_error *error)
{
  int64_t shape[2] = {gathered->ndim == 1 ? gathered->columns : gathered->rows, gathered->columns};
  const rft_tensor logprob = {.ndim = gathered->ndim, .shape = shape};
  return m2po_selection_open_mask(mask, &logprob, view, error);
}

int32_t m2po_selection_mask(const rft_selection *selection, int64_t batch_index,
                            const rft_tensor *mask, rft_error *error)
{
  int32_t code = check_state(selection, FINISHED, "selection_mask", error);
  if (code != RFT_OK) {
    return code;
  }
  if (batch_index < 0 || batch_index >= selection->count) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "selection_mask: expected batch_index in [0, %" PRId64 "), found %" PRId64,
                    selection->count, batch_index);
  }
  rft_view view;
  code = open_mask(&selection->gathered[batch_index], mask, &view, error);
  if (code == RFT_OK) {
    write_mask(selection, batch_index, &view);
  }
  return code;
}
