// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// How a check says what it has found. Nothing needs freeing: the process ends.

#ifndef RFT_CHECK_VERDICT_H
#define RFT_CHECK_VERDICT_H

#include "support/error.h"

#include <stdbool.h>

enum { CHECK_MESSAGE_SIZE = 1024 };

/// Ends the process with the verdict. [thread-safe]
__attribute__((noreturn)) void check_pass(void);
__attribute__((noreturn)) void check_fail(const char *format, ...) RFT_PRINTF(1, 2);
__attribute__((noreturn)) void check_skip(const char *format, ...) RFT_PRINTF(1, 2);

#define EXPECT(condition, ...)                                                                     \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      check_fail(__VA_ARGS__);                                                                     \
    }                                                                                              \
  } while (0)

/// What the next messages are about: put before them. Not copied.
void check_set_topic(const char *topic);

/// Where verdicts go: a descriptor, or -1 for standard output.
void check_set_channel(int descriptor);

/// In a process that a check has forked: its verdict is its exit status, 0 to pass.
void check_become_helper(void);

#endif // RFT_CHECK_VERDICT_H
