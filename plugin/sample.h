// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A guess where Algorithm 1 will cut, from some of the tokens. A wrong guess costs time and nothing
// else.

#ifndef M2PO_SAMPLE_H
#define M2PO_SAMPLE_H

#include "algorithm1.h"
#include "instance.h"
#include "stage.h"

/// What a sample tells of where Algorithm 1 will cut.
typedef struct m2po_guess {
  bool keeps_all;       ///< nothing will have to go
  m2po_bracket bracket; ///< the squares between which the cut probably is, if there is one. The low
                        ///< end is at least m2po_candidate_bound(rule), so that what is below never
                        ///< goes.
} m2po_guess;

m2po_guess m2po_guess_cut(const rft_instance *instance, const m2po_rule *rule,
                          const m2po_source *source);

#endif // M2PO_SAMPLE_H
