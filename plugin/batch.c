// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "batch.h"

#include "support/error.h"
#include "support/structs.h"

#include <inttypes.h>

static int32_t open_cu_seqlens(const rft_tensor *tensor, m2po_batch *batch, rft_error *error)
{
  const int32_t code = m2po_tensor_check(tensor, M2PO_INTEGERS, "cu_seqlens", error);
  if (code != RFT_OK) {
    return code;
  }
  if (tensor->ndim != 1 || tensor->shape[0] < 1 || batch->rows != 1) {
    char text[M2PO_SHAPE_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "cu_seqlens: expected shape [S+1] with a packed logprob [n], found %s with a "
                    "logprob of %" PRId64 " rows",
                    m2po_shape_text(text, tensor), batch->rows);
  }
  batch->cu_seqlens = m2po_view_of(tensor);
  batch->sequences = tensor->shape[0] - 1;
  int64_t previous = 0;
  for (int64_t i = 0; i <= batch->sequences; ++i) {
    const int64_t start = m2po_batch_sequence_start(batch, i);
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
static int32_t open_advantages(const rft_batch *source, m2po_batch *batch, rft_error *error)
{
  const rft_tensor *const tensor = source->advantages;
  const int32_t code = m2po_tensor_check(tensor, M2PO_FLOATS, "advantages", error);
  if (code != RFT_OK) {
    return code;
  }
  if (m2po_same_shape(tensor, source->logprob)) {
    batch->advantages = m2po_view_of(tensor);
    return RFT_OK;
  }
  const bool by_sequence =
      tensor->shape[0] == batch->sequences && (tensor->ndim == 1 || tensor->shape[1] == 1);
  if (!by_sequence) {
    char found[M2PO_SHAPE_TEXT_SIZE];
    char expected[M2PO_SHAPE_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "advantages: expected the shape of logprob, %s, or one value a sequence, "
                    "[%" PRId64 "] or [%" PRId64 ", 1], found %s",
                    m2po_shape_text(expected, source->logprob), batch->sequences, batch->sequences,
                    m2po_shape_text(found, tensor));
  }
  // A row a sequence: where rows are sequences, the one value of each serves all its columns.
  batch->advantages = m2po_view_of(tensor);
  batch->advantages_by_sequence = m2po_view_present(&batch->cu_seqlens);
  if (tensor->ndim == 1) {
    batch->advantages.row_stride = batch->advantages.column_stride;
  }
  batch->advantages.rows = batch->sequences;
  batch->advantages.columns = batch->advantages_by_sequence ? 1 : batch->columns;
  batch->advantages.column_stride = 0;
  return RFT_OK;
}

static int32_t open_tensors(const rft_batch *source, m2po_batch *batch, rft_error *error)
{
  const rft_tensor *const logprob = source->logprob;
  int32_t code = m2po_tensor_check(logprob, M2PO_FLOATS, "logprob", error);
  if (code != RFT_OK) {
    return code;
  }
  batch->logprob = m2po_view_of(logprob);
  batch->rows = batch->logprob.rows;
  batch->columns = batch->logprob.columns;
  batch->count = batch->rows * batch->columns;
  batch->sequences = batch->rows;
  code = m2po_view_like(source->old_logprob, logprob, M2PO_FLOATS, "old_logprob",
                        &batch->old_logprob, error);
  if (code == RFT_OK && source->proximal_logprob != NULL) {
    code = m2po_view_like(source->proximal_logprob, logprob, M2PO_FLOATS, "proximal_logprob",
                          &batch->proximal_logprob, error);
  }
  if (code == RFT_OK) {
    code = m2po_view_like(source->mask, logprob, M2PO_NUMBERS, "mask", &batch->mask, error);
  }
  if (code == RFT_OK && source->cu_seqlens != NULL) {
    code = open_cu_seqlens(source->cu_seqlens, batch, error);
  }
  return code == RFT_OK ? open_advantages(source, batch, error) : code;
}

int32_t m2po_batch_open(const rft_batch *source, m2po_batch *batch, rft_error *error)
{
  *batch = (m2po_batch){0};
  const int32_t code =
      rft_check_request(source, RFT_STRUCT_SIZE(rft_batch, stream), "rft_batch", error);
  return code == RFT_OK ? open_tensors(source, batch, error) : code;
}

int32_t m2po_batch_check_overlap(const m2po_batch *batch, const m2po_view *output, const char *name,
                                 rft_error *error)
{
  const struct {
    const char *name;
    const m2po_view *view;
  } inputs[] = {
      {"logprob", &batch->logprob},
      {"old_logprob", &batch->old_logprob},
      {"proximal_logprob", &batch->proximal_logprob},
      {"advantages", &batch->advantages},
      {"mask", &batch->mask},
      {"cu_seqlens", &batch->cu_seqlens},
  };
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; ++i) {
    if (m2po_view_present(inputs[i].view) && m2po_views_overlap(output, inputs[i].view)) {
      return rft_fail(error, RFT_INVALID_ARGUMENT,
                      "%s: expected memory apart from the inputs, found it to overlap %s", name,
                      inputs[i].name);
    }
  }
  return RFT_OK;
}

void m2po_batch_load_advantages(const m2po_batch *batch, int64_t start, int64_t count,
                                double *values)
{
  if (!batch->advantages_by_sequence) {
    m2po_view_load(&batch->advantages, start, count, values);
    return;
  }
  int64_t sequence = m2po_batch_sequence_at(batch, start);
  int64_t position = start;
  while (position < start + count) {
    const int64_t end = m2po_batch_sequence_start(batch, sequence + 1);
    double advantage;
    m2po_view_load(&batch->advantages, sequence, 1, &advantage);
    for (; position < end && position < start + count; ++position) {
      values[position - start] = advantage;
    }
    ++sequence;
  }
}

int64_t m2po_batch_sequence_start(const m2po_batch *batch, int64_t sequence)
{
  if (!m2po_view_present(&batch->cu_seqlens)) {
    return sequence * batch->columns;
  }
  return m2po_element_load_integer(batch->cu_seqlens.element,
                                   m2po_view_at(&batch->cu_seqlens, sequence));
}

int64_t m2po_batch_sequence_at(const m2po_batch *batch, int64_t position)
{
  if (!m2po_view_present(&batch->cu_seqlens)) {
    return position / batch->columns;
  }
  int64_t low = 0; // the last sequence that starts at or before `position`
  int64_t high = batch->sequences;
  while (high - low > 1) {
    const int64_t middle = low + ((high - low) / 2);
    if (m2po_batch_sequence_start(batch, middle) <= position) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
