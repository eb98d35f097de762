// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "view.h"

#include "error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *content_text(rft_content content)
{
  switch (content) {
  case RFT_CONTENT_FLOATS:
    return "float16, bfloat16, float32 or float64";
  case RFT_CONTENT_NUMBERS:
    return "bool, int8, uint8, int32, int64 or a float dtype";
  case RFT_CONTENT_INTEGERS:
    break;
  }
  return "int32 or int64";
}

static bool content_allows(rft_content content, rft_element element)
{
  switch (content) {
  case RFT_CONTENT_FLOATS:
    return rft_element_is_float(element);
  case RFT_CONTENT_NUMBERS:
    return element != RFT_ELEMENT_UNSUPPORTED;
  case RFT_CONTENT_INTEGERS:
    break;
  }
  return element == RFT_ELEMENT_INT32 || element == RFT_ELEMENT_INT64;
}

const char *rft_shape_text(char text[RFT_SHAPE_TEXT_SIZE], const rft_tensor *tensor)
{
  int length = snprintf(text, RFT_SHAPE_TEXT_SIZE, "[");
  for (int32_t i = 0; i < tensor->ndim && length < RFT_SHAPE_TEXT_SIZE; ++i) {
    length += snprintf(text + length, (size_t)(RFT_SHAPE_TEXT_SIZE - length), "%s%" PRId64,
                       i == 0 ? "" : ", ", tensor->shape[i]);
  }
  if (length < RFT_SHAPE_TEXT_SIZE) {
    snprintf(text + length, (size_t)(RFT_SHAPE_TEXT_SIZE - length), "]");
  }
  return text;
}

bool rft_same_shape(const rft_tensor *left, const rft_tensor *right)
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

int32_t rft_tensor_check(const rft_tensor *tensor, rft_content content, const char *name,
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
      char text[RFT_SHAPE_TEXT_SIZE];
      return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected sizes >= 0, found shape %s", name,
                      rft_shape_text(text, tensor));
    }
  }
  if (!content_allows(content, rft_element_of(tensor->dtype))) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected dtype %s, found type code %d with %d bits and %d lanes", name,
                    content_text(content), tensor->dtype.code, tensor->dtype.bits,
                    tensor->dtype.lanes);
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

rft_view rft_view_of(const rft_tensor *tensor)
{
  const rft_element element = rft_element_of(tensor->dtype);
  const int64_t size = rft_element_size(element);
  const int32_t last = tensor->ndim - 1;
  unsigned char *const data = tensor->data; // an empty tensor may have none
  return (rft_view){.data = data == NULL ? NULL : data + tensor->byte_offset,
                    .element = element,
                    .rows = last == 0 ? 1 : tensor->shape[0],
                    .columns = tensor->shape[last],
                    .row_stride = last == 0 ? 0 : stride_of(tensor, 0) * size,
                    .column_stride = stride_of(tensor, last) * size};
}

int32_t rft_view_like(const rft_tensor *tensor, const rft_tensor *logprob, rft_content content,
                      const char *name, rft_view *view, rft_error *error)
{
  const int32_t code = rft_tensor_check(tensor, content, name, error);
  if (code != RFT_OK) {
    return code;
  }
  if (!rft_same_shape(tensor, logprob)) {
    char found[RFT_SHAPE_TEXT_SIZE];
    char expected[RFT_SHAPE_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected the shape of logprob, %s, found %s",
                    name, rft_shape_text(expected, logprob), rft_shape_text(found, tensor));
  }
  *view = rft_view_of(tensor);
  return RFT_OK;
}

unsigned char *rft_view_at(const rft_view *view, int64_t position)
{
  return view->data + ((position / view->columns) * view->row_stride) +
         ((position % view->columns) * view->column_stride);
}

// The positions from `position` to the end of its row, at most `most`.
static int64_t row_length(int64_t columns, int64_t position, int64_t most)
{
  const int64_t left = columns - (position % columns);
  return left < most ? left : most;
}

void rft_view_load(const rft_view *view, int64_t start, int64_t count, double *values)
{
  for (int64_t done = 0, length = 0; done < count; done += length) {
    length = row_length(view->columns, start + done, count - done);
    rft_element_load(view->element, rft_view_at(view, start + done), view->column_stride, length,
                     values + done);
  }
}

void rft_view_store(const rft_view *view, int64_t start, int64_t count, const double *values)
{
  for (int64_t done = 0, length = 0; done < count; done += length) {
    length = row_length(view->columns, start + done, count - done);
    rft_element_store(view->element, rft_view_at(view, start + done), view->column_stride, length,
                      values + done);
  }
}

// Eight bits as eight bytes: each byte gets a copy of all, keeps its own bit, and carries it to the
// top.
static uint64_t spread(uint64_t bits)
{
  const uint64_t own = (bits & 0xFF) * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
  return (own + UINT64_C(0x7F7F7F7F7F7F7F7F)) >> 7 & UINT64_C(0x0101010101010101);
}

static void store_row_bits(unsigned char *address, int64_t stride, int64_t count, uint64_t bits)
{
  int64_t i = 0;
  for (; stride == 1 && i + 8 <= count; i += 8) {
    const uint64_t bytes = spread(bits >> i);
    memcpy(address + i, &bytes, sizeof bytes);
  }
  for (; i < count; ++i) {
    address[i * stride] = (bits >> i) & 1;
  }
}

void rft_view_store_bits(const rft_view *view, int64_t start, int64_t count, uint64_t bits)
{
  for (int64_t done = 0, length = 0; done < count; done += length) {
    length = row_length(view->columns, start + done, count - done);
    store_row_bits(rft_view_at(view, start + done), view->column_stride, length, bits >> done);
  }
}

// The bytes from the lowest to past the highest address of a view.
typedef struct extent {
  uintptr_t low;
  uintptr_t high;
} extent;

static extent extent_of(const rft_view *view)
{
  const int64_t steps[2] = {(view->rows - 1) * view->row_stride,
                            (view->columns - 1) * view->column_stride};
  const uintptr_t first = (uintptr_t)view->data;
  extent bytes = {first, first + (uintptr_t)rft_element_size(view->element)};
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
static bool shares_memory(const rft_view *view)
{
  const int64_t size = rft_element_size(view->element);
  const int64_t step = llabs(view->column_stride);
  for (int64_t row = 0; row < view->rows; ++row) {
    const int64_t distance = llabs(row * view->row_stride);
    const int64_t nearest = step == 0 ? 0 : distance / step;
    for (int64_t column = nearest; column <= nearest + 1 && column < view->columns; ++column) {
      if ((row != 0 || column != 0) && llabs(distance - column * step) < size) {
        return true;
      }
    }
  }
  return false;
}

int32_t rft_view_check_output(const rft_view *view, const char *name, rft_error *error)
{
  // The usual layout, where one row ends before the next one starts, needs no search.
  const int64_t size = rft_element_size(view->element);
  const bool apart = view->column_stride >= size &&
                     view->row_stride >= (view->column_stride * (view->columns - 1)) + size;
  if (view->rows == 0 || view->columns == 0 || apart || !shares_memory(view)) {
    return RFT_OK;
  }
  return rft_fail(error, RFT_INVALID_ARGUMENT,
                  "%s: expected strides that address each element once, found %" PRId64
                  " and %" PRId64 " bytes over [%" PRId64 ", %" PRId64 "]",
                  name, view->row_stride, view->column_stride, view->rows, view->columns);
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
static bool are_interleaved(const rft_view *left, const rft_view *right)
{
  int64_t period = greatest_divisor(left->row_stride, left->column_stride);
  period = greatest_divisor(period, right->row_stride);
  period = greatest_divisor(period, right->column_stride);
  if (period == 0) {
    return false;
  }
  const int64_t offset = ((right->data - left->data) % period + period) % period;
  return offset >= rft_element_size(left->element) &&
         offset + rft_element_size(right->element) <= period;
}

bool rft_views_overlap(const rft_view *left, const rft_view *right)
{
  if (left->rows == 0 || left->columns == 0 || right->rows == 0 || right->columns == 0) {
    return false;
  }
  const extent one = extent_of(left);
  const extent other = extent_of(right);
  return one.low < other.high && other.low < one.high && !are_interleaved(left, right);
}
