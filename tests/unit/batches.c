// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "batches.h"

#include <assert.h>
#include <string.h>

rft_batch *batch_new(const rft_tensor *logprob, const rft_tensor *old_logprob,
                     const rft_tensor *proximal_logprob, const rft_tensor *advantages,
                     const rft_tensor *mask, const rft_tensor *cu_seqlens)
{
  rft_batch *const batch = test_alloc(sizeof *batch);
  *batch = (rft_batch){
      .struct_size = sizeof *batch,
      .logprob = logprob,
      .old_logprob = old_logprob,
      .proximal_logprob = proximal_logprob,
      .advantages = advantages,
      .mask = mask,
      .cu_seqlens = cu_seqlens,
  };
  return batch;
}

int64_t batch_count(const rft_batch *batch)
{
  return tensor_count(batch->logprob);
}

int64_t batch_columns(const rft_batch *batch)
{
  return batch->logprob->shape[batch->logprob->ndim - 1];
}

static int64_t sequence_of(const rft_batch *batch, int64_t position)
{
  if (batch->cu_seqlens == NULL) {
    return position / batch_columns(batch);
  }
  int64_t sequence = 0;
  while ((int64_t)tensor_get(batch->cu_seqlens, sequence + 1) <= position) {
    ++sequence;
  }
  return sequence;
}

static bool same_shape(const rft_tensor *a, const rft_tensor *b)
{
  return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static double advantage_at(const rft_batch *batch, int64_t position)
{
  const bool by_token = same_shape(batch->advantages, batch->logprob);
  return tensor_get(batch->advantages, by_token ? position : sequence_of(batch, position));
}

reference_token *batch_tokens(const rft_batch *batch)
{
  const int64_t count = batch_count(batch);
  reference_token *const tokens = test_alloc(count * (int64_t)sizeof *tokens);
  const rft_tensor *const proximal = batch->proximal_logprob;
  for (int64_t i = 0; i < count; ++i) {
    tokens[i] = (reference_token){
        .logprob = tensor_get(batch->logprob, i),
        .old_logprob = tensor_get(batch->old_logprob, i),
        .proximal_logprob = proximal == NULL ? 0.0 : tensor_get(proximal, i),
        .advantage = advantage_at(batch, i),
        .has_proximal = proximal != NULL,
        .valid = tensor_get(batch->mask, i) != 0,
        .logprob_is_wide = dtype_is_wide(batch->logprob->dtype),
        .old_is_wide = dtype_is_wide(batch->old_logprob->dtype),
        .proximal_is_wide = proximal != NULL && dtype_is_wide(proximal->dtype),
        .sequence = sequence_of(batch, i),
    };
  }
  return tokens;
}

batch_list batch_list_of(const rft_batch *batch)
{
  batch_list list = {1, test_alloc(sizeof *list.batch)};
  list.batch[0] = batch;
  return list;
}

int64_t batch_list_positions(const batch_list *list)
{
  int64_t positions = 0;
  for (int64_t k = 0; k < list->count; ++k) {
    positions += batch_count(list->batch[k]);
  }
  return positions;
}

reference_token *batch_list_tokens(const batch_list *list)
{
  reference_token *const all = test_alloc(batch_list_positions(list) * (int64_t)sizeof *all);
  int64_t done = 0;
  for (int64_t k = 0; k < list->count; ++k) {
    const int64_t count = batch_count(list->batch[k]);
    memcpy(all + done, batch_tokens(list->batch[k]), (size_t)count * sizeof *all);
    done += count;
  }
  return all;
}

static const rft_tensor *slice_or_null(const rft_tensor *tensor, int64_t start, int64_t count)
{
  return tensor == NULL ? NULL : tensor_slice(tensor, start, count);
}

batch_list batch_split(const rft_batch *batch, int64_t parts, const int64_t *sizes)
{
  batch_list list = {parts, test_alloc(parts * (int64_t)sizeof *list.batch)};
  int64_t start = 0;
  for (int64_t k = 0; k < parts; ++k) {
    list.batch[k] = batch_new(tensor_slice(batch->logprob, start, sizes[k]),
                              tensor_slice(batch->old_logprob, start, sizes[k]),
                              slice_or_null(batch->proximal_logprob, start, sizes[k]),
                              tensor_slice(batch->advantages, start, sizes[k]),
                              tensor_slice(batch->mask, start, sizes[k]), NULL);
    start += sizes[k];
  }
  assert(start == batch->logprob->shape[0]);
  return list;
}
