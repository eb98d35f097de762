// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "stage.h"

#include <string.h>

bool m2po_stage_fits(const rft_batch_view *batch, const m2po_pair *pair)
{
  return !pair->wide && batch->advantages.element != RFT_ELEMENT_FLOAT64;
}

unsigned char *m2po_stage_in_place(const rft_view *view, int64_t start, int64_t count)
{
  const int64_t size = rft_element_size(view->element);
  const bool side_by_side =
      view->column_stride == size && (view->rows == 1 || view->row_stride == view->columns * size);
  unsigned char *const address = view->data + start * size;
  const bool aligned = (uintptr_t)address % (uintptr_t)size == 0;
  return count == M2PO_BLOCK && side_by_side && aligned ? address : NULL;
}

static void copy_floats(const rft_view *view, int64_t start, int64_t count, double *values,
                        float *copy)
{
  rft_view_load(view, start, count, values);
  for (int64_t i = 0; i < count; ++i) {
    copy[i] = (float)values[i];
  }
}

static void copy_advantages(const rft_batch_view *batch, int64_t start, int64_t count,
                            double *values, float *copy)
{
  rft_batch_view_load_advantages(batch, start, count, values);
  for (int64_t i = 0; i < count; ++i) {
    copy[i] = (float)values[i];
  }
}

static void copy_flags(const rft_view *view, int64_t start, int64_t count, double *values,
                       uint8_t *copy)
{
  rft_view_load(view, start, count, values);
  for (int64_t i = 0; i < count; ++i) {
    copy[i] = values[i] != 0 ? 1 : 0;
  }
}

// Float masks have to hold 0 and 1 only. `values` are the mask's.
static bool is_mask(const rft_view *mask, const double *values, int64_t count)
{
  bool all = true;
  for (int64_t i = 0; rft_element_is_float(mask->element) && i < count; ++i) {
    all = all && (values[i] == 0 || values[i] == 1);
  }
  return all;
}

bool m2po_stage_copy(const rft_batch_view *batch, const m2po_pair *pair, int64_t start,
                     int64_t count, int64_t at, m2po_stage *stage)
{
  double *const values = stage->values;
  copy_floats(pair->policy, start, count, values, stage->policy + at);
  copy_floats(pair->reference, start, count, values, stage->reference + at);
  copy_advantages(batch, start, count, values, stage->advantages + at);
  copy_flags(&batch->mask, start, count, values, stage->mask + at);
  return is_mask(&batch->mask, values, count);
}

m2po_block m2po_stage_block(const m2po_stage *stage)
{
  return (m2po_block){stage->policy, stage->reference, stage->advantages, stage->mask, stage->mask};
}

static const float *load_floats(const rft_view *view, int64_t start, int64_t count, double *values,
                                float *copy)
{
  const unsigned char *const in_place =
      view->element == RFT_ELEMENT_FLOAT32 ? m2po_stage_in_place(view, start, count) : NULL;
  if (in_place != NULL) {
    return (const float *)(const void *)in_place;
  }
  copy_floats(view, start, count, values, copy);
  memset(copy + count, 0, (size_t)(M2PO_BLOCK - count) * sizeof copy[0]);
  return copy;
}

static const float *load_advantages(const rft_batch_view *batch, int64_t start, int64_t count,
                                    m2po_stage *stage)
{
  if (!batch->advantages_by_sequence) {
    return load_floats(&batch->advantages, start, count, stage->values, stage->advantages);
  }
  float *const copy = stage->advantages;
  copy_advantages(batch, start, count, stage->values, copy);
  memset(copy + count, 0, (size_t)(M2PO_BLOCK - count) * sizeof copy[0]);
  return copy;
}

static const uint8_t *load_flags(const rft_view *view, int64_t start, int64_t count, double *values,
                                 uint8_t *copy)
{
  const uint8_t *const in_place =
      rft_element_size(view->element) == 1 ? m2po_stage_in_place(view, start, count) : NULL;
  if (in_place != NULL) {
    return in_place;
  }
  copy_flags(view, start, count, values, copy);
  memset(copy + count, 0, (size_t)(M2PO_BLOCK - count));
  return copy;
}

bool m2po_stage_load(const rft_batch_view *batch, const m2po_pair *pair, const rft_view *keep,
                     int64_t start, int64_t count, m2po_stage *stage, m2po_block *block)
{
  double *const values = stage->values;
  block->mask = load_flags(&batch->mask, start, count, values, stage->mask);
  if (!is_mask(&batch->mask, values, count)) {
    return false;
  }
  block->policy = load_floats(pair->policy, start, count, values, stage->policy);
  block->reference = load_floats(pair->reference, start, count, values, stage->reference);
  block->advantages = load_advantages(batch, start, count, stage);
  block->keep =
      rft_view_present(keep) ? load_flags(keep, start, count, values, stage->keep) : block->mask;
  return true;
}
