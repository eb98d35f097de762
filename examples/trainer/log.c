// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "log.h"

#include "support/error.h"
#include "support/json.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int32_t fail(const train_log *self, const char *what, rft_error *error)
{
  return rft_fail(error, RFT_UNAVAILABLE, "log %s: %s: %s", self->path, what, strerror(errno));
}

static int32_t keep_lines(train_log *self, int64_t keep, rft_error *error)
{
  int64_t lines = 0;
  while (lines < keep) {
    const int byte = fgetc(self->file);
    if (byte == EOF) {
      return rft_fail(error, RFT_DATA_LOSS,
                      "log %s: expected the %lld lines of the updates done, found %lld", self->path,
                      (long long)keep, (long long)lines);
    }
    lines += byte == '\n';
  }
  // A stream switches from reading to writing at a seek.
  const off_t end = ftello(self->file);
  return end >= 0 && fseeko(self->file, end, SEEK_SET) == 0 &&
                 ftruncate(fileno(self->file), end) == 0
             ? RFT_OK
             : fail(self, "cannot be cut", error);
}

int32_t log_open(train_log *self, const char *path, int64_t keep, rft_error *error)
{
  *self = (train_log){.path = path};
  if (path == NULL) {
    return RFT_OK;
  }
  const int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  self->file = descriptor < 0 ? NULL : fdopen(descriptor, "r+");
  if (self->file == NULL) {
    if (descriptor >= 0) {
      close(descriptor);
    }
    return fail(self, "cannot be opened", error);
  }
  const int32_t code = keep_lines(self, keep, error);
  if (code != RFT_OK) {
    log_close(self);
  }
  return code;
}

void log_close(train_log *self)
{
  if (self->file != NULL) {
    (void)fclose(self->file);
  }
  *self = (train_log){0};
}

static json_t *number(double value)
{
  return isfinite(value) ? json_real(value) : json_null();
}

static json_t *metrics_object(const log_entry *entry)
{
  json_t *const object = json_object();
  for (int64_t i = 0; i < entry->policy_loss->metric_count; ++i) {
    json_object_set_new(object, entry->policy_loss->metrics[i]->name, number(entry->metrics[i]));
  }
  return object;
}

static char *entry_text(const log_entry *entry)
{
  json_t *const object = json_object();
  json_object_set_new(object, "update", json_integer(entry->update));
  json_object_set_new(object, "loss", number(entry->loss));
  json_object_set_new(object, "staleness", json_integer(entry->staleness));
  json_object_set_new(object, "seconds", number(round(entry->seconds * 1e6) / 1e6));
  json_object_set_new(object, "reward", number(entry->reward));
  json_object_set_new(object, "gradient_norm", number(entry->gradient_norm));
  if (!isnan(entry->accuracy)) {
    json_object_set_new(object, "accuracy", number(entry->accuracy));
  }
  json_object_set_new(object, "metrics", metrics_object(entry));
  char *const text = rft_json_text(object, 0);
  json_decref(object);
  return text;
}

int32_t log_write(train_log *self, const log_entry *entry, rft_error *error)
{
  if (self->file == NULL) {
    return RFT_OK;
  }
  char *const text = entry_text(entry);
  if (text == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "log %s: out of memory", self->path);
  }
  const int written = fprintf(self->file, "%s\n", text);
  free(text);
  return written > 0 && fflush(self->file) == 0 ? RFT_OK : fail(self, "cannot be written", error);
}

int32_t log_sync(train_log *self, rft_error *error)
{
  return self->file == NULL || fsync(fileno(self->file)) == 0
             ? RFT_OK
             : fail(self, "cannot be flushed to disk", error);
}
