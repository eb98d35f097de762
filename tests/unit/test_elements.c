// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Every 16-bit float read, and every rounding written. With a log-ratio of 0 and a mean over one
// token, the gradient is minus the advantage: the plugin's conversions lie open.

#include "compare.h"
#include "plugin_fixture.h"
#include "rng.h"

#include <criterion/criterion.h>

TestSuite(elements, .fini = plugin_fixture_end);

enum { PATTERNS = 65536 };

// Evaluates these advantages; positions with a mask of 0 may hold anything.
static int32_t gradient_of(const rft_tensor *advantages, const rft_tensor *mask, rft_dtype dtype,
                           evaluation *result, rft_error *error)
{
  const int64_t count = tensor_count(advantages);
  const rft_tensor *const zeros = tensor_1d(float32, count, NULL);
  const rft_batch *const batch = batch_new(zeros, zeros, NULL, advantages, mask, NULL);
  const rft_reduction one = {.struct_size = sizeof one, .valid_tokens = 1};
  return m2po_evaluate(m2po_create("{}"), batch, NULL, &one, dtype, result, error);
}

static void check_reads(rft_dtype dtype)
{
  rft_tensor *const advantages = tensor_1d(dtype, PATTERNS, NULL);
  rft_tensor *const mask = tensor_1d(bool8, PATTERNS, NULL);
  uint16_t *const bits = advantages->data;
  for (int64_t i = 0; i < PATTERNS; ++i) {
    bits[i] = (uint16_t)i;
    tensor_set(mask, i, isfinite(tensor_get(advantages, i)));
  }
  evaluation got;
  rft_error error = error_new();
  const int32_t code = gradient_of(advantages, mask, float64, &got, &error);
  cr_assert_eq(code, RFT_OK, "%s", error.message);
  for (int64_t i = 0; i < PATTERNS; ++i) {
    const double value = tensor_get(mask, i) != 0 ? tensor_get(advantages, i) : 0.0;
    cr_assert_eq(tensor_get(got.gradient, i), -value, "%s: 0x%04X is read as %a, not %a",
                 dtype_name(dtype), (unsigned)i, -tensor_get(got.gradient, i), value);
  }
}

Test(elements, every_float16_is_read)
{
  check_reads(float16);
}

Test(elements, every_bfloat16_is_read)
{
  check_reads(bfloat16);
}

// Values between two neighbours of a dtype: near one, halfway, and beside halfway.
static double between_neighbours(rng *r, rft_dtype dtype)
{
  const double range = dtype.code == RFT_DTYPE_BFLOAT || dtype.bits == 32 ? 120 : 14;
  const double low = dtype_round(dtype, exp2(rng_between(r, -range - 12, range)));
  double high = low;
  double step = fabs(low) * 0x1p-30 + 0x1p-160;
  while (high == low) {
    high = dtype_round(dtype, low + step);
    step *= 2;
  }
  const double half = low + (high - low) / 2;
  const double choices[] = {low, half, nextafter(half, low), nextafter(half, high),
                            low + (high - low) * rng_uniform(r)};
  const double value = choices[rng_below(r, 5)];
  return rng_below(r, 2) == 0 ? value : -value;
}

static void check_writes(rft_dtype dtype)
{
  enum { COUNT = 20000 };
  rng r = {13};
  rft_tensor *const advantages = tensor_1d(float64, COUNT, NULL);
  rft_tensor *const mask = tensor_1d(bool8, COUNT, NULL);
  for (int64_t i = 0; i < COUNT; ++i) {
    tensor_set(mask, i, 1);
    tensor_set(advantages, i, between_neighbours(&r, dtype));
  }
  evaluation got;
  rft_error error = error_new();
  const int32_t code = gradient_of(advantages, mask, dtype, &got, &error);
  cr_assert_eq(code, RFT_OK, "%s", error.message);
  for (int64_t i = 0; i < COUNT; ++i) {
    const double value = 0.0 - tensor_get(advantages, i); // 0.0 where the advantage is
    const double expected = dtype_round(dtype, value);
    cr_assert(same_bits(tensor_get(got.gradient, i), expected), "%s: %a is written as %a, not %a",
              dtype_name(dtype), value, tensor_get(got.gradient, i), expected);
  }
}

Test(elements, float16_is_rounded_to_nearest_even)
{
  check_writes(float16);
}

Test(elements, bfloat16_is_rounded_to_nearest_even)
{
  check_writes(bfloat16);
}

Test(elements, float32_is_rounded_to_nearest_even)
{
  check_writes(float32);
}

// The largest value that still rounds down, and the least that rounds to infinity.
static void check_end(rft_dtype dtype, double largest, double overflow, rft_dtype given)
{
  const double one = 1.0;
  const double fits =
      given.bits == 64 ? nextafter(overflow, 0) : (double)nextafterf((float)overflow, 0);
  evaluation got;
  rft_error error = error_new();
  cr_expect_eq(
      gradient_of(tensor_1d(given, 1, &fits), tensor_1d(bool8, 1, &one), dtype, &got, &error),
      RFT_OK, "%s: %s", dtype_name(dtype), error.message);
  cr_expect_eq(tensor_get(got.gradient, 0), -largest, "%s", dtype_name(dtype));
  cr_expect_eq(
      gradient_of(tensor_1d(given, 1, &overflow), tensor_1d(bool8, 1, &one), dtype, &got, &error),
      RFT_OUT_OF_RANGE, "%s", dtype_name(dtype));
  cr_expect(strstr(error.message, "index 0") != NULL, "%s", error.message);
}

Test(elements, what_rounds_to_infinity_is_an_error)
{
  check_end(float16, 65504.0, 65520.0, float64);
  check_end(float16, 65504.0, 65520.0, float32);
  check_end(bfloat16, 0x1.FEp127, 0x1.FFp127, float64);
  check_end(bfloat16, 0x1.FEp127, 0x1.FFp127, float32);
  check_end(float32, 0x1.FFFFFEp127, 0x1.FFFFFFp127, float64);
}
