// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // secure_getenv
#include "target.h"

#include "support/error.h"

#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>

// Asked of the processor itself: the compiler's __builtin_cpu_supports needs a constructor, which a
// plugin may not have (P15).

enum {
  SAVES_YMM = 0x6, // XCR0: what the system saves of the vector registers
  SAVES_ZMM = 0xE6
};
static const uint32_t avx512_needed = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;

__attribute__((target("xsave"))) static uint64_t saved_registers(void)
{
  return (uint64_t)_xgetbv(0);
}

void m2po_targets(const m2po_kernels *found[M2PO_TARGETS + 1])
{
  uint32_t eax;
  uint32_t ebx;
  uint32_t ecx;
  uint32_t edx;
  const bool asked = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0;
  const bool fuses = asked && (ecx & bit_FMA) != 0;
  const uint64_t saved = asked && (ecx & bit_OSXSAVE) != 0 ? saved_registers() : 0;
  const uint32_t has = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 ? ebx : 0;
  const bool avx2 = (saved & SAVES_YMM) == SAVES_YMM && (has & bit_AVX2) != 0 && fuses;
  // Code compiled for AVX-512 has AVX2's instructions, too.
  if (avx2 && (saved & SAVES_ZMM) == SAVES_ZMM && (has & avx512_needed) == avx512_needed) {
    *found++ = &m2po_kernels_avx512;
  }
  if (avx2) {
    *found++ = &m2po_kernels_avx2;
  }
  *found++ = &m2po_kernels_baseline;
  *found = NULL;
}

#else

void m2po_targets(const m2po_kernels *found[M2PO_TARGETS + 1])
{
  *found++ = &m2po_kernels_baseline;
  *found = NULL;
}

#endif

int32_t m2po_choose_target(const m2po_kernels **kernels, rft_error *error)
{
  const m2po_kernels *found[M2PO_TARGETS + 1];
  m2po_targets(found);
  *kernels = found[0];
  const char *const wanted = secure_getenv("M2PO_TARGET");
  if (wanted == NULL) {
    return RFT_OK;
  }
  for (int i = 0; found[i] != NULL; ++i) {
    if (strcmp(found[i]->name, wanted) == 0) {
      *kernels = found[i];
      return RFT_OK;
    }
  }
  return rft_fail(error, RFT_INVALID_ARGUMENT,
                  "M2PO_TARGET: expected an instruction set that this processor has, %s%s%s%s%s, "
                  "found \"%.100s\"",
                  found[0]->name, found[1] == NULL ? "" : ", ",
                  found[1] == NULL ? "" : found[1]->name,
                  found[1] == NULL || found[2] == NULL ? "" : ", ",
                  found[1] == NULL || found[2] == NULL ? "" : found[2]->name, wanted);
}
