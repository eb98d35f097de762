// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "tensors.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct block {
  struct block *next;
  void *memory;
} block;

static block *blocks;

void *test_alloc(int64_t size)
{
  block *const added = malloc(sizeof *added);
  assert(added != NULL);
  added->memory = calloc(1, size > 0 ? (size_t)size : 1);
  assert(added->memory != NULL);
  added->next = blocks;
  blocks = added;
  return added->memory;
}

void test_free_all(void)
{
  while (blocks != NULL) {
    block *const next = blocks->next;
    free(blocks->memory);
    free(blocks);
    blocks = next;
  }
}

static int64_t stride_of(const rft_tensor *tensor, int32_t dimension)
{
  if (tensor->strides != NULL) {
    return tensor->strides[dimension];
  }
  int64_t stride = 1;
  for (int32_t i = dimension + 1; i < tensor->ndim; ++i) {
    stride *= tensor->shape[i];
  }
  return stride;
}

int64_t tensor_count(const rft_tensor *tensor)
{
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    count *= tensor->shape[i];
  }
  return count;
}

static unsigned char *address_of(const rft_tensor *tensor, int64_t index)
{
  int64_t element = 0;
  for (int32_t i = tensor->ndim - 1; i >= 0; --i) {
    element += index % tensor->shape[i] * stride_of(tensor, i);
    index /= tensor->shape[i];
  }
  return (unsigned char *)tensor->data + tensor->byte_offset + element * dtype_size(tensor->dtype);
}

double tensor_get(const rft_tensor *tensor, int64_t index)
{
  return dtype_load(tensor->dtype, address_of(tensor, index));
}

void tensor_set(const rft_tensor *tensor, int64_t index, double value)
{
  dtype_store(tensor->dtype, address_of(tensor, index), value);
}

// A tensor without memory; shape and strides lie behind it.
static rft_tensor *shell(rft_dtype dtype, const tensor_layout *layout)
{
  rft_tensor *const tensor =
      test_alloc((int64_t)(sizeof *tensor + sizeof layout->shape + sizeof layout->strides));
  int64_t *const sizes = (int64_t *)(tensor + 1);
  memcpy(sizes, layout->shape, sizeof layout->shape);
  memcpy(sizes + 2, layout->strides, sizeof layout->strides);
  *tensor = (rft_tensor){NULL, {RFT_DEVICE_CPU, 0}, layout->ndim, dtype, sizes, sizes + 2, 0};
  if (layout->compact) {
    tensor->strides = NULL;
  }
  return tensor;
}

/// Elements below and above element [0,0].
typedef struct reach {
  int64_t below;
  int64_t above;
} reach;

static reach reach_of(const rft_tensor *tensor)
{
  reach result = {0, 0};
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    const int64_t step = (tensor->shape[i] - 1) * stride_of(tensor, i);
    *(step < 0 ? &result.below : &result.above) += step < 0 ? -step : step;
  }
  return result;
}

rft_tensor *tensor_new(rft_dtype dtype, const tensor_layout *layout, const double *values)
{
  rft_tensor *const tensor = shell(dtype, layout);
  const int64_t count = tensor_count(tensor);
  const int64_t size = dtype_size(dtype);
  tensor->byte_offset = (uint64_t)layout->byte_offset;
  if (count == 0) {
    return tensor;
  }
  const reach span = reach_of(tensor);
  const int64_t bytes = layout->byte_offset + (span.below + span.above + 1) * size;
  tensor->byte_offset += (uint64_t)(span.below * size);
  tensor->data = test_alloc(bytes);
  memset(tensor->data, TENSOR_GAP, (size_t)bytes);
  for (int64_t i = 0; i < count; ++i) {
    tensor_set(tensor, i, values == NULL ? 0.0 : values[i]);
  }
  return tensor;
}

rft_tensor *tensor_1d(rft_dtype dtype, int64_t count, const double *values)
{
  return tensor_new(dtype, &(tensor_layout){.ndim = 1, .shape = {count, 0}, .compact = true},
                    values);
}

rft_tensor *tensor_2d(rft_dtype dtype, int64_t rows, int64_t columns, const double *values)
{
  return tensor_new(dtype, &(tensor_layout){.ndim = 2, .shape = {rows, columns}, .compact = true},
                    values);
}

rft_tensor *tensor_slice(const rft_tensor *tensor, int64_t start, int64_t count)
{
  tensor_layout layout = {.ndim = tensor->ndim};
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    layout.shape[i] = i == 0 ? count : tensor->shape[i];
    layout.strides[i] = stride_of(tensor, i);
  }
  rft_tensor *const slice = shell(tensor->dtype, &layout);
  const int64_t skipped = start * layout.strides[0] * dtype_size(tensor->dtype);
  slice->data = tensor->data;
  slice->byte_offset = tensor->byte_offset + (uint64_t)skipped;
  return slice;
}

rft_tensor *tensor_like(const rft_tensor *tensor, rft_dtype dtype)
{
  tensor_layout layout = {.ndim = tensor->ndim, .compact = true};
  memcpy(layout.shape, tensor->shape, (size_t)tensor->ndim * sizeof *tensor->shape);
  return tensor_new(dtype, &layout, NULL);
}

unsigned char *tensor_bytes(const rft_tensor *tensor, int64_t *size)
{
  if (tensor_count(tensor) == 0) {
    *size = 0;
    return NULL;
  }
  const int64_t element = dtype_size(tensor->dtype);
  const reach span = reach_of(tensor);
  *size = (span.below + span.above + 1) * element;
  return (unsigned char *)tensor->data + tensor->byte_offset - span.below * element;
}
