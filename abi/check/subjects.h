// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a check is run on, from the file to each config of each loss.

#ifndef RFT_CHECK_SUBJECTS_H
#define RFT_CHECK_SUBJECTS_H

#include "check.h"

/// Maps the file and finds its entry; ends the check with the loader's words when it can't.
rft_plugin_entry check_open(const char *path);

/// Opens and enters the plugin with check_host_bare, and gives its tables.
const rft_plugin *check_enter(check_subject *subject);

/// Does the loss select?
bool check_selects(const rft_policy_loss *loss);

/// Runs the check on all that its scope says, and ends the process with the verdict.
__attribute__((noreturn)) void check_run_on_all(const check *judged, const char *path,
                                                uint64_t seed);

#endif // RFT_CHECK_SUBJECTS_H
