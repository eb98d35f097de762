// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The kernels that select and evaluate at once: see m2po_kernels for what they do.

#ifndef M2PO_KERNEL_STEP_H
#define M2PO_KERNEL_STEP_H

#include "kernel.h"

// A name for each instruction set that the files of kernels are compiled for.
#define M2PO_JOINED(left, right) left##right
#define M2PO_JOIN(left, right) M2PO_JOINED(left, right)
#define M2PO_OF_TARGET(name) M2PO_JOIN(name, M2PO_TARGET)

#define m2po_step M2PO_OF_TARGET(m2po_step_)
#define m2po_sift M2PO_OF_TARGET(m2po_sift_)
#define m2po_keep_all M2PO_OF_TARGET(m2po_keep_all_)

void m2po_step(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
               bool all, const m2po_slopes *slopes, uint8_t *keep, m2po_sighting *sighting,
               m2po_valuation *valuation);

void m2po_sift(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
               const m2po_slopes *slopes, uint8_t *keep, m2po_glance *glance,
               m2po_valuation *valuation);

void m2po_keep_all(const m2po_block *block, const m2po_formula *formula, const m2po_slopes *slopes,
                   uint8_t *keep, m2po_glance *glance, m2po_valuation *valuation);

#endif // M2PO_KERNEL_STEP_H
