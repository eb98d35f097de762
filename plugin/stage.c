// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "stage.h"

#include <string.h>

bool m2po_stage_fits(const rft_batch_view *batch, const m2po_pair *pair)
{
  return !pair->wide && batch->advantages.element != RFT_ELEMENT_FLOAT64;
}

bool m2po_stage_is_flat(const rft_view *view)
{
  const int64_t size = rft_element_size(view->element);
  return view->column_stride == size &&
         (view->rows == 1 || view->row_stride == view->columns * size) &&
         (uintptr_t)view->data % (uintptr_t)size == 0;
}

// bfloat16 is what trainers have that is not float32: a float32 without its low bits.
static void copy_bfloat16(const rft_view *view, int64_t start, int64_t count, float *copy)
{
  const uint16_t *const halves = (const uint16_t *)(const void *)view->data + start;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = (uint32_t)halves[i] << 16;
    memcpy(copy + i, &bits, sizeof bits);
  }
}

// Copies of positions [start, start + count); `flat` is where they lie in place, or NULL.
static void copy_floats(const rft_view *view, const float *flat, int64_t start, int64_t count,
                        float *copy)
{
  if (flat != NULL) {
    memcpy(copy, flat + start, (size_t)count * sizeof copy[0]);
    return;
  }
  if (view->element == RFT_ELEMENT_BFLOAT16 && m2po_stage_is_flat(view)) {
    copy_bfloat16(view, start, count, copy);
    return;
  }
  double values[M2PO_BLOCK];
  rft_view_load(view, start, count, values);
  for (int64_t i = 0; i < count; ++i) {
    copy[i] = (float)values[i];
  }
}

static void copy_advantages(const m2po_source *source, int64_t start, int64_t count, float *copy)
{
  if (!source->batch->advantages_by_sequence) {
    copy_floats(&source->batch->advantages, source->advantages, start, count, copy);
    return;
  }
  double values[M2PO_BLOCK];
  rft_batch_view_load_advantages(source->batch, start, count, values);
  for (int64_t i = 0; i < count; ++i) {
    copy[i] = (float)values[i];
  }
}

// False: a float mask holds something other than 0 and 1.
static bool copy_flags(const rft_view *view, const uint8_t *flat, int64_t start, int64_t count,
                       uint8_t *copy)
{
  if (flat != NULL) {
    memcpy(copy, flat + start, (size_t)count);
    return true;
  }
  double values[M2PO_BLOCK];
  bool all = true;
  rft_view_load(view, start, count, values);
  for (int64_t i = 0; i < count; ++i) {
    copy[i] = values[i] != 0 ? 1 : 0;
  }
  for (int64_t i = 0; rft_element_is_float(view->element) && i < count; ++i) {
    all = all && (values[i] == 0 || values[i] == 1);
  }
  return all;
}

bool m2po_stage_copy(const m2po_source *source, int64_t start, int64_t count, int64_t at,
                     m2po_stage *stage)
{
  copy_floats(source->pair->policy, source->policy, start, count, stage->policy + at);
  copy_floats(source->pair->reference, source->reference, start, count, stage->reference + at);
  copy_advantages(source, start, count, stage->advantages + at);
  return copy_flags(&source->batch->mask, source->mask, start, count, stage->mask + at);
}

// Of an array, or NULL.
static void fetch(const void *array, int64_t start, int64_t end)
{
  for (int64_t byte = start; array != NULL && byte < end; byte += M2PO_LINE) {
    __builtin_prefetch((const char *)array + byte);
  }
}

void m2po_stage_fetch(const m2po_source *source, int64_t start, int64_t count)
{
  const int64_t size = sizeof(float);
  fetch(source->policy, start * size, (start + count) * size);
  fetch(source->reference, start * size, (start + count) * size);
  fetch(source->advantages, start * size, (start + count) * size);
  fetch(source->mask, start, start + count);
}

m2po_block m2po_stage_block(const m2po_stage *stage)
{
  return (m2po_block){stage->policy, stage->reference, stage->advantages, stage->mask, stage->mask};
}

float *m2po_flat_floats(const rft_view *view)
{
  return view->element == RFT_ELEMENT_FLOAT32 && m2po_stage_is_flat(view)
             ? (float *)(void *)view->data
             : NULL;
}

static const uint8_t *flat_flags(const rft_view *view)
{
  return rft_element_size(view->element) == 1 && m2po_stage_is_flat(view) ? view->data : NULL;
}

m2po_source m2po_source_of(const rft_batch_view *batch, const m2po_pair *pair, const rft_view *keep)
{
  return (m2po_source){
      .batch = batch,
      .pair = pair,
      .keep = keep,
      .policy = m2po_flat_floats(pair->policy),
      .reference = m2po_flat_floats(pair->reference),
      .advantages = batch->advantages_by_sequence ? NULL : m2po_flat_floats(&batch->advantages),
      .mask = flat_flags(&batch->mask),
      .kept = rft_view_present(keep) ? flat_flags(keep) : NULL};
}

static void clear_floats(float *copy, int64_t count)
{
  memset(copy + count, 0, (size_t)(M2PO_BLOCK - count) * sizeof copy[0]);
}

// A block's values where they lie, or a copy with zeros to its end.
static const float *load_floats(const rft_view *view, const float *flat, int64_t start,
                                int64_t count, float *copy)
{
  if (flat != NULL && count == M2PO_BLOCK) {
    return flat + start;
  }
  copy_floats(view, flat, start, count, copy);
  clear_floats(copy, count);
  return copy;
}

static const float *load_advantages(const m2po_source *source, int64_t start, int64_t count,
                                    float *copy)
{
  if (!source->batch->advantages_by_sequence) {
    return load_floats(&source->batch->advantages, source->advantages, start, count, copy);
  }
  copy_advantages(source, start, count, copy);
  clear_floats(copy, count);
  return copy;
}

// NULL: a float mask holds something other than 0 and 1.
static const uint8_t *load_flags(const rft_view *view, const uint8_t *flat, int64_t start,
                                 int64_t count, uint8_t *copy)
{
  if (flat != NULL && count == M2PO_BLOCK) {
    return flat + start;
  }
  const bool good = copy_flags(view, flat, start, count, copy);
  memset(copy + count, 0, (size_t)(M2PO_BLOCK - count));
  return good ? copy : NULL;
}

bool m2po_stage_load(const m2po_source *source, int64_t start, int64_t count, m2po_stage *stage,
                     m2po_block *block)
{
  const m2po_pair *const pair = source->pair;
  block->mask = load_flags(&source->batch->mask, source->mask, start, count, stage->mask);
  if (block->mask == NULL) {
    return false;
  }
  block->policy = load_floats(pair->policy, source->policy, start, count, stage->policy);
  block->reference =
      load_floats(pair->reference, source->reference, start, count, stage->reference);
  block->advantages = load_advantages(source, start, count, stage->advantages);
  block->keep = rft_view_present(source->keep)
                    ? load_flags(source->keep, source->kept, start, count, stage->keep)
                    : block->mask;
  return true;
}
