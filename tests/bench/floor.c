// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The least that loss, gradient and mask can cost: each input is read once and each output written
// once, 18 bytes a position, with next to no arithmetic in between and past the caches.

#include "rft/plugin.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

// Positions: a cache line of masks, and what is worth a thread's while.
enum { LINE = 64, LEAST_RANGE = 16384, MOST_RANGES = 64 };

typedef struct floor_job {
  const float *logprob;
  const float *old_logprob;
  const float *advantages;
  const uint8_t *mask;
  float *gradient;
  uint8_t *keep;
  int64_t count;
  int64_t range; ///< positions a body
} floor_job;

#ifdef __x86_64__

__attribute__((target("avx2"))) static void pass_avx2(const floor_job *job, int64_t i, int64_t end)
{
  enum { WIDTH = 8, BYTES = 32 };
  for (; i < end; i += BYTES) {
    for (int64_t k = i; k < i + BYTES; k += WIDTH) {
      const __m256 d =
          _mm256_sub_ps(_mm256_load_ps(job->logprob + k), _mm256_load_ps(job->old_logprob + k));
      _mm256_stream_ps(job->gradient + k, _mm256_mul_ps(d, _mm256_load_ps(job->advantages + k)));
    }
    _mm256_stream_si256((__m256i *)(void *)(job->keep + i),
                        _mm256_load_si256((const __m256i *)(const void *)(job->mask + i)));
  }
  _mm_sfence();
}

static void pass_sse2(const floor_job *job, int64_t i, int64_t end)
{
  enum { WIDTH = 4, BYTES = 16 };
  for (; i < end; i += BYTES) {
    for (int64_t k = i; k < i + BYTES; k += WIDTH) {
      const __m128 d = _mm_sub_ps(_mm_load_ps(job->logprob + k), _mm_load_ps(job->old_logprob + k));
      _mm_stream_ps(job->gradient + k, _mm_mul_ps(d, _mm_load_ps(job->advantages + k)));
    }
    _mm_stream_si128((__m128i *)(void *)(job->keep + i),
                     _mm_load_si128((const __m128i *)(const void *)(job->mask + i)));
  }
  _mm_sfence();
}

static void pass(const floor_job *job, int64_t start, int64_t end)
{
  if (__builtin_cpu_supports("avx2")) {
    pass_avx2(job, start, end);
  } else {
    pass_sse2(job, start, end);
  }
}

#else

static void pass(const floor_job *job, int64_t start, int64_t end)
{
  for (int64_t i = start; i < end; ++i) {
    job->gradient[i] = (job->logprob[i] - job->old_logprob[i]) * job->advantages[i];
    job->keep[i] = job->mask[i];
  }
}

#endif

static void pass_range(void *context, int64_t index)
{
  const floor_job *const job = context;
  const int64_t start = index * job->range;
  const int64_t end = start + job->range < job->count ? start + job->range : job->count;
  pass(job, start, end);
}

// NOLINTBEGIN(readability-non-const-parameter): they are written, through the job

/// With the threads of `host`, as a plugin has them. `count`: a multiple of 64; every array starts
/// at a cache line.
RFT_PLUGIN_EXPORT void bench_floor(const rft_host *host, const float *logprob,
                                   const float *old_logprob, const float *advantages,
                                   const uint8_t *mask, float *gradient, uint8_t *keep,
                                   int64_t count)
{
  const rft_parallel *const parallel = host->get_service(host, RFT_HOST_PARALLEL);
  const int64_t wanted = parallel == NULL ? 1 : 1 + count / LEAST_RANGE;
  const int64_t ranges = wanted < MOST_RANGES ? wanted : MOST_RANGES;
  floor_job job = {.logprob = logprob,
                   .old_logprob = old_logprob,
                   .advantages = advantages,
                   .mask = mask,
                   .gradient = gradient,
                   .keep = keep,
                   .count = count,
                   .range = ((count + ranges - 1) / ranges + LINE - 1) / LINE * LINE};
  const int64_t bodies = (count + job.range - 1) / job.range;
  if (parallel == NULL) {
    pass(&job, 0, count);
  } else {
    parallel->parallel_for(parallel, bodies, pass_range, &job);
  }
}

// NOLINTEND(readability-non-const-parameter)
