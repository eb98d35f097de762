// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The vectors of the instruction set that a kernel is compiled for, and what C's vector arithmetic
// (+ - * & | <<, element by element) has no operator for.

#ifndef M2PO_VECTOR_H
#define M2PO_VECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512DQ__)
#include <immintrin.h>
#define VECTOR_FLOATS 16
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define VECTOR_FLOATS 8
#elif defined(__SSE2__)
#include <emmintrin.h>
#define VECTOR_FLOATS 4
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#define VECTOR_FLOATS 4
#else
#error "no vectors known for this processor: expected x86-64 or AArch64"
#endif

enum { VECTOR_BYTES = 4 * VECTOR_FLOATS };

/// Loops take this many tokens at a time.
enum { LANES = 16, VECTORS = LANES / VECTOR_FLOATS };

enum { VECTOR_DOUBLES = VECTOR_FLOATS / 2 };

#define EACH_VECTOR for (int v = 0; v < VECTORS; ++v)

/// The flags of so many tokens are packed at a time.
#if VECTOR_FLOATS == 8
enum { PACK = 32 };
#else
enum { PACK = 16 };
#endif
enum { PACK_VECTORS = PACK / VECTOR_FLOATS };

#define EACH_PACKED for (int v = 0; v < PACK_VECTORS; ++v)

typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef double doubles __attribute__((vector_size(VECTOR_BYTES))); // half as many
typedef int32_t words __attribute__((vector_size(VECTOR_BYTES)));
typedef uint8_t bytes __attribute__((vector_size(VECTOR_BYTES)));

static inline floats load(const float *address)
{
  floats values;
  memcpy(&values, address, sizeof values);
  return values;
}

static inline bytes load_bytes(const uint8_t *address)
{
  bytes values;
  memcpy(&values, address, sizeof values);
  return values;
}

static inline void store(float *address, floats values)
{
  memcpy(address, &values, sizeof values);
}

static inline floats every(float value)
{
  return (floats){0} + value;
}

// --------------------------------------------------------------------- what holds, and what
// doesn't

#if VECTOR_FLOATS == 16

/// Whether something holds, for each element.
typedef __mmask16 flags;

static inline flags above(floats left, floats right)
{
  return _mm512_cmp_ps_mask((__m512)left, (__m512)right, _CMP_GT_OQ);
}

static inline flags up_to(floats left, floats right)
{
  return _mm512_cmp_ps_mask((__m512)left, (__m512)right, _CMP_LE_OQ);
}

static inline flags nonzero(floats values)
{
  return _mm512_cmp_ps_mask((__m512)values, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}

/// The values where `where` holds, 0 elsewhere.
static inline floats masked(flags where, floats values)
{
  return (floats)_mm512_maskz_mov_ps(where, (__m512)values);
}

/// The values times 1 where `where` holds, times 0 elsewhere.
static inline floats times_flag(floats values, flags where)
{
  const floats zero = {0};
  const flags elsewhere = (flags)~where;
  return (floats)_mm512_mask_mul_ps((__m512)values, elsewhere, (__m512)values, (__m512)zero);
}

/// How many flags were set.
typedef int64_t flag_count;

static inline void count_flags(flag_count *all, flags where)
{
  *all += __builtin_popcount(where);
}

static inline int64_t counted(flag_count all)
{
  return all;
}

#else

typedef words flags; // -1 where it holds, 0 elsewhere

static inline flags above(floats left, floats right)
{
  return left > right;
}

static inline flags up_to(floats left, floats right)
{
  return left <= right;
}

static inline flags nonzero(floats values)
{
  return values != 0;
}

static inline floats masked(flags where, floats values)
{
  return (floats)(where & (words)values);
}

static inline floats times_flag(floats values, flags where)
{
  return values * masked(where, every(1.0F));
}

typedef words flag_count; // minus how many, in each element

static inline void count_flags(flag_count *all, flags where)
{
  *all += where;
}

static inline int64_t counted(flag_count all)
{
  int32_t element[VECTOR_FLOATS];
  memcpy(element, &all, sizeof element);
  int64_t sum = 0;
  for (int i = 0; i < VECTOR_FLOATS; ++i) {
    sum -= element[i];
  }
  return sum;
}

#endif

static inline flags both(flags left, flags right)
{
  return (flags)(left & right);
}

// By an instruction of its own where there is one: a compiler that sees through it may turn the
// comparison that made a flag around, for several instructions in place of one.

#if VECTOR_FLOATS == 8

static inline flags but_not(flags left, flags right)
{
  return (flags)_mm256_andnot_si256((__m256i)right, (__m256i)left);
}

/// The values where `where` doesn't hold, 0 elsewhere.
static inline floats unless(flags where, floats values)
{
  return (floats)_mm256_andnot_ps((__m256)where, (__m256)values);
}

#else

static inline flags but_not(flags left, flags right)
{
  return (flags)(left & ~right);
}

static inline floats unless(flags where, floats values)
{
  return masked((flags)~where, values);
}

#endif

#if VECTOR_FLOATS == 8

/// Holds where both numbers are above 0 or both are below it.
static inline flags along(floats left, floats right)
{
  // The signs of numbers are those of their bits, but for -0, to which adding 0 gives 0.
  return (words)_mm256_sign_epi32((__m256i)left, (__m256i)(right + 0.0F)) > 0;
}

#else

static inline flags along(floats left, floats right)
{
  const floats pushed = (floats)((words)left ^ ((words)right & INT32_MIN));
  return both(above(pushed, (floats){0}), nonzero(right));
}

#endif

// -------------------------------------------------------------------------------------- the rest

#ifdef __SSE2__

/// Orders what was stored past the caches before what is stored later.
static inline void order_stores(void)
{
  _mm_sfence();
}

#else

static inline void order_stores(void)
{
}

#endif

#if defined(__AVX512DQ__)

/// `address` is aligned to the vector.
static inline void store_past_caches(float *address, floats values)
{
  _mm512_stream_ps(address, (__m512)values);
}

/// Holds where a byte is not 0.
static inline flags nonzero_bytes(const uint8_t *values)
{
  const __m128i all = _mm_loadu_si128((const __m128i *)values);
  return _mm_test_epi8_mask(all, all);
}

/// Is one of them -1?
static inline bool any(words where)
{
  return _mm512_movepi32_mask((__m512i)where) != 0;
}

/// The larger ones, as unsigned numbers: so the bits of a NaN are larger than any.
static inline words larger(words left, words right)
{
  return (words)_mm512_max_epu32((__m512i)left, (__m512i)right);
}

static inline words smaller(words left, words right)
{
  return (words)_mm512_min_epu32((__m512i)left, (__m512i)right);
}

/// a b + c, rounded once.
static inline floats multiply_add(floats a, floats b, floats c)
{
  return (floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

static inline floats smallest_of(floats left, floats right)
{
  return (floats)_mm512_min_ps((__m512)left, (__m512)right);
}

static inline floats largest_of(floats left, floats right)
{
  return (floats)_mm512_max_ps((__m512)left, (__m512)right);
}

/// One bit an element, the first lowest.
static inline uint32_t bits_of(const flags where[PACK_VECTORS])
{
  return where[0];
}

/// One byte an element: 1 where the flag is set, else 0.
static inline void store_flags(uint8_t *address, const flags where[PACK_VECTORS])
{
  _mm_storeu_si128((__m128i *)address, _mm_maskz_set1_epi8(where[0], 1));
}

static inline doubles widen_low(floats values)
{
  return (doubles)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)values));
}

/// Of half as many numbers as there are in a vector.
static inline doubles widen(const float *address)
{
  return (doubles)_mm512_cvtps_pd(_mm256_loadu_ps(address));
}

static inline doubles widen_high(floats values)
{
  return (doubles)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)values, 1));
}

#elif defined(__AVX2__) && defined(__FMA__)

static inline void store_past_caches(float *address, floats values)
{
  _mm256_stream_ps(address, (__m256)values);
}

static inline flags nonzero_bytes(const uint8_t *values)
{
  return (words)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)values)) > 0;
}

static inline bool any(words where)
{
  return _mm256_movemask_ps((__m256)where) != 0;
}

static inline words larger(words left, words right)
{
  return (words)_mm256_max_epu32((__m256i)left, (__m256i)right);
}

static inline words smaller(words left, words right)
{
  return (words)_mm256_min_epu32((__m256i)left, (__m256i)right);
}

static inline floats multiply_add(floats a, floats b, floats c)
{
  return (floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}

static inline floats smallest_of(floats left, floats right)
{
  return (floats)_mm256_min_ps((__m256)left, (__m256)right);
}

static inline floats largest_of(floats left, floats right)
{
  return (floats)_mm256_max_ps((__m256)left, (__m256)right);
}

/// A byte for each flag.
static inline __m256i packed(const flags where[PACK_VECTORS])
{
  const __m256i low = _mm256_packs_epi32((__m256i)where[0], (__m256i)where[1]);
  const __m256i high = _mm256_packs_epi32((__m256i)where[2], (__m256i)where[3]);
  // Packing works within each half: put the eighths back in order.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order);
}

static inline uint32_t bits_of(const flags where[PACK_VECTORS])
{
  return (uint32_t)_mm256_movemask_epi8(packed(where));
}

static inline void store_flags(uint8_t *address, const flags where[PACK_VECTORS])
{
  const __m256i ones = _mm256_and_si256(packed(where), _mm256_set1_epi8(1));
  _mm256_storeu_si256((__m256i *)address, ones);
}

static inline doubles widen_low(floats values)
{
  return (doubles)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)values));
}

static inline doubles widen(const float *address)
{
  return (doubles)_mm256_cvtps_pd(_mm_loadu_ps(address));
}

static inline doubles widen_high(floats values)
{
  return (doubles)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)values, 1));
}

#elif defined(__SSE2__)

static inline void store_past_caches(float *address, floats values)
{
  _mm_stream_ps(address, (__m128)values);
}

static inline flags nonzero_bytes(const uint8_t *values)
{
  int32_t four;
  memcpy(&four, values, sizeof four);
  const __m128i zero = _mm_setzero_si128();
  const __m128i narrow = _mm_unpacklo_epi8(_mm_cvtsi32_si128(four), zero);
  return (words)_mm_unpacklo_epi16(narrow, zero) > 0;
}

static inline bool any(words where)
{
  return _mm_movemask_ps((__m128)where) != 0;
}

static inline words larger(words left, words right)
{
  const words is = (left ^ INT32_MIN) > (right ^ INT32_MIN);
  return (left & is) | (right & ~is);
}

static inline words smaller(words left, words right)
{
  const words is = (left ^ INT32_MIN) < (right ^ INT32_MIN);
  return (left & is) | (right & ~is);
}

static inline floats smallest_of(floats left, floats right)
{
  return (floats)_mm_min_ps((__m128)left, (__m128)right);
}

static inline floats largest_of(floats left, floats right)
{
  return (floats)_mm_max_ps((__m128)left, (__m128)right);
}

static inline __m128i packed(const flags where[PACK_VECTORS])
{
  const __m128i low = _mm_packs_epi32((__m128i)where[0], (__m128i)where[1]);
  const __m128i high = _mm_packs_epi32((__m128i)where[2], (__m128i)where[3]);
  return _mm_packs_epi16(low, high);
}

static inline uint32_t bits_of(const flags where[PACK_VECTORS])
{
  return (uint32_t)_mm_movemask_epi8(packed(where));
}

static inline void store_flags(uint8_t *address, const flags where[PACK_VECTORS])
{
  _mm_storeu_si128((__m128i *)address, _mm_and_si128(packed(where), _mm_set1_epi8(1)));
}

static inline doubles widen_low(floats values)
{
  return (doubles)_mm_cvtps_pd((__m128)values);
}

static inline doubles widen(const float *address)
{
  return (doubles)_mm_cvtps_pd(_mm_castpd_ps(_mm_load_sd((const double *)(const void *)address)));
}

static inline doubles widen_high(floats values)
{
  return (doubles)_mm_cvtps_pd(_mm_movehl_ps((__m128)values, (__m128)values));
}

/// Rounded twice, to double and to float: of what the kernels give it, that is the same number, as
/// the test of every float32 shows.
static inline floats multiply_add(floats a, floats b, floats c)
{
  const doubles low = widen_low(a) * widen_low(b) + widen_low(c);
  const doubles high = widen_high(a) * widen_high(b) + widen_high(c);
  return (floats)_mm_movelh_ps(_mm_cvtpd_ps((__m128d)low), _mm_cvtpd_ps((__m128d)high));
}

#else

static inline void store_past_caches(float *address, floats values)
{
  store(address, values); // no such instruction is known to pay here
}

static inline flags nonzero_bytes(const uint8_t *values)
{
  uint32_t four;
  memcpy(&four, values, sizeof four);
  const uint16x8_t narrow = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
  return (words)vmovl_u16(vget_low_u16(narrow)) != 0;
}

static inline bool any(words where)
{
  return vmaxvq_u32((uint32x4_t)where) != 0;
}

static inline words larger(words left, words right)
{
  return (words)vmaxq_u32((uint32x4_t)left, (uint32x4_t)right);
}

static inline words smaller(words left, words right)
{
  return (words)vminq_u32((uint32x4_t)left, (uint32x4_t)right);
}

static inline floats multiply_add(floats a, floats b, floats c)
{
  return (floats)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

static inline floats smallest_of(floats left, floats right)
{
  return (floats)vminq_f32((float32x4_t)left, (float32x4_t)right);
}

static inline floats largest_of(floats left, floats right)
{
  return (floats)vmaxq_f32((float32x4_t)left, (float32x4_t)right);
}

static inline uint32_t bits_of(const flags where[PACK_VECTORS])
{
  static const int32_t places[VECTOR_FLOATS] = {0, 1, 2, 3};
  uint32_t bits = 0;
  EACH_PACKED
  {
    const uint32x4_t signs = vshrq_n_u32((uint32x4_t)where[v], 31);
    bits |= vaddvq_u32(vshlq_u32(signs, vld1q_s32(places))) << (v * VECTOR_FLOATS);
  }
  return bits;
}

static inline void store_flags(uint8_t *address, const flags where[PACK_VECTORS])
{
  for (int v = 0; v < PACK_VECTORS; v += 2) {
    const uint16x4_t low = vmovn_u32((uint32x4_t)where[v]);
    const uint16x4_t high = vmovn_u32((uint32x4_t)where[v + 1]);
    const uint8x8_t ordered = vmovn_u16(vcombine_u16(low, high));
    vst1_u8(address + (int64_t)v * VECTOR_FLOATS, vand_u8(ordered, vdup_n_u8(1)));
  }
}

static inline doubles widen_low(floats values)
{
  return (doubles)vcvt_f64_f32(vget_low_f32((float32x4_t)values));
}

static inline doubles widen(const float *address)
{
  return (doubles)vcvt_f64_f32(vld1_f32(address));
}

static inline doubles widen_high(floats values)
{
  return (doubles)vcvt_high_f64_f32((float32x4_t)values);
}

#endif

#endif // M2PO_VECTOR_H
