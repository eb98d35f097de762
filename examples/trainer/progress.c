// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double redraw_seconds = 0.1;
enum { BAR_WIDTH = 10, DEFAULT_COLUMNS = 80 };

double progress_clock(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_open(train_progress *self, bool quiet)
{
  *self = (train_progress){.quiet = quiet, .is_terminal = isatty(STDERR_FILENO) == 1};
  pthread_mutex_init(&self->mutex, NULL);
  progress_begin(self, 0);
}

static void clear_bar(train_progress *self)
{
  if (self->bar_shown) {
    fprintf(stderr, "\r\033[K");
    self->bar_shown = false;
  }
}

void progress_close(train_progress *self)
{
  clear_bar(self);
  pthread_mutex_destroy(&self->mutex);
}

void progress_begin(train_progress *self, int64_t first)
{
  self->started = progress_clock();
  self->first = first;
  self->drawn = 0.0;
}

static int columns(void)
{
  struct winsize size;
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                         : DEFAULT_COLUMNS;
}

// One line, never wider than the terminal: a line that wraps can't be drawn over.
static void draw_line(train_progress *self, const char *line)
{
  fprintf(stderr, "\r\033[K%.*s", columns() - 1, line);
  (void)fflush(stderr);
  self->bar_shown = true;
}

static void draw_bar(train_progress *self, double share, double left, const char *text)
{
  char bar[BAR_WIDTH + 1];
  char line[512];
  for (int i = 0; i < BAR_WIDTH; ++i) {
    bar[i] = i < (int)(share * BAR_WIDTH) ? '#' : '.';
  }
  bar[BAR_WIDTH] = '\0';
  snprintf(line, sizeof line, "[%s] %.0f s, %s", bar, left, text);
  draw_line(self, line);
}

void progress_show(train_progress *self, int64_t done, int64_t total, bool milestone,
                   const char *text)
{
  if (self->quiet) {
    return;
  }
  pthread_mutex_lock(&self->mutex);
  const double now = progress_clock();
  if (!self->is_terminal && milestone) {
    fprintf(stderr, "%s\n", text);
  } else if (self->is_terminal && now - self->drawn >= redraw_seconds) {
    self->drawn = now;
    if (total == 0) {
      draw_line(self, text);
    } else {
      const double pace = (now - self->started) / (double)(done - self->first);
      draw_bar(self, (double)done / (double)total, pace * (double)(total - done), text);
    }
  }
  pthread_mutex_unlock(&self->mutex);
}

void progress_message(void *progress, int32_t level, const char *message)
{
  train_progress *const self = progress;
  static const char *const prefixes[] = {"", "", "warning: ", "error: "};
  if (level < RFT_LOG_INFO || (level == RFT_LOG_INFO && self->quiet)) {
    return;
  }
  pthread_mutex_lock(&self->mutex);
  clear_bar(self);
  fprintf(stderr, "rft-train: %s%s\n", level > RFT_LOG_ERROR ? "" : prefixes[level], message);
  pthread_mutex_unlock(&self->mutex);
}
