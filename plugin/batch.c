// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "batch.h"

#include "support/error.h"
#include "support/structs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHAPE_TEXT_SIZE = 96 };

typedef enum tensor_kind { LOG_PROB, MASK, OFFSETS } tensor_kind;

static const char *kind_text(tensor_kind kind)
{
  switch (kind) {
  case LOG_PROB:
    return "float16, bfloat16, float32 or float64";
  case MASK:
    return "bool, int8, uint8, int32, int64 or a float dtype";
  case OFFSETS:
    break;
  }
  return "int32 or int64";
}

static bool kind_allows(tensor_kind kind, m2po_element element)
{
  switch (kind) {
  case LOG_PROB:
    return m2po_element_is_float(element);
  case MASK:
    return element != M2PO_UNSUPPORTED;
  case OFFSETS:
    break;
  }
  return element == M2PO_INT32 || element == M2PO_INT64;
}

static const char *shape_text(char text[SHAPE_TEXT_SIZE], const rft_tensor *tensor)
{
  int length = snprintf(text, SHAPE_TEXT_SIZE, "[");
  for (int32_t i = 0; i < tensor->ndim && length < SHAPE_TEXT_SIZE; ++i) {
    length += snprintf(text + length, (size_t)(SHAPE_TEXT_SIZE - length), "%s%" PRId64,
                       i == 0 ? "" : ", ", tensor->shape[i]);
  }
  if (length < SHAPE_TEXT_SIZE) {
    snprintf(text + length, (size_t)(SHAPE_TEXT_SIZE - length), "]");
  }
  return text;
}

static bool same_shape(const rft_tensor *left, const rft_tensor *right)
{
  if (left->ndim != right->ndim) {
    return false;
  }
  for (int32_t i = 0; i < left->ndim; ++i) {
    if (left->shape[i] != right->shape[i]) {
      return false;
    }
  }
  return true;
}

// What holds for every tensor: it is there, 1-D or 2-D, of a known dtype, and in this memory.
static int32_t check_tensor(const rft_tensor *tensor, tensor_kind kind, const char *name,
                            rft_error *error)
{
  if (tensor == NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected a tensor, found NULL", name);
  }
  if (tensor->ndim < 1 || tensor->ndim > 2) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected 1 or 2 dimensions, found %" PRId32,
                    name, tensor->ndim);
  }
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    if (tensor->shape[i] < 0 || __builtin_mul_overflow(count, tensor->shape[i], &count)) {
      char text[SHAPE_TEXT_SIZE];
      return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected sizes >= 0, found shape %s", name,
                      shape_text(text, tensor));
    }
  }
  if (!kind_allows(kind, m2po_element_of(tensor->dtype))) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected dtype %s, found type code %d with %d bits and %d lanes", name,
                    kind_text(kind), tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
  }
  const int32_t device = tensor->device.type;
  if (device != RFT_DEVICE_CPU && device != RFT_DEVICE_CUDA_HOST &&
      device != RFT_DEVICE_ROCM_HOST) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected memory of the CPU, found device type %" PRId32, name, device);
  }
  if (tensor->data == NULL && count != 0) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected data for %" PRId64 " elements, found NULL", name, count);
  }
  return RFT_OK;
}

static int64_t stride_of(const rft_tensor *tensor, int32_t dimension)
{
  if (tensor->strides != NULL) {
    return tensor->strides[dimension];
  }
  return dimension + 1 < tensor->ndim ? tensor->shape[dimension + 1] : 1;
}

// The view of a tensor whose last dimension is the columns; `as_column` turns [B] into B rows.
static m2po_view make_view(const rft_tensor *tensor, bool as_column)
{
  const m2po_element element = m2po_element_of(tensor->dtype);
  const int64_t size = m2po_element_size(element);
  unsigned char *const data = tensor->data; // an empty tensor may have none
  m2po_view view = {data == NULL ? NULL : data + tensor->byte_offset, element, 0, 0};
  if (as_column) {
    view.row_stride = stride_of(tensor, 0) * size;
  } else if (tensor->ndim == 1) {
    view.column_stride = stride_of(tensor, 0) * size;
  } else {
    view.row_stride = stride_of(tensor, 0) * size;
    view.column_stride = stride_of(tensor, 1) * size;
  }
  return view;
}

static int32_t view_like(const rft_tensor *tensor, const rft_tensor *logprob, tensor_kind kind,
                         const char *name, m2po_view *view, rft_error *error)
{
  const int32_t code = check_tensor(tensor, kind, name, error);
  if (code != RFT_OK) {
    return code;
  }
  if (!same_shape(tensor, logprob)) {
    char found[SHAPE_TEXT_SIZE];
    char expected[SHAPE_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected the shape of logprob, %s, found %s",
                    name, shape_text(expected, logprob), shape_text(found, tensor));
  }
  *view = make_view(tensor, false);
  return RFT_OK;
}

int32_t m2po_view_like(const rft_tensor *tensor, const rft_tensor *logprob, const char *name,
                       m2po_view *view, rft_error *error)
{
  return view_like(tensor, logprob, MASK, name, view, error);
}

static int32_t open_cu_seqlens(const rft_tensor *tensor, m2po_batch *batch, rft_error *error)
{
  const int32_t code = check_tensor(tensor, OFFSETS, "cu_seqlens", error);
  if (code != RFT_OK) {
    return code;
  }
  if (tensor->ndim != 1 || tensor->shape[0] < 1 || batch->rows != 1) {
    char text[SHAPE_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "cu_seqlens: expected shape [S+1] with a packed logprob [n], found %s with a "
                    "logprob of %" PRId64 " rows",
                    shape_text(text, tensor), batch->rows);
  }
  batch->cu_seqlens = make_view(tensor, false);
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
  const int32_t code = check_tensor(tensor, LOG_PROB, "advantages", error);
  if (code != RFT_OK) {
    return code;
  }
  if (same_shape(tensor, source->logprob)) {
    batch->advantages = make_view(tensor, false);
    return RFT_OK;
  }
  const bool by_sequence =
      tensor->shape[0] == batch->sequences && (tensor->ndim == 1 || tensor->shape[1] == 1);
  if (!by_sequence) {
    char found[SHAPE_TEXT_SIZE];
    char expected[SHAPE_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "advantages: expected the shape of logprob, %s, or one value a sequence, "
                    "[%" PRId64 "] or [%" PRId64 ", 1], found %s",
                    shape_text(expected, source->logprob), batch->sequences, batch->sequences,
                    shape_text(found, tensor));
  }
  batch->advantages = make_view(tensor, true);
  batch->advantages_by_sequence = m2po_view_present(&batch->cu_seqlens);
  return RFT_OK;
}

static int32_t open_tensors(const rft_batch *source, m2po_batch *batch, rft_error *error)
{
  const rft_tensor *const logprob = source->logprob;
  int32_t code = check_tensor(logprob, LOG_PROB, "logprob", error);
  if (code != RFT_OK) {
    return code;
  }
  batch->logprob = make_view(logprob, false);
  batch->rows = logprob->ndim == 1 ? 1 : logprob->shape[0];
  batch->columns = logprob->shape[logprob->ndim - 1];
  batch->count = batch->rows * batch->columns;
  batch->sequences = batch->rows;
  code =
      view_like(source->old_logprob, logprob, LOG_PROB, "old_logprob", &batch->old_logprob, error);
  if (code == RFT_OK && source->proximal_logprob != NULL) {
    code = view_like(source->proximal_logprob, logprob, LOG_PROB, "proximal_logprob",
                     &batch->proximal_logprob, error);
  }
  if (code == RFT_OK) {
    code = view_like(source->mask, logprob, MASK, "mask", &batch->mask, error);
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

// The bytes from the lowest to past the highest address of a view.
typedef struct extent {
  uintptr_t low;
  uintptr_t high;
} extent;

static extent extent_of(const m2po_view *view, int64_t rows, int64_t columns)
{
  const int64_t steps[2] = {(rows - 1) * view->row_stride, (columns - 1) * view->column_stride};
  const uintptr_t first = (uintptr_t)view->data;
  extent bytes = {first, first + (uintptr_t)m2po_element_size(view->element)};
  for (int i = 0; i < 2; ++i) {
    if (steps[i] < 0) {
      bytes.low -= (uintptr_t)-steps[i];
    } else {
      bytes.high += (uintptr_t)steps[i];
    }
  }
  return bytes;
}

// Do two positions that are `rows` and `columns` apart, not both 0, share a byte? For each distance
// in rows there is a nearest one in columns from either side.
static bool shares_memory(const m2po_view *view, int64_t rows, int64_t columns)
{
  const int64_t size = m2po_element_size(view->element);
  const int64_t step = llabs(view->column_stride);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t distance = llabs(row * view->row_stride);
    const int64_t nearest = step == 0 ? 0 : distance / step;
    for (int64_t column = nearest; column <= nearest + 1 && column < columns; ++column) {
      if ((row != 0 || column != 0) && llabs(distance - column * step) < size) {
        return true;
      }
    }
  }
  return false;
}

int32_t m2po_view_check_output(const m2po_view *view, int64_t rows, int64_t columns,
                               const char *name, rft_error *error)
{
  // The usual layout, where one row ends before the next one starts, needs no search.
  const int64_t size = m2po_element_size(view->element);
  const bool apart = view->column_stride >= size &&
                     view->row_stride >= (view->column_stride * (columns - 1)) + size;
  if (rows == 0 || columns == 0 || apart || !shares_memory(view, rows, columns)) {
    return RFT_OK;
  }
  return rft_fail(error, RFT_INVALID_ARGUMENT,
                  "%s: expected strides that address each element once, found %" PRId64
                  " and %" PRId64 " bytes over [%" PRId64 ", %" PRId64 "]",
                  name, view->row_stride, view->column_stride, rows, columns);
}

static int64_t greatest_divisor(int64_t left, int64_t right)
{
  while (right != 0) {
    const int64_t rest = left % right;
    left = right;
    right = rest;
  }
  return llabs(left);
}

// Are two views whose extents meet interleaved like the columns of one table? All their elements
// lie at fixed offsets within a period that divides every stride.
static bool are_interleaved(const m2po_view *left, const m2po_view *right)
{
  int64_t period = greatest_divisor(left->row_stride, left->column_stride);
  period = greatest_divisor(period, right->row_stride);
  period = greatest_divisor(period, right->column_stride);
  if (period == 0) {
    return false;
  }
  const int64_t offset = ((right->data - left->data) % period + period) % period;
  return offset >= m2po_element_size(left->element) &&
         offset + m2po_element_size(right->element) <= period;
}

int32_t m2po_batch_check_overlap(const m2po_batch *batch, const m2po_view *keep,
                                 const m2po_view *output, const char *name, rft_error *error)
{
  const bool by_sequence = batch->advantages_by_sequence;
  const struct {
    const char *name;
    const m2po_view *view;
    int64_t rows, columns;
  } inputs[] = {
      {"logprob", &batch->logprob, batch->rows, batch->columns},
      {"old_logprob", &batch->old_logprob, batch->rows, batch->columns},
      {"proximal_logprob", &batch->proximal_logprob, batch->rows, batch->columns},
      {"advantages", &batch->advantages, by_sequence ? batch->sequences : batch->rows,
       by_sequence ? 1 : batch->columns},
      {"mask", &batch->mask, batch->rows, batch->columns},
      {"mask of kept tokens", keep, batch->rows, batch->columns},
      {"cu_seqlens", &batch->cu_seqlens, 1, batch->sequences + 1},
  };
  if (batch->count == 0) {
    return RFT_OK;
  }
  const extent written = extent_of(output, batch->rows, batch->columns);
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; ++i) {
    if (!m2po_view_present(inputs[i].view)) {
      continue;
    }
    const extent read = extent_of(inputs[i].view, inputs[i].rows, inputs[i].columns);
    if (written.low < read.high && read.low < written.high &&
        !are_interleaved(output, inputs[i].view)) {
      return rft_fail(error, RFT_INVALID_ARGUMENT,
                      "%s: expected memory apart from the inputs, found it to overlap %s", name,
                      inputs[i].name);
    }
  }
  return RFT_OK;
}

unsigned char *m2po_view_at(const m2po_view *view, int64_t columns, int64_t position)
{
  return view->data + ((position / columns) * view->row_stride) +
         ((position % columns) * view->column_stride);
}

// The positions from `position` to the end of its row, at most `most`.
static int64_t row_length(int64_t columns, int64_t position, int64_t most)
{
  const int64_t left = columns - (position % columns);
  return left < most ? left : most;
}

void m2po_view_load(const m2po_view *view, int64_t columns, int64_t start, int64_t count,
                    double *values)
{
  for (int64_t done = 0, length = 0; done < count; done += length) {
    length = row_length(columns, start + done, count - done);
    m2po_element_load(view->element, m2po_view_at(view, columns, start + done), view->column_stride,
                      length, values + done);
  }
}

void m2po_view_store(const m2po_view *view, int64_t columns, int64_t start, int64_t count,
                     const double *values)
{
  for (int64_t done = 0, length = 0; done < count; done += length) {
    length = row_length(columns, start + done, count - done);
    m2po_element_store(view->element, m2po_view_at(view, columns, start + done),
                       view->column_stride, length, values + done);
  }
}

void m2po_batch_load_advantages(const m2po_batch *batch, int64_t start, int64_t count,
                                double *values)
{
  if (!batch->advantages_by_sequence) {
    m2po_view_load(&batch->advantages, batch->columns, start, count, values);
    return;
  }
  int64_t sequence = m2po_batch_sequence_at(batch, start);
  int64_t position = start;
  while (position < start + count) {
    const int64_t end = m2po_batch_sequence_start(batch, sequence + 1);
    const double advantage = m2po_element_load_one(batch->advantages.element,
                                                   m2po_view_at(&batch->advantages, 1, sequence));
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
  const unsigned char *const address =
      batch->cu_seqlens.data + (sequence * batch->cu_seqlens.column_stride);
  return m2po_element_load_integer(batch->cu_seqlens.element, address);
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

bool m2po_is_wide(const m2po_view *policy, const m2po_view *behavior)
{
  return policy->element == M2PO_FLOAT64 || behavior->element == M2PO_FLOAT64;
}
