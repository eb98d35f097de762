// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What of a process a plugin has no business changing.

#ifndef RFT_CHECK_PROCESS_STATE_H
#define RFT_CHECK_PROCESS_STATE_H

#include <signal.h>
#include <stdint.h>
#include <sys/stat.h>

enum { STATE_SIGNALS = 65, STATE_TEXT_SIZE = 512, STATE_FILES = 256 };

typedef struct check_state {
  int threads;
  int files[STATE_FILES]; ///< 1 for a descriptor that is open
  struct sigaction actions[STATE_SIGNALS];
  sigset_t blocked;
  char locale[STATE_TEXT_SIZE];
  void *thread_locale;
  int rounding;
  int traps;
  uint32_t control; ///< flush-to-zero and its like, where the machine has them
  uint64_t environment;
  char directory[STATE_TEXT_SIZE];
  mode_t umask;
} check_state;

check_state check_state_now(void);

/// Each gives what has changed, or NULL.
const char *check_state_threads(const check_state *before, const check_state *after);
const char *check_state_files(const check_state *before, const check_state *after);
const char *check_state_signals(const check_state *before, const check_state *after);
const char *check_state_locale(const check_state *before, const check_state *after);
const char *check_state_floats(const check_state *before, const check_state *after);
const char *check_state_settings(const check_state *before, const check_state *after);

#endif // RFT_CHECK_PROCESS_STATE_H
