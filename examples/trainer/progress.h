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
  double started; // of the part that the bar shows
  double drawn;
} train_progress;

void progress_open(train_progress *self, bool quiet);

// Ends the bar.
void progress_close(train_progress *self);

// Starts a new bar.
void progress_begin(train_progress *self);

// `done` of `total`, a text beside it; `milestone`: worth a line where there is no bar.
void progress_show(train_progress *self, double done, double total, bool milestone,
                   const char *text);

// A message for a person; the signature is that of a registry's log.
void progress_message(void *progress, int32_t level, const char *message);

// Seconds of a clock that only goes forward.
double progress_clock(void);

#endif // TRAIN_PROGRESS_H
