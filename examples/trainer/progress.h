// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a person sees on standard error: a bar on a terminal, plain lines otherwise, and messages.

#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H

#include "rft/plugin.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct train_progress {
  pthread_mutex_t mutex; // messages come from any thread
  bool quiet;            // only messages
  bool is_terminal;
  bool bar_shown;
  double started; // when the bar was at `first`
  int64_t first;
  double drawn;
} train_progress;

void progress_open(train_progress *self, bool quiet);

// Ends the bar.
void progress_close(train_progress *self);

// Starts a new bar at `first`, where a resumed run goes on.
void progress_begin(train_progress *self, int64_t first);

// A bar at `done` > first of `total` (0: not known, no bar), the seconds that are left, and a text;
// `milestone`: worth a line where there is no terminal.
void progress_show(train_progress *self, int64_t done, int64_t total, bool milestone,
                   const char *text);

// A message for a person; the signature is that of a registry's log.
void progress_message(void *progress, int32_t level, const char *message);

// Seconds of a clock that only goes forward.
double progress_clock(void);

#endif // TRAIN_PROGRESS_H
