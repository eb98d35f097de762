// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A value that makes a batch unusable, found while reading it.

#ifndef M2PO_FAULT_H
#define M2PO_FAULT_H

#include "rft/plugin.h"

typedef enum m2po_fault_kind {
  M2PO_NO_FAULT,
  M2PO_NOT_FINITE,       ///< `tensor` holds NaN or infinity at a valid position
  M2PO_NOT_A_MASK,       ///< a float mask holds something other than 0 and 1
  M2PO_SQUARE_OVERFLOW,  ///< the squared log-ratio is infinite
  M2PO_RATIO_OVERFLOW,   ///< the ratio overflows the type that the loss is computed in
  M2PO_LOSS_OVERFLOW,    ///< the token's loss is infinite
  M2PO_GRADIENT_OVERFLOW ///< the gradient overflows its dtype
} m2po_fault_kind;

typedef struct m2po_fault {
  m2po_fault_kind kind;
  const char *tensor; ///< that the value was read from
  int64_t index;      ///< row-major position in the batch
  int64_t columns;    ///< of the batch: row and column follow
  double value;       ///< what was found
} m2po_fault;

/// RFT_OK without a fault, else RFT_OUT_OF_RANGE and a message naming tensor, index and value.
int32_t m2po_fault_report(const m2po_fault *fault, rft_error *error);

#endif // M2PO_FAULT_H
