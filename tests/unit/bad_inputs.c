// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "bad_inputs.h"

#include <math.h>

enum { ROWS = 2, COLUMNS = 3, POSITIONS = 6, LAST = 5 };

static const double values[POSITIONS] = {0.1, -0.2, 0.3, -0.1, 0.2, 0.05};
static const double ones[POSITIONS] = {1, 1, 1, 1, 1, 1};
static const double starts[] = {0, 2, POSITIONS};

rft_batch *good_batch(void)
{
  return batch_new(tensor_2d(float32, ROWS, COLUMNS, values),
                   tensor_2d(float32, ROWS, COLUMNS, NULL), tensor_2d(float32, ROWS, COLUMNS, NULL),
                   tensor_2d(float32, ROWS, COLUMNS, ones), tensor_2d(float32, ROWS, COLUMNS, ones),
                   NULL);
}

rft_batch *good_packed_batch(void)
{
  return batch_new(tensor_1d(float32, POSITIONS, values), tensor_1d(float32, POSITIONS, NULL), NULL,
                   tensor_1d(float32, POSITIONS, ones), tensor_1d(bool8, POSITIONS, ones),
                   tensor_1d(int32, 3, starts));
}

// The tensors of a batch are const for the plugin, not for the test that made them.
static rft_tensor *writable(const rft_tensor *tensor)
{
  return (rft_tensor *)(uintptr_t)tensor;
}

// ------------------------------------------------------------------------------------------ shapes

static void old_has_four_columns(rft_batch *batch)
{
  batch->old_logprob = tensor_2d(float32, ROWS, 4, NULL);
}

static void proximal_is_flat(rft_batch *batch)
{
  batch->proximal_logprob = tensor_1d(float32, POSITIONS, NULL);
}

static void mask_is_transposed(rft_batch *batch)
{
  batch->mask = tensor_2d(float32, COLUMNS, ROWS, ones);
}

static void advantages_have_two_columns(rft_batch *batch)
{
  batch->advantages = tensor_2d(float32, ROWS, 2, ones);
}

static void advantages_are_by_column(rft_batch *batch)
{
  batch->advantages = tensor_1d(float32, COLUMNS, ones);
}

static void advantages_are_one_row(rft_batch *batch)
{
  batch->advantages = tensor_2d(float32, 1, COLUMNS, ones);
}

static void advantages_of_five_sequences(rft_batch *batch)
{
  batch->advantages = tensor_1d(float32, 5, ones);
}

static void logprob_without_dimension(rft_batch *batch)
{
  writable(batch->logprob)->ndim = 0;
}

static void logprob_of_three_dimensions(rft_batch *batch)
{
  static int64_t shape[] = {1, ROWS, COLUMNS};
  rft_tensor *const logprob = writable(batch->logprob);
  logprob->ndim = 3;
  logprob->shape = shape;
}

static void old_of_three_dimensions(rft_batch *batch)
{
  static int64_t shape[] = {ROWS, COLUMNS, 1};
  rft_tensor *const old = writable(batch->old_logprob);
  old->ndim = 3;
  old->shape = shape;
}

static void logprob_of_negative_size(rft_batch *batch)
{
  writable(batch->logprob)->shape[1] = -3;
}

static void shapes_whose_product_overflows(rft_batch *batch)
{
  const rft_tensor *const all[] = {batch->logprob, batch->old_logprob, batch->proximal_logprob,
                                   batch->advantages, batch->mask};
  for (int t = 0; t < 5; ++t) {
    all[t]->shape[0] = INT64_C(1) << 33;
    all[t]->shape[1] = INT64_C(1) << 33;
  }
}

// --------------------------------------------------------------------------------- dtypes, devices

static void logprob_is_int32(rft_batch *batch)
{
  batch->logprob = tensor_2d(int32, ROWS, COLUMNS, NULL);
}

static void old_is_float8(rft_batch *batch)
{
  writable(batch->old_logprob)->dtype.bits = 8;
}

static void proximal_is_bool(rft_batch *batch)
{
  batch->proximal_logprob = tensor_2d(bool8, ROWS, COLUMNS, NULL);
}

static void advantages_have_lanes(rft_batch *batch)
{
  writable(batch->advantages)->dtype.lanes = 2;
}

static void advantages_are_int64(rft_batch *batch)
{
  batch->advantages = tensor_2d(int64, ROWS, COLUMNS, ones);
}

static void mask_is_complex(rft_batch *batch)
{
  writable(batch->mask)->dtype.code = 5;
}

static void mask_is_uint16(rft_batch *batch)
{
  writable(batch->mask)->dtype = (rft_dtype){RFT_DTYPE_UINT, 16, 1};
}

static void mask_of_unknown_code(rft_batch *batch)
{
  writable(batch->mask)->dtype.code = 99;
}

static void offsets_are_float32(rft_batch *batch)
{
  writable(batch->cu_seqlens)->dtype = float32;
}

static void offsets_are_int8(rft_batch *batch)
{
  writable(batch->cu_seqlens)->dtype = int8;
}

static void logprob_on_cuda(rft_batch *batch)
{
  writable(batch->logprob)->device = (rft_device){RFT_DEVICE_CUDA, 0};
}

static void mask_on_rocm(rft_batch *batch)
{
  writable(batch->mask)->device = (rft_device){RFT_DEVICE_ROCM, 1};
}

static void offsets_on_cuda(rft_batch *batch)
{
  writable(batch->cu_seqlens)->device.type = RFT_DEVICE_CUDA;
}

// -------------------------------------------------------------------------------------------- NULL

static void logprob_is_null(rft_batch *batch)
{
  batch->logprob = NULL;
}

static void old_is_null(rft_batch *batch)
{
  batch->old_logprob = NULL;
}

static void advantages_are_null(rft_batch *batch)
{
  batch->advantages = NULL;
}

static void mask_is_null(rft_batch *batch)
{
  batch->mask = NULL;
}

static void old_without_data(rft_batch *batch)
{
  writable(batch->old_logprob)->data = NULL;
}

// ------------------------------------------------------------------------------------------ values

static void half_in_the_mask(rft_batch *batch)
{
  tensor_set(batch->mask, LAST, 0.5);
}

static void two_in_the_mask(rft_batch *batch)
{
  tensor_set(batch->mask, 0, 2.0);
}

static void nan_in_the_mask(rft_batch *batch)
{
  tensor_set(batch->mask, 1, NAN);
}

static void nan_in_logprob(rft_batch *batch)
{
  tensor_set(batch->logprob, LAST, NAN);
}

static void infinity_in_old(rft_batch *batch)
{
  tensor_set(batch->old_logprob, 4, -INFINITY);
}

static void infinity_in_proximal(rft_batch *batch)
{
  tensor_set(batch->proximal_logprob, 3, INFINITY);
}

static void nan_in_advantages(rft_batch *batch)
{
  tensor_set(batch->advantages, 2, NAN);
}

static void nan_in_a_sequence_advantage(rft_batch *batch)
{
  static const double by_sequence[] = {1.0, NAN};
  batch->advantages = tensor_1d(float32, 2, by_sequence);
}

// -------------------------------------------------------------------------------------- cu_seqlens

static void offsets_start_at_one(rft_batch *batch)
{
  tensor_set(batch->cu_seqlens, 0, 1);
}

static void offsets_start_below_zero(rft_batch *batch)
{
  tensor_set(batch->cu_seqlens, 0, -1);
}

static void offsets_fall(rft_batch *batch)
{
  static const double falling[] = {0, 5, 3, POSITIONS};
  batch->cu_seqlens = tensor_1d(int64, 4, falling);
}

static void offsets_end_early(rft_batch *batch)
{
  tensor_set(batch->cu_seqlens, 2, LAST);
}

static void offsets_end_late(rft_batch *batch)
{
  tensor_set(batch->cu_seqlens, 2, 7);
}

static void offsets_are_huge(rft_batch *batch)
{
  // 2^53 + 1, which a double can't hold.
  batch->cu_seqlens = tensor_1d(int64, 3, NULL);
  ((int64_t *)batch->cu_seqlens->data)[1] = (INT64_C(1) << 53) + 1;
  ((int64_t *)batch->cu_seqlens->data)[2] = POSITIONS;
}

static void offsets_are_empty(rft_batch *batch)
{
  batch->cu_seqlens = tensor_1d(int32, 0, NULL);
}

static void offsets_have_two_dimensions(rft_batch *batch)
{
  batch->cu_seqlens = tensor_2d(int32, 1, 3, starts);
}

static void offsets_of_a_padded_batch(rft_batch *batch)
{
  batch->cu_seqlens = tensor_1d(int32, 3, starts);
}

// ------------------------------------------------------------------------------------------ struct

static void batch_of_size_zero(rft_batch *batch)
{
  batch->struct_size = 0;
}

static void batch_without_its_last_field(rft_batch *batch)
{
  batch->struct_size = RFT_STRUCT_SIZE(rft_batch, cu_seqlens);
}

const bad_input bad_inputs[] = {
    {"old_logprob of another shape",
     false,
     old_has_four_columns,
     RFT_INVALID_ARGUMENT,
     {"old_logprob", "[2,3]", "[2,4]"}},
    {"proximal_logprob flat",
     false,
     proximal_is_flat,
     RFT_INVALID_ARGUMENT,
     {"proximal_logprob", "[2,3]", "[6]"}},
    {"mask transposed",
     false,
     mask_is_transposed,
     RFT_INVALID_ARGUMENT,
     {"mask", "[2,3]", "[3,2]"}},
    {"advantages with two columns",
     false,
     advantages_have_two_columns,
     RFT_INVALID_ARGUMENT,
     {"advantages", "[2,3]", "[2,2]"}},
    {"advantages by column",
     false,
     advantages_are_by_column,
     RFT_INVALID_ARGUMENT,
     {"advantages", "[2,3]", "[3]"}},
    {"advantages of one row",
     false,
     advantages_are_one_row,
     RFT_INVALID_ARGUMENT,
     {"advantages", "[2,3]", "[1,3]"}},
    {"advantages of five sequences",
     true,
     advantages_of_five_sequences,
     RFT_INVALID_ARGUMENT,
     {"advantages", "[6]", "[5]"}},
    {"logprob without dimension",
     false,
     logprob_without_dimension,
     RFT_INVALID_ARGUMENT,
     {"logprob", "0", NULL}},
    {"logprob of three dimensions",
     false,
     logprob_of_three_dimensions,
     RFT_INVALID_ARGUMENT,
     {"logprob", "3", NULL}},
    {"old_logprob of three dimensions",
     false,
     old_of_three_dimensions,
     RFT_INVALID_ARGUMENT,
     {"old_logprob", "3", NULL}},
    {"logprob of negative size",
     false,
     logprob_of_negative_size,
     RFT_INVALID_ARGUMENT,
     {"logprob", "-3", NULL}},
    {"shapes whose product overflows",
     false,
     shapes_whose_product_overflows,
     RFT_INVALID_ARGUMENT,
     {"logprob", "8589934592", NULL}},
    {"logprob int32", false, logprob_is_int32, RFT_INVALID_ARGUMENT, {"logprob", "float32", NULL}},
    {"old_logprob float8", false, old_is_float8, RFT_INVALID_ARGUMENT, {"old_logprob", "8", NULL}},
    {"proximal_logprob bool",
     false,
     proximal_is_bool,
     RFT_INVALID_ARGUMENT,
     {"proximal_logprob", "float32", NULL}},
    {"advantages with lanes",
     false,
     advantages_have_lanes,
     RFT_INVALID_ARGUMENT,
     {"advantages", "lanes", NULL}},
    {"advantages int64",
     false,
     advantages_are_int64,
     RFT_INVALID_ARGUMENT,
     {"advantages", "float32", NULL}},
    {"mask complex", false, mask_is_complex, RFT_INVALID_ARGUMENT, {"mask", "5", NULL}},
    {"mask uint16", false, mask_is_uint16, RFT_INVALID_ARGUMENT, {"mask", "16", NULL}},
    {"mask of unknown code",
     false,
     mask_of_unknown_code,
     RFT_INVALID_ARGUMENT,
     {"mask", "99", NULL}},
    {"cu_seqlens float32",
     true,
     offsets_are_float32,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "int32", NULL}},
    {"cu_seqlens int8",
     true,
     offsets_are_int8,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "int32", NULL}},
    {"logprob on CUDA", false, logprob_on_cuda, RFT_INVALID_ARGUMENT, {"logprob", "device", "2"}},
    {"mask on ROCm", false, mask_on_rocm, RFT_INVALID_ARGUMENT, {"mask", "device", "10"}},
    {"cu_seqlens on CUDA",
     true,
     offsets_on_cuda,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "device", "2"}},
    {"logprob NULL", false, logprob_is_null, RFT_INVALID_ARGUMENT, {"logprob", "NULL", NULL}},
    {"old_logprob NULL", false, old_is_null, RFT_INVALID_ARGUMENT, {"old_logprob", "NULL", NULL}},
    {"advantages NULL",
     false,
     advantages_are_null,
     RFT_INVALID_ARGUMENT,
     {"advantages", "NULL", NULL}},
    {"mask NULL", false, mask_is_null, RFT_INVALID_ARGUMENT, {"mask", "NULL", NULL}},
    {"old_logprob without data",
     false,
     old_without_data,
     RFT_INVALID_ARGUMENT,
     {"old_logprob", "NULL", NULL}},
    {"0.5 in a float mask", false, half_in_the_mask, RFT_OUT_OF_RANGE, {"mask", "index5", "0.5"}},
    {"2 in a float mask", false, two_in_the_mask, RFT_OUT_OF_RANGE, {"mask", "index0", "2"}},
    {"NaN in a float mask", false, nan_in_the_mask, RFT_OUT_OF_RANGE, {"mask", "index1", "nan"}},
    {"NaN in logprob", false, nan_in_logprob, RFT_OUT_OF_RANGE, {"logprob", "index5", "nan"}},
    {"-infinity in old_logprob",
     false,
     infinity_in_old,
     RFT_OUT_OF_RANGE,
     {"old_logprob", "index4", "-inf"}},
    {"infinity in proximal_logprob",
     false,
     infinity_in_proximal,
     RFT_OUT_OF_RANGE,
     {"proximal_logprob", "index3", "inf"}},
    {"NaN in advantages",
     false,
     nan_in_advantages,
     RFT_OUT_OF_RANGE,
     {"advantages", "index2", "nan"}},
    {"NaN in a sequence's advantage",
     true,
     nan_in_a_sequence_advantage,
     RFT_OUT_OF_RANGE,
     {"advantages", "index2", "nan"}},
    {"cu_seqlens starting at 1",
     true,
     offsets_start_at_one,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "0", "1"}},
    {"cu_seqlens starting below 0",
     true,
     offsets_start_below_zero,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "0", "-1"}},
    {"cu_seqlens falling", true, offsets_fall, RFT_INVALID_ARGUMENT, {"cu_seqlens", "index2", "3"}},
    {"cu_seqlens ending early",
     true,
     offsets_end_early,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "6", "5"}},
    {"cu_seqlens ending late",
     true,
     offsets_end_late,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "6", "7"}},
    {"cu_seqlens with a huge value",
     true,
     offsets_are_huge,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "9007199254740993", NULL}},
    {"cu_seqlens empty",
     true,
     offsets_are_empty,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "[0]", NULL}},
    {"cu_seqlens of two dimensions",
     true,
     offsets_have_two_dimensions,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "[1,3]", NULL}},
    {"cu_seqlens with a padded batch",
     false,
     offsets_of_a_padded_batch,
     RFT_INVALID_ARGUMENT,
     {"cu_seqlens", "2", NULL}},
    {"a batch of size 0",
     false,
     batch_of_size_zero,
     RFT_INVALID_ARGUMENT,
     {"rft_batch", "struct_size", "0"}},
    {"a batch without its last field",
     false,
     batch_without_its_last_field,
     RFT_INVALID_ARGUMENT,
     {"rft_batch", "struct_size", "56"}},
};

const int bad_input_count = sizeof bad_inputs / sizeof bad_inputs[0];
