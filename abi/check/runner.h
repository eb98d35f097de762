// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Runs one check in a process of its own, with a time limit.

#ifndef RFT_CHECK_RUNNER_H
#define RFT_CHECK_RUNNER_H

#include "check.h"
#include "verdict.h"

typedef enum check_status { CHECK_NOT_RUN, CHECK_PASSED, CHECK_FAILED, CHECK_SKIPPED } check_status;

enum { CHECK_LINE_SIZE = 160 };

typedef struct check_result {
  check_status status;
  char message[CHECK_MESSAGE_SIZE]; ///< why it failed or was skipped
  bool printed;                     ///< something on standard output or error
  char line[CHECK_LINE_SIZE];       ///< the first line of it
  double seconds;
} check_result;

typedef struct check_runner {
  const char *path; ///< of the plugin, absolute
  uint64_t seed;
  int timeout_seconds;   ///< of one check
  check_result *results; ///< [check_count()]
} check_runner;

/// Runs the check at `index`, and before it, when they haven't been, those that it needs.
const check_result *check_runner_run(check_runner *runner, int index);

/// Runs one check in this process, which ends with the verdict on standard output.
__attribute__((noreturn)) void check_runner_run_here(const check_runner *runner, int index);

#endif // RFT_CHECK_RUNNER_H
