// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "check.h"

#include "mpi_group.h"
#include "ranks.h"
#include "rft/host.h"
#include "support/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// The batch of all ranks; only rank 0 has all of it.
typedef struct whole_batch {
  int64_t *start; // [ranks + 1] sequences
  int64_t sequences;
  int64_t tokens;
  float *logprob;
  float *old_logprob;
  float *advantages;
  uint8_t *mask;
  uint8_t *keep;     // what the ranks kept
  uint8_t *expected; // what one process keeps
  double *metrics;   // likewise
} whole_batch;

static void whole_free(whole_batch *whole)
{
  free(whole->start);
  free(whole->logprob);
  free(whole->old_logprob);
  free(whole->advantages);
  free(whole->mask);
  free(whole->keep);
  free(whole->expected);
  free(whole->metrics);
}

// Where each rank's sequences start, from their numbers.
static int32_t find_starts(MPI_Comm communicator, const train_group *group, int64_t sequences,
                           int64_t *start, rft_error *error)
{
  memset(start, 0, ((size_t)group->size + 1) * sizeof *start);
  const int result =
      MPI_Allgather(&sequences, 1, MPI_INT64_T, start + 1, 1, MPI_INT64_T, communicator);
  for (int64_t i = 0; i < group->size; ++i) {
    start[i + 1] += start[i];
  }
  return result == MPI_SUCCESS ? RFT_OK : ranks_fail(communicator, "MPI_Allgather", result, error);
}

static bool whole_allocate(whole_batch *whole, const train_selected *selected)
{
  const size_t sequences = (size_t)whole->sequences;
  const size_t tokens = sequences * (size_t)whole->tokens;
  whole->logprob = calloc(tokens, sizeof(float));
  whole->old_logprob = calloc(tokens, sizeof(float));
  whole->advantages = calloc(sequences, sizeof(float));
  whole->mask = malloc(tokens);
  whole->keep = calloc(tokens, 1);
  whole->expected = calloc(tokens, 1);
  whole->metrics = calloc((size_t)selected->loss->metric_count, sizeof(double));
  if (whole->logprob == NULL || whole->old_logprob == NULL || whole->advantages == NULL ||
      whole->mask == NULL || whole->keep == NULL || whole->expected == NULL ||
      whole->metrics == NULL) {
    return false;
  }
  memset(whole->mask, 1, tokens); // the trainer's answers are of one length
  return true;
}

// One array, [sequences, width] elements of `size` bytes: the rank's own, then all of them.
static int32_t gather(MPI_Comm communicator, const whole_batch *whole, int64_t rank,
                      const void *own, void *all, int64_t width, size_t size, rft_error *error)
{
  const int64_t unit = width * (int64_t)size;
  const int64_t count = whole->start[rank + 1] - whole->start[rank];
  memcpy((char *)all + whole->start[rank] * unit, own, (size_t)(count * unit));
  return ranks_gather(communicator, all, whole->start, unit, error);
}

static int32_t gather_all(MPI_Comm communicator, const whole_batch *whole, int64_t rank,
                          const train_selected *selected, rft_error *error)
{
  const int64_t tokens = selected->tokens;
  int32_t code = gather(communicator, whole, rank, selected->logprob, whole->logprob, tokens,
                        sizeof(float), error);
  if (code == RFT_OK) {
    code = gather(communicator, whole, rank, selected->old_logprob, whole->old_logprob, tokens,
                  sizeof(float), error);
  }
  if (code == RFT_OK) {
    code = gather(communicator, whole, rank, selected->advantages, whole->advantages, 1,
                  sizeof(float), error);
  }
  return code == RFT_OK
             ? gather(communicator, whole, rank, selected->keep, whole->keep, tokens, 1, error)
             : code;
}

static rft_tensor view(void *data, rft_dtype dtype, int32_t ndim, int64_t *shape)
{
  return (rft_tensor){
      .data = data, .device = {RFT_DEVICE_CPU, 0}, .ndim = ndim, .dtype = dtype, .shape = shape};
}

static int32_t select_alone(const train_selected *selected, whole_batch *whole,
                            rft_selection_report *report, rft_error *error)
{
  const rft_policy_loss *const loss = selected->loss;
  const rft_dtype float32 = {RFT_DTYPE_FLOAT, 32, 1};
  const rft_dtype boolean = {RFT_DTYPE_BOOL, 8, 1};
  int64_t shape[2] = {whole->sequences, whole->tokens};
  const rft_tensor logprob = view(whole->logprob, float32, 2, shape);
  const rft_tensor old_logprob = view(whole->old_logprob, float32, 2, shape);
  const rft_tensor advantages = view(whole->advantages, float32, 1, shape);
  const rft_tensor mask = view(whole->mask, boolean, 2, shape);
  const rft_tensor expected = view(whole->expected, boolean, 2, shape);
  const rft_batch batch = {.struct_size = sizeof batch,
                           .logprob = &logprob,
                           .old_logprob = &old_logprob,
                           .proximal_logprob = selected->is_proximal ? &logprob : NULL,
                           .advantages = &advantages,
                           .mask = &mask};
  rft_selection *selection = NULL;
  int32_t code = loss->selection_begin(selected->instance, &selection, error);
  if (code == RFT_OK) {
    code = loss->selection_add(selection, &batch, error);
  }
  if (code == RFT_OK) {
    code = loss->selection_finish(selection, NULL, report, error);
  }
  if (code == RFT_OK) {
    code = loss->selection_mask(selection, 0, &expected, error);
  }
  loss->selection_end(selection);
  return code;
}

static bool same_bits(double a, double b)
{
  uint64_t bits[2];
  memcpy(&bits[0], &a, sizeof a);
  memcpy(&bits[1], &b, sizeof b);
  return bits[0] == bits[1];
}

static int32_t compare_metrics(const train_selected *selected, const double *expected,
                               rft_error *error)
{
  const rft_policy_loss *const loss = selected->loss;
  for (int64_t i = 0; i < loss->metric_count; ++i) {
    const rft_metric *const metric = loss->metrics[i];
    const bool is_written =
        metric->phase == RFT_METRIC_SELECTION && metric->combine != RFT_COMBINE_RATIO;
    if (is_written && !same_bits(selected->metrics[i], expected[i])) {
      return rft_fail(error, RFT_INTERNAL,
                      "check of the selection: %s is %a over the ranks and %a in one process",
                      metric->name, selected->metrics[i], expected[i]);
    }
  }
  return RFT_OK;
}

static int32_t compare(const train_selected *selected, const whole_batch *whole,
                       const rft_selection_report *report, rft_error *error)
{
  const rft_reduction *const counts = selected->counts;
  if (counts->valid_tokens != report->valid_tokens || counts->kept_tokens != report->kept_tokens ||
      counts->sequences != report->sequences) {
    return rft_fail(error, RFT_INTERNAL,
                    "check of the selection: %" PRId64 " valid, %" PRId64 " kept, %" PRId64
                    " sequences over the ranks; %" PRId64 ", %" PRId64 ", %" PRId64
                    " in one process",
                    counts->valid_tokens, counts->kept_tokens, counts->sequences,
                    report->valid_tokens, report->kept_tokens, report->sequences);
  }
  for (int64_t i = 0; i < whole->sequences * whole->tokens; ++i) {
    if (whole->keep[i] != whole->expected[i]) {
      return rft_fail(error, RFT_INTERNAL,
                      "check of the selection: sequence %" PRId64 ", token %" PRId64
                      " is %s over the ranks and %s in one process",
                      i / whole->tokens, i % whole->tokens, whole->keep[i] ? "kept" : "dropped",
                      whole->expected[i] ? "kept" : "dropped");
    }
  }
  return compare_metrics(selected, whole->metrics, error);
}

static int32_t check_whole(const train_selected *selected, whole_batch *whole, rft_error *error)
{
  rft_selection_report report = {.struct_size = sizeof report,
                                 .metrics = whole->metrics,
                                 .metric_count = selected->loss->metric_count};
  const int32_t code = select_alone(selected, whole, &report, error);
  return code == RFT_OK ? compare(selected, whole, &report, error) : code;
}

// All ranks have what they need, or none goes on.
static int32_t agree_on(MPI_Comm communicator, int32_t code, bool ready, rft_error *error)
{
  if (code == RFT_OK && !ready) {
    code = rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for a check of the selection");
  }
  return ranks_agree(communicator, code, error);
}

int32_t check_selection(const train_group *group, const train_selected *selected, rft_error *error)
{
  MPI_Comm communicator = mpi_group_communicator(group);
  whole_batch whole = {.tokens = selected->tokens,
                       .start = calloc((size_t)group->size + 1, sizeof(int64_t))};
  bool ready = whole.start != NULL;
  int32_t code = agree_on(communicator, RFT_OK, ready, error);
  if (code == RFT_OK && ready) {
    code = find_starts(communicator, group, selected->sequences, whole.start, error);
    whole.sequences = whole.start[group->size];
    ready = whole_allocate(&whole, selected);
    code = agree_on(communicator, code, ready, error);
  }
  if (code == RFT_OK && ready) {
    code = gather_all(communicator, &whole, group->rank, selected, error);
    if (code == RFT_OK && group->rank == 0) {
      code = check_whole(selected, &whole, error);
    }
    code = ranks_agree(communicator, code, error);
  }
  whole_free(&whole);
  return code;
}
