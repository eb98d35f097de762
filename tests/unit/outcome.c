// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "outcome.h"

#include "compare.h"

#include <criterion/criterion.h>

outcome outcome_of(const rft_instance *instance, const batch_list *list, rft_dtype gradient)
{
  outcome result = {select_ok(instance, list),
                    test_alloc(list->count * (int64_t)sizeof *result.part)};
  const rft_reduction reduction = reduction_of(&result.selection.report);
  for (int64_t k = 0; k < list->count; ++k) {
    result.part[k] =
        evaluate_ok(instance, list->batch[k], result.selection.mask[k], &reduction, gradient);
  }
  return result;
}

void check_same_bytes(const char *what, const rft_tensor *a, const rft_tensor *b)
{
  int64_t size, other;
  const unsigned char *const left = tensor_bytes(a, &size);
  const unsigned char *const right = tensor_bytes(b, &other);
  cr_assert_eq(size, other, "%s", what);
  if (size == 0 || memcmp(left, right, (size_t)size) == 0) {
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    cr_assert_eq(left[i], right[i], "%s: byte %d of %d", what, (int)i, (int)size);
  }
}

static void check_same_metrics(const char *what, const double *a, const double *b)
{
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    cr_assert(same_bits(a[i], b[i]), "%s: %s is %a and %a", what, m2po()->metrics[i]->name, a[i],
              b[i]);
  }
}

void check_same_outcome(const char *what, const outcome *a, const outcome *b, int64_t count)
{
  check_same_metrics(what, a->selection.metrics, b->selection.metrics);
  for (int64_t k = 0; k < count; ++k) {
    check_same_bytes(what, a->selection.mask[k], b->selection.mask[k]);
    check_same_bytes(what, a->part[k].gradient, b->part[k].gradient);
    check_same_metrics(what, a->part[k].metrics, b->part[k].metrics);
    cr_assert(same_bits(a->part[k].loss, b->part[k].loss), "%s: loss is %a and %a", what,
              a->part[k].loss, b->part[k].loss);
  }
}
