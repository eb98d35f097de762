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

unsigned char *m2po_stage_in_place(const rft_view *view, int64_t start, int64_t count)
{
  return count == M2PO_BLOCK && m2po_stage_is_flat(view)
             ? view->data + start * rft_element_size(view->element)
             : NULL;
}

static void copy_floats(const rft_view *view, int64_t start, int64_t count, float *copy)
{
  double values[M2PO_BLOCK];
  rft_view_load(view, start, count, values);
  for (int64_t i = 0; i < count; ++i) {
    copy[i] = (float)values[i];
  }
}

static void copy_advantages(const rft_batch_view *batch, int64_t start, int64_t count, float *copy)
{
  double values[M2PO_BLOCK];
  rft_batch_view_load_advantages(batch, start, count, values);
  for (int64_t i = 0; i < count; ++i) {
    copy[i] = (float)values[i];
  }
}

// False: a float mask holds something other than 0 and 1.
static bool copy_flags(const rft_view *view, int64_t start, int64_t count, uint8_t *copy)
{
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

bool m2po_stage_copy(const rft_batch_view *batch, const m2po_pair *pair, int64_t start,
                     int64_t count, int64_t at, m2po_stage *stage)
{
  copy_floats(pair->policy, start, count, stage->policy + at);
  copy_floats(pair->reference, start, count, stage->reference + at);
  copy_advantages(batch, start, count, stage->advantages + at);
  return copy_flags(&batch->mask, start, count, stage->mask + at);
}

m2po_block m2po_stage_block(const m2po_stage *stage)
{
  return (m2po_block){stage->policy, stage->reference, stage->advantages, stage->mask, stage->mask};
}

// NULL: not as kernels want them.
static const float *flat_floats(const rft_view *view)
{
  return view->element == RFT_ELEMENT_FLOAT32 && m2po_stage_is_flat(view)
             ? (const float *)(const void *)view->data
             : NULL;
}

static const uint8_t *flat_flags(const rft_view *view)
{
  return rft_element_size(view->element) == 1 && m2po_stage_is_flat(view) ? view->data : NULL;
}

m2po_source m2po_source_of(const rft_batch_view *batch, const m2po_pair *pair, const rft_view *keep)
{
  return (m2po_source){.batch = batch,
                       .pair = pair,
                       .keep = keep,
                       .policy = flat_floats(pair->policy),
                       .reference = flat_floats(pair->reference),
                       .advantages =
                           batch->advantages_by_sequence ? NULL : flat_floats(&batch->advantages),
                       .mask = flat_flags(&batch->mask),
                       .kept = rft_view_present(keep) ? flat_flags(keep) : NULL};
}

static const float *load_floats(const rft_view *view, int64_t start, int64_t count, float *copy)
{
  copy_floats(view, start, count, copy);
  memset(copy + count, 0, (size_t)(M2PO_BLOCK - count) * sizeof copy[0]);
  return copy;
}

static const float *load_advantages(const rft_batch_view *batch, int64_t start, int64_t count,
                                    float *copy)
{
  copy_advantages(batch, start, count, copy);
  memset(copy + count, 0, (size_t)(M2PO_BLOCK - count) * sizeof copy[0]);
  return copy;
}

// NULL: a float mask holds something other than 0 and 1.
static const uint8_t *load_flags(const rft_view *view, int64_t start, int64_t count, uint8_t *copy)
{
  const bool good = copy_flags(view, start, count, copy);
  memset(copy + count, 0, (size_t)(M2PO_BLOCK - count));
  return good ? copy : NULL;
}

bool m2po_stage_load(const m2po_source *source, int64_t start, int64_t count, m2po_stage *stage,
                     m2po_block *block)
{
  const bool whole = count == M2PO_BLOCK;
  block->mask = whole && source->mask != NULL
                    ? source->mask + start
                    : load_flags(&source->batch->mask, start, count, stage->mask);
  if (block->mask == NULL) {
    return false;
  }
  block->policy = whole && source->policy != NULL
                      ? source->policy + start
                      : load_floats(source->pair->policy, start, count, stage->policy);
  block->reference = whole && source->reference != NULL
                         ? source->reference + start
                         : load_floats(source->pair->reference, start, count, stage->reference);
  block->advantages = whole && source->advantages != NULL
                          ? source->advantages + start
                          : load_advantages(source->batch, start, count, stage->advantages);
  if (!rft_view_present(source->keep)) {
    block->keep = block->mask;
  } else {
    block->keep = whole && source->kept != NULL
                      ? source->kept + start
                      : load_flags(source->keep, start, count, stage->keep);
  }
  return true;
}
