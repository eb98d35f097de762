// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Supervised training of the base policy: right answers, cross-entropy, until it is good enough for
// its samples to earn some reward.

#ifndef TRAIN_WARM_START_H
#define TRAIN_WARM_START_H

#include "config.h"
#include "held_out.h"
#include "progress.h"
#include "teacher.h"

#include <signal.h>

// Trains `policy` to config->warm_start_target on `held_out`. RFT_CANCELLED once *stop is set.
int32_t warm_start(const train_config *config, const train_task *task, train_held_out *held_out,
                   const rft_parallel *parallel, train_progress *progress,
                   const volatile sig_atomic_t *stop, train_policy *policy, rft_error *error);

#endif // TRAIN_WARM_START_H
