// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Tensors as memory: where they lie, and how.

#include "batches.h"
#include "check.h"
#include "provoke.h"
#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void evaluates(const check_subject *subject)
{
  const check_outcome outcome = check_evaluate_ok("ordinary batch", subject, check_create(subject),
                                                  check_ordinary_batch(subject), NULL, NULL, NULL);
  EXPECT(isfinite(outcome.loss) && outcome.loss != UNWRITTEN, "the loss is %g", outcome.loss);
  for (int64_t i = 0; i < outcome.count; ++i) {
    EXPECT(isfinite(outcome.gradient[i]), "the gradient at position %" PRId64 " is %g", i,
           outcome.gradient[i]);
  }
}

// The ordinary values in two forms give the same bits.
static void compare_forms(const char *what, const check_subject *subject, const check_form *form,
                          const rft_tensor *gradient)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const check_form plain = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const check_outcome expected = check_evaluate_ok("ordinary batch", subject, instance,
                                                   check_batch(&values, &plain), NULL, NULL, NULL);
  const check_outcome found =
      check_evaluate_ok(what, subject, instance, check_batch(&values, form), NULL, NULL, gradient);
  EXPECT(check_same_outcome(&found, &expected),
         "%s: other bits than for a compact batch; the loss is %.17g and %.17g", what, found.loss,
         expected.loss);
}

static void compare_inputs(const char *what, const check_subject *subject, check_layout layout)
{
  check_form form = check_form_plain();
  form.layout = layout;
  compare_forms(what, subject, &form, NULL);
}

static void inputs_may_be_read_only(const check_subject *subject)
{
  compare_inputs("inputs in read-only pages", subject,
                 (check_layout){.placement = GUARD_BEFORE, .read_only = true});
}

static void inputs_are_not_overrun(const check_subject *subject)
{
  compare_inputs("inputs before a guard page", subject, (check_layout){.placement = GUARD_AFTER});
  compare_inputs("inputs behind a guard page", subject, (check_layout){.placement = GUARD_BEFORE});
}

static void compare_gradient(const char *what, const check_subject *subject, check_layout layout)
{
  const check_form form = check_form_plain();
  compare_forms(what, subject, &form, check_tensor(NULL, 2, 4, 6, DTYPE_FLOAT32, &layout));
}

static void gradient_is_not_overrun(const check_subject *subject)
{
  compare_gradient("gradient before a guard page", subject,
                   (check_layout){.placement = GUARD_AFTER});
  compare_gradient("gradient behind a guard page", subject,
                   (check_layout){.placement = GUARD_BEFORE});
}

static void inputs_of_any_strides(const check_subject *subject)
{
  compare_inputs("explicit strides", subject, (check_layout){.arrangement = EXPLICIT});
  compare_inputs("transposed inputs", subject, (check_layout){.arrangement = TRANSPOSED});
  compare_inputs("negative strides", subject, (check_layout){.arrangement = REVERSED});
  compare_inputs("every third element", subject, (check_layout){.arrangement = GAPPED});
}

static void gradient_of_any_strides(const check_subject *subject)
{
  compare_gradient("explicit strides", subject, (check_layout){.arrangement = EXPLICIT});
  compare_gradient("a transposed gradient", subject, (check_layout){.arrangement = TRANSPOSED});
  compare_gradient("negative strides", subject, (check_layout){.arrangement = REVERSED});
}

static void gaps_stay(const check_subject *subject)
{
  const check_layout layout = {.arrangement = GAPPED};
  const check_form form = check_form_plain();
  const rft_tensor *const gradient = check_tensor(NULL, 2, 4, 6, DTYPE_FLOAT32, &layout);
  compare_forms("every third element", subject, &form, gradient);
  size_t size = 0;
  const unsigned char *const bytes = check_tensor_bytes(gradient, &size);
  for (size_t i = 0; i < size; ++i) {
    EXPECT(i / sizeof(float) % 3 == 0 || bytes[i] == 0xA5,
           "between the elements of the gradient byte %zu was written", i);
  }
}

static void byte_offsets(const check_subject *subject)
{
  compare_inputs("a byte_offset of five elements", subject, (check_layout){.arrangement = OFFSET});
  compare_gradient("a gradient behind five elements", subject,
                   (check_layout){.arrangement = OFFSET});
}

static void unaligned_elements(const check_subject *subject)
{
  compare_inputs("a byte_offset of 1", subject, (check_layout){.arrangement = UNALIGNED});
  compare_gradient("a gradient at a byte_offset of 1", subject,
                   (check_layout){.arrangement = UNALIGNED});
}

// Stride 0 over tokens gives each sequence one advantage; so do shapes [B] and [B,1].
static void broadcast_advantages(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_layout layout = {.placement = GUARD_AFTER};
  check_values values = check_values_exact(&r, 4, 6);
  double by_sequence[4];
  for (int64_t i = 0; i < 24; ++i) {
    by_sequence[i / 6] = values.advantages[i / 6 * 6];
    values.advantages[i] = values.advantages[i / 6 * 6];
  }
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  rft_batch *const batch = check_batch(&values, &form);
  const check_outcome expected =
      check_evaluate_ok("ordinary batch", subject, instance, batch, NULL, NULL, NULL);
  static int64_t shape[] = {4, 6};
  static int64_t strides[] = {1, 0};
  rft_tensor *const stretched = check_tensor(by_sequence, 1, 1, 4, DTYPE_FLOAT32, &layout);
  const rft_tensor *const forms[] = {check_tensor(by_sequence, 1, 1, 4, DTYPE_FLOAT32, &layout),
                                     check_tensor(by_sequence, 2, 4, 1, DTYPE_FLOAT32, &layout),
                                     stretched};
  stretched->ndim = 2;
  stretched->shape = shape;
  stretched->strides = strides;
  static const char *const names[] = {"advantages of shape [B]", "advantages of shape [B,1]",
                                      "advantages of stride 0"};
  for (int i = 0; i < 3; ++i) {
    batch->advantages = forms[i];
    const check_outcome found =
        check_evaluate_ok(names[i], subject, instance, batch, NULL, NULL, NULL);
    EXPECT(check_same_outcome(&found, &expected), "%s: other bits than for one a token", names[i]);
  }
}

static void packed_batches(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const check_outcome padded = check_evaluate_ok("padded batch", subject, instance,
                                                 check_batch(&values, &form), NULL, NULL, NULL);
  const rft_dtype offsets[] = {DTYPE_INT32, DTYPE_INT64};
  form.packed = true;
  for (int i = 0; i < 2; ++i) {
    form.cu_seqlens = offsets[i];
    const check_outcome packed = check_evaluate_ok("packed batch", subject, instance,
                                                   check_batch(&values, &form), NULL, NULL, NULL);
    check_expect_near("packed batch", &packed, &padded, 1e-6);
  }
}

static void empty_sequences(const check_subject *subject)
{
  rng r = {subject->seed};
  const double starts[] = {0, 0, 6, 12, 12, 18, 24, 24};
  const check_layout layout = {.placement = GUARD_AFTER};
  const check_values values = check_values_exact(&r, 4, 6);
  check_form form = check_form_plain();
  form.packed = true;
  const rft_instance *const instance = check_create(subject);
  rft_batch *const batch = check_batch(&values, &form);
  const check_outcome expected =
      check_evaluate_ok("packed batch", subject, instance, batch, NULL, NULL, NULL);
  batch->cu_seqlens = check_tensor(starts, 1, 1, 8, DTYPE_INT64, &layout);
  const check_outcome found =
      check_evaluate_ok("empty sequences", subject, instance, batch, NULL, NULL, NULL);
  check_expect_near("empty sequences", &found, &expected, 1e-6);
}

static void expect_refused(const provocation *made)
{
  EXPECT(!made->must_fail || made->code != RFT_OK, "%s: evaluate returns OK", made->what);
}

static void null_tensors(const check_subject *subject)
{
  check_provoke(subject, NULL_TENSORS, true, expect_refused);
}

static void wrong_shapes(const check_subject *subject)
{
  check_provoke(subject, WRONG_SHAPES, true, expect_refused);
}

static void foreign_devices(const check_subject *subject)
{
  check_provoke(subject, WRONG_DEVICES, true, expect_refused);
}

static void wrong_offsets(const check_subject *subject)
{
  check_provoke(subject, WRONG_OFFSETS, true, expect_refused);
}

// Page-locked memory of a GPU's driver is read like any other.
static void pinned_memory(const check_subject *subject)
{
  const rft_instance *const instance = check_create(subject);
  rft_batch *const batch = check_ordinary_batch(subject);
  const check_outcome expected =
      check_evaluate_ok("ordinary batch", subject, instance, batch, NULL, NULL, NULL);
  const int32_t types[] = {RFT_DEVICE_CUDA_HOST, RFT_DEVICE_ROCM_HOST};
  for (int i = 0; i < 2; ++i) {
    rft_tensor *const pinned = check_tensor_copy(batch->logprob);
    pinned->device.type = types[i];
    batch->logprob = pinned;
    const check_outcome found =
        check_evaluate_ok("page-locked memory", subject, instance, batch, NULL, NULL, NULL);
    EXPECT(check_same_outcome(&found, &expected), "page-locked memory gives other bits");
  }
}

static const check CHECKS[] = {
    {601, "evaluates", "P13", CHECK_CONFIG, true, "creates",
     "An ordinary batch gets a finite loss and a finite gradient everywhere.", evaluates},
    {602, "inputs_may_be_read_only", "P13", CHECK_CONFIG, true, "evaluates",
     "Inputs are not written.", inputs_may_be_read_only},
    {603, "inputs_are_not_overrun", "P13", CHECK_CONFIG, true, "evaluates",
     "Nothing is read before or behind an input.", inputs_are_not_overrun},
    {604, "gradient_is_not_overrun", "P13", CHECK_CONFIG, true, "evaluates",
     "Nothing is written before or behind the gradient.", gradient_is_not_overrun},
    {605, "inputs_of_any_strides", "P13", CHECK_CONFIG, true, "evaluates",
     "Inputs of any strides give the same bits.", inputs_of_any_strides},
    {606, "gradient_of_any_strides", "P13", CHECK_CONFIG, true, "evaluates",
     "A gradient of any strides gets the same bits.", gradient_of_any_strides},
    {607, "gaps_stay", "P13", CHECK_CONFIG, true, "gradient_of_any_strides",
     "Nothing is written between the elements of the gradient.", gaps_stay},
    {608, "byte_offsets", "P13", CHECK_CONFIG, true, "evaluates", "A byte_offset is added to data.",
     byte_offsets},
    {609, "unaligned_elements", "P13", CHECK_CONFIG, false, "byte_offsets",
     "Elements may lie at any byte.", unaligned_elements},
    {610, "broadcast_advantages", "P13", CHECK_CONFIG, true, "evaluates",
     "One advantage a sequence counts for each of its tokens.", broadcast_advantages},
    {611, "packed_batches", "P13", CHECK_CONFIG, true, "evaluates",
     "A packed batch gives what the padded one gives.", packed_batches},
    {612, "empty_sequences", "P13", CHECK_CONFIG, true, "packed_batches",
     "Empty sequences in a packed batch change nothing.", empty_sequences},
    {613, "null_tensors", "P8", CHECK_LOSS, true, "evaluates",
     "A tensor that is missing, or has no data, is refused.", null_tensors},
    {614, "wrong_shapes", "P8", CHECK_LOSS, true, "evaluates",
     "A tensor of another shape than logprob is refused.", wrong_shapes},
    {615, "foreign_devices", "P8", CHECK_LOSS, true, "evaluates",
     "A tensor on a device that is not known is refused.", foreign_devices},
    {616, "pinned_memory", "P13", CHECK_LOSS, true, "evaluates",
     "Page-locked host memory is read like any other.", pinned_memory},
    {617, "wrong_offsets", "P8", CHECK_LOSS, true, "packed_batches",
     "A cu_seqlens that does not start at 0, falls, or does not end with n is refused.",
     wrong_offsets},
};

const check_area tensor_checks = CHECK_AREA(CHECKS);
