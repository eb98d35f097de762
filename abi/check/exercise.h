// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// All that a trainer does with a loss, in short, with good and with bad arguments.

#ifndef RFT_CHECK_EXERCISE_H
#define RFT_CHECK_EXERCISE_H

#include "check.h"

/// Creates, evaluates, selects, provokes errors and destroys. Ends the check when a good call is
/// refused.
void check_exercise(const check_subject *subject);

#endif // RFT_CHECK_EXERCISE_H
