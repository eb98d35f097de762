// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The instruction sets that kernels are compiled for, and the choice among them.

#ifndef M2PO_TARGET_H
#define M2PO_TARGET_H

#include "kernel.h"
#include "rft/plugin.h"

extern const m2po_kernels m2po_kernels_baseline; ///< what every processor of the architecture has
#ifdef __x86_64__
extern const m2po_kernels m2po_kernels_avx2;
extern const m2po_kernels m2po_kernels_avx512;
#endif

/// The kernels that this processor can run, best first, closed by NULL. [thread-safe]
enum { M2PO_TARGETS = 3 };
void m2po_targets(const m2po_kernels *found[M2PO_TARGETS + 1]);

/// The best of them, or the one that the environment variable M2PO_TARGET names. Its name is an
/// error, RFT_INVALID_ARGUMENT, where it is none of them. [thread-safe]
int32_t m2po_choose_target(const m2po_kernels **kernels, rft_error *error);

#endif // M2PO_TARGET_H
