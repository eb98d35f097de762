// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "batch_view.h"

#include "error.h"
#include "structs.h"

#include <inttypes.h>

static int32_t open_cu_seqlens(const rft_tensor *tensor, rft_batch_view *batch, rft_error *error)
{
  const int32_t code = rft_tensor_check(tensor, RFT_CONTENT_INTEGERS, "cu_seqlens", error);
  if (code != RFT_OK) {
    return code;
  }
  if (tensor->ndim != 1 || tensor->shape[0] < 1 || batch->rows != 1) {
    char text[RFT_SHAPE_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "cu_seqlens: expected shape [S+1] with a packed logprob [n], found %s with a "
                    "logprob of %" PRId64 " rows",
                    rft_shape_text(text, tensor), batch->rows);
  }
  batch->cu_seqlens = rft_view_of(tensor);
  batch->sequences = tensor->shape[0] - 1;
  int64_t previous = 0;
  for (int64_t i = 0; i <= batch->sequences; ++i) {
    const int64_t start = rft_batch_view_sequence_start(batch, i);
    if (i == 0 ? start != 0 : start < previous) {
      return rft_fail(error, RFT_INVALID_ARGUMENT,
                      "cu_seqlens at index %" PRId64 ": expected %s %" PRId64 ", found %" PRId64, i,
                      i == 0 ? "exactly" : "at least", previous, start);
    }
    previous = start;
  }
  if (previous != batch->count) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "cu_seqlens: expected its last value to be the length of logprob, %" PRId64
                    ", found %" PRId64,
                    batch->count, previous);
  }
  return RFT_OK;
}

// Advantages: one a position, or one a sequence as [S] or [S,1].
static int32_t open_advantages(const rft_batch *source, rft_batch_view *batch, rft_error *error)
{
  const rft_tensor *const tensor = source->advantages;
  const int32_t code = rft_tensor_check(tensor, RFT_CONTENT_FLOATS, "advantages", error);
  if (code != RFT_OK) {
    return code;
  }
  if (rft_same_shape(tensor, source->logprob)) {
    batch->advantages = rft_view_of(tensor);
    return RFT_OK;
  }
  const bool by_sequence =
      tensor->shape[0] == batch->sequences && (tensor->ndim == 1 || tensor->shape[1] == 1);
  if (!by_sequence) {
    char found[RFT_SHAPE_TEXT_SIZE];
    char expected[RFT_SHAPE_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "advantages: expected the shape of logprob, %s, or one value a sequence, "
                    "[%" PRId64 "] or [%" PRId64 ", 1], found %s",
                    rft_shape_text(expected, source->logprob), batch->sequences, batch->sequences,
                    rft_shape_text(found, tensor));
  }
  // A row a sequence: where rows are sequences, the one value of each serves all its columns.
  batch->advantages = rft_view_of(tensor);
  batch->advantages_by_sequence = rft_view_present(&batch->cu_seqlens);
  if (tensor->ndim == 1) {
    batch->advantages.row_stride = batch->advantages.column_stride;
  }
  batch->advantages.rows = batch->sequences;
  batch->advantages.columns = batch->advantages_by_sequence ? 1 : batch->columns;
  batch->advantages.column_stride = 0;
  return RFT_OK;
}

static int32_t open_tensors(const rft_batch *source, rft_batch_view *batch, rft_error *error)
{
  const rft_tensor *const logprob = source->logprob;
  int32_t code = rft_tensor_check(logprob, RFT_CONTENT_FLOATS, "logprob", error);
  if (code != RFT_OK) {
    return code;
  }
  batch->logprob = rft_view_of(logprob);
  batch->rows = batch->logprob.rows;
  batch->columns = batch->logprob.columns;
  batch->count = batch->rows * batch->columns;
  batch->sequences = batch->rows;
  code = rft_view_like(source->old_logprob, logprob, RFT_CONTENT_FLOATS, "old_logprob",
                       &batch->old_logprob, error);
  if (code == RFT_OK && source->proximal_logprob != NULL) {
    code = rft_view_like(source->proximal_logprob, logprob, RFT_CONTENT_FLOATS, "proximal_logprob",
                         &batch->proximal_logprob, error);
  }
  if (code == RFT_OK) {
    code = rft_view_like(source->mask, logprob, RFT_CONTENT_NUMBERS, "mask", &batch->mask, error);
  }
  if (code == RFT_OK && source->cu_seqlens != NULL) {
    code = open_cu_seqlens(source->cu_seqlens, batch, error);
  }
  return code == RFT_OK ? open_advantages(source, batch, error) : code;
}

int32_t rft_batch_view_open(const rft_batch *source, rft_batch_view *batch, rft_error *error)
{
  *batch = (rft_batch_view){0};
  const int32_t code =
      rft_check_request(source, RFT_STRUCT_SIZE(rft_batch, stream), "rft_batch", error);
  return code == RFT_OK ? open_tensors(source, batch, error) : code;
}

int32_t rft_batch_view_check_overlap(const rft_batch_view *batch, const rft_view *output,
                                     const char *name, rft_error *error)
{
  const struct {
    const char *name;
    const rft_view *view;
  } inputs[] = {
      {"logprob", &batch->logprob},
      {"old_logprob", &batch->old_logprob},
      {"proximal_logprob", &batch->proximal_logprob},
      {"advantages", &batch->advantages},
      {"mask", &batch->mask},
      {"cu_seqlens", &batch->cu_seqlens},
  };
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; ++i) {
    if (rft_view_present(inputs[i].view) && rft_views_overlap(output, inputs[i].view)) {
      return rft_fail(error, RFT_INVALID_ARGUMENT,
                      "%s: expected memory apart from the inputs, found it to overlap %s", name,
                      inputs[i].name);
    }
  }
  return RFT_OK;
}

void rft_batch_view_load_advantages(const rft_batch_view *batch, int64_t start, int64_t count,
                                    double *values)
{
  if (!batch->advantages_by_sequence) {
    rft_view_load(&batch->advantages, start, count, values);
    return;
  }
  int64_t sequence = rft_batch_view_sequence_at(batch, start);
  int64_t position = start;
  while (position < start + count) {
    const int64_t end = rft_batch_view_sequence_start(batch, sequence + 1);
    double advantage;
    rft_view_load(&batch->advantages, sequence, 1, &advantage);
    for (; position < end && position < start + count; ++position) {
      values[position - start] = advantage;
    }
    ++sequence;
  }
}

int64_t rft_batch_view_sequence_start(const rft_batch_view *batch, int64_t sequence)
{
  if (!rft_view_present(&batch->cu_seqlens)) {
    return sequence * batch->columns;
  }
  return rft_element_load_integer(batch->cu_seqlens.element,
                                  rft_view_at(&batch->cu_seqlens, sequence));
}

int64_t rft_batch_view_sequence_at(const rft_batch_view *batch, int64_t position)
{
  if (!rft_view_present(&batch->cu_seqlens)) {
    return position / batch->columns;
  }
  int64_t low = 0; // the last sequence that starts at or before `position`
  int64_t high = batch->sequences;
  while (high - low > 1) {
    const int64_t middle = low + ((high - low) / 2);
    if (rft_batch_view_sequence_start(batch, middle) <= position) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
