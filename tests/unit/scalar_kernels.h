// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a kernel computes (plugin/kernel.h), one token after the other: the obvious version that
// those of every instruction set are tested against, bit by bit.

#ifndef TEST_SCALAR_KERNELS_H
#define TEST_SCALAR_KERNELS_H

#include "kernel.h"

void scalar_sight(const m2po_block *block, const m2po_bracket *bracket, bool all,
                  m2po_sighting *sighting);
double scalar_sum(const float values[M2PO_BLOCK]);
double scalar_take(float values[M2PO_BLOCK], float least, float *largest);
void scalar_evaluate(const m2po_block *block, const m2po_formula *formula, float *slope,
                     m2po_valuation *valuation);
void scalar_step(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
                 bool all, float *slope, uint8_t *keep, m2po_sighting *sighting,
                 m2po_valuation *valuation);
void scalar_sift(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
                 float *slope, uint8_t *keep, m2po_glance *glance, m2po_valuation *valuation);
void scalar_keep_all(const m2po_block *block, const m2po_formula *formula, float *slope,
                     uint8_t *keep, m2po_glance *glance, m2po_valuation *valuation);

#endif // TEST_SCALAR_KERNELS_H
