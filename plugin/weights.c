// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "weights.h"

#include "lanes.h"
#include "support/error.h"
#include "support/structs.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct batch_counts {
  int64_t valid;
  int64_t kept;
  int64_t sequences;
} batch_counts;

// The sum of eight bytes: of neighbours, then of those sums by a product, whose top holds it.
static int64_t sum_of_bytes(uint64_t bytes)
{
  const uint64_t every_other = UINT64_C(0x00FF00FF00FF00FF);
  const uint64_t pairs = (bytes & every_other) + ((bytes >> 8) & every_other);
  return (int64_t)((pairs * UINT64_C(0x0001000100010001)) >> 48);
}

// At the end of a page a processor asks for no more by itself. The address is a number: there may
// be nothing.
static void fetch_ahead(const unsigned char *bytes)
{
  enum { PAGE = 4096 };
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  __builtin_prefetch((const void *)((uintptr_t)bytes + PAGE));
}

// How many of so many bytes are not 0. A counter for each byte of a vector takes 255 of them.
static int64_t count_nonzero(const unsigned char *bytes, int64_t count)
{
  enum { WIDTH = 16, VECTORS = 4, STEP = WIDTH * VECTORS, MOST = UINT8_MAX / VECTORS };
  typedef uint8_t vector __attribute__((vector_size(WIDTH)));
  int64_t zeros = 0;
  int64_t i = 0;
  while (count - i >= STEP) {
    vector counters = {0};
    for (int step = 0; step < MOST && count - i >= STEP; ++step, i += STEP) {
      fetch_ahead(bytes + i);
      for (int64_t v = 0; v < VECTORS; ++v) {
        vector values;
        memcpy(&values, bytes + i + v * WIDTH, sizeof values);
        counters -= (vector)(values == 0);
      }
    }
    uint64_t half[2];
    memcpy(half, &counters, sizeof half);
    zeros += sum_of_bytes(half[0]) + sum_of_bytes(half[1]);
  }
  for (; i < count; ++i) {
    zeros += bytes[i] == 0 ? 1 : 0;
  }
  return count - zeros;
}

// Counts one sequence's valid and kept tokens.
static int64_t count_sequence(const rft_batch_view *batch, const rft_view *keep, int64_t sequence,
                              batch_counts *counts)
{
  const int64_t end = rft_batch_view_sequence_start(batch, sequence + 1);
  const int64_t begin = rft_batch_view_sequence_start(batch, sequence);
  if (rft_element_size(batch->mask.element) == 1 && batch->mask.column_stride == 1 &&
      !rft_view_present(keep) && begin < end) {
    const int64_t valid = count_nonzero(rft_view_at(&batch->mask, begin), end - begin);
    counts->valid += valid;
    counts->kept += valid;
    counts->sequences += valid > 0 ? 1 : 0;
    return valid;
  }
  int64_t valid = 0;
  double mask[M2PO_BLOCK];
  double kept[M2PO_BLOCK];
  for (int64_t start = begin; start < end; start += M2PO_BLOCK) {
    const int64_t count = end - start < M2PO_BLOCK ? end - start : M2PO_BLOCK;
    rft_view_load(&batch->mask, start, count, mask);
    if (rft_view_present(keep)) {
      rft_view_load(keep, start, count, kept);
    }
    for (int64_t i = 0; i < count; ++i) {
      const bool is_valid = mask[i] != 0;
      valid += is_valid ? 1 : 0;
      counts->kept += is_valid && (!rft_view_present(keep) || kept[i] != 0) ? 1 : 0;
    }
  }
  counts->valid += valid;
  counts->sequences += valid > 0 ? 1 : 0;
  return valid;
}

enum { MOST_PARTS = 64, LEAST_PART = 1 << 17 }; // positions

// Sequences are counted in parts, each by one body of parallel_for.
typedef struct counting {
  const rft_batch_view *batch;
  const rft_view *keep;
  int64_t *sequence_tokens; ///< [sequences], or NULL
  int64_t parts;
  batch_counts found[MOST_PARTS];
} counting;

static void count_part(void *context, int64_t part)
{
  counting *const job = context;
  const int64_t sequences = job->batch->sequences;
  const int64_t end = sequences * (part + 1) / job->parts;
  batch_counts counts = {0};
  for (int64_t i = sequences * part / job->parts; i < end; ++i) {
    const int64_t valid = count_sequence(job->batch, job->keep, i, &counts);
    if (job->sequence_tokens != NULL) {
      job->sequence_tokens[i] = valid;
    }
  }
  job->found[part] = counts;
}

static batch_counts count_batch(const rft_instance *instance, counting *job)
{
  const int64_t wanted = 1 + job->batch->count / LEAST_PART;
  job->parts = wanted < MOST_PARTS ? wanted : MOST_PARTS;
  m2po_parallel_for(instance, job->parts, count_part, job);
  batch_counts all = {0};
  for (int64_t part = 0; part < job->parts; ++part) {
    all.valid += job->found[part].valid;
    all.kept += job->found[part].kept;
    all.sequences += job->found[part].sequences;
  }
  return all;
}

static int32_t check_reduction(const rft_reduction *reduction, rft_error *error)
{
  const int32_t code =
      rft_check_request(reduction, RFT_STRUCT_SIZE(rft_reduction, scale), "rft_reduction", error);
  if (code != RFT_OK) {
    return code;
  }
  if (reduction->valid_tokens < 0 || reduction->kept_tokens < 0 || reduction->sequences < 0) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "rft_reduction: expected counts >= 0, found valid_tokens %" PRId64
                    ", kept_tokens %" PRId64 ", sequences %" PRId64,
                    reduction->valid_tokens, reduction->kept_tokens, reduction->sequences);
  }
  if (!isfinite(reduction->scale)) {
    char number[RFT_NUMBER_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT, "rft_reduction: expected a finite scale, found %s",
                    rft_number_text(number, reduction->scale));
  }
  return RFT_OK;
}

// The number that `config` divides the sum of token losses by.
static double denominator(const m2po_config *config, const rft_batch_view *batch,
                          const batch_counts *counts)
{
  switch (config->loss_agg_mode) {
  case M2PO_SEQ_MEAN_TOKEN_SUM:
  case M2PO_SEQ_MEAN_TOKEN_MEAN:
    return (double)counts->sequences;
  case M2PO_SEQ_MEAN_TOKEN_SUM_NORM:
    return config->loss_scale_factor != 0 ? config->loss_scale_factor : (double)batch->columns;
  case M2PO_TOKEN_MEAN:
    break;
  }
  return (double)(config->denominator == M2PO_KEPT ? counts->kept : counts->valid);
}

static bool counts_missing(const m2po_config *config, const rft_reduction *reduction)
{
  switch (config->loss_agg_mode) {
  case M2PO_SEQ_MEAN_TOKEN_SUM:
    return reduction->sequences == 0;
  case M2PO_SEQ_MEAN_TOKEN_MEAN:
    return true; // each sequence's tokens are the micro-batch's own
  case M2PO_SEQ_MEAN_TOKEN_SUM_NORM:
    return false;
  case M2PO_TOKEN_MEAN:
    break;
  }
  return config->denominator == M2PO_KEPT ? reduction->kept_tokens == 0
                                          : reduction->valid_tokens == 0;
}

static int64_t given_or(int64_t given, int64_t counted)
{
  return given != 0 ? given : counted;
}

int32_t m2po_weights_open(const rft_instance *instance, const rft_batch_view *batch,
                          const rft_view *keep, const rft_reduction *reduction,
                          m2po_weights *weights, rft_error *error)
{
  const m2po_config *const config = &instance->config;
  const rft_reduction none = {.struct_size = sizeof none};
  const rft_reduction *const given = reduction == NULL ? &none : reduction;
  const int32_t code = check_reduction(given, error);
  if (code != RFT_OK) {
    return code;
  }
  if (config->loss_agg_mode == M2PO_SEQ_MEAN_TOKEN_SUM_NORM && config->loss_scale_factor == 0 &&
      rft_view_present(&batch->cu_seqlens)) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "loss_scale_factor: expected a number with loss_agg_mode "
                    "\"seq-mean-token-sum-norm\" and a packed batch, which has no padded length "
                    "to divide by, found null");
  }
  int64_t *sequence_tokens = NULL;
  if (config->loss_agg_mode == M2PO_SEQ_MEAN_TOKEN_MEAN) {
    sequence_tokens = calloc((size_t)batch->sequences + 1, sizeof sequence_tokens[0]);
    if (sequence_tokens == NULL) {
      return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "m2po: out of memory in evaluate");
    }
  }
  batch_counts counts = {0};
  if (counts_missing(config, given)) {
    counting job = {.batch = batch, .keep = keep, .sequence_tokens = sequence_tokens};
    counts = count_batch(instance, &job);
  }
  counts.valid = given_or(given->valid_tokens, counts.valid);
  counts.kept = given_or(given->kept_tokens, counts.kept);
  counts.sequences = given_or(given->sequences, counts.sequences);
  const double over = denominator(config, batch, &counts);
  const double scale = given->scale != 0 ? given->scale : 1.0;
  // With nothing to count there is no loss to weigh.
  *weights = (m2po_weights){.each = over != 0 ? scale / over : 0.0,
                            .valid = counts.valid,
                            .sequences = counts.sequences,
                            .sequence_tokens = sequence_tokens};
  return RFT_OK;
}

void m2po_weights_free(m2po_weights *weights)
{
  free(weights->sequence_tokens);
}

void m2po_weights_load(const m2po_weights *weights, const rft_batch_view *batch, int64_t start,
                       int64_t count, double *values)
{
  if (weights->sequence_tokens == NULL) {
    for (int64_t i = 0; i < count; ++i) {
      values[i] = weights->each;
    }
    return;
  }
  int64_t sequence = rft_batch_view_sequence_at(batch, start);
  int64_t position = start;
  while (position < start + count) {
    const int64_t end = rft_batch_view_sequence_start(batch, sequence + 1);
    const int64_t tokens = weights->sequence_tokens[sequence];
    const double weight = tokens > 0 ? weights->each / (double)tokens : 0.0;
    for (; position < end && position < start + count; ++position) {
      values[position - start] = weight;
    }
    ++sequence;
  }
}
