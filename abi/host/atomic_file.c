// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "atomic_file.h"

#include "support/error.h"
#include "support/system_error.h"
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TEMPORARIES = 1000 };

static int32_t fail(const rft_atomic_file *file, const char *action, int problem, rft_error *error)
{
  char shown[RFT_SHORT_PATH_SIZE];
  char words[RFT_SYSTEM_ERROR_SIZE];
  return rft_fail(error, problem == EACCES ? RFT_PERMISSION_DENIED : RFT_UNAVAILABLE,
                  "cannot %s %s: %s", action, rft_short_path(shown, file->path),
                  rft_system_error(words, problem));
}

int32_t rft_atomic_open(rft_atomic_file *file, const char *path, rft_error *error)
{
  *file = (rft_atomic_file){.path = path, .descriptor = -1};
  struct stat status;
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
    char shown[RFT_SHORT_PATH_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "cannot write %s: it exists and is not a regular file",
                    rft_short_path(shown, path));
  }
  int problem = EEXIST;
  for (int i = 0; problem == EEXIST && i < MOST_TEMPORARIES; ++i) {
    const int length =
        snprintf(file->temporary, sizeof file->temporary, "%s.%ld-%d.tmp", path, (long)getpid(), i);
    if (length >= (int)sizeof file->temporary) {
      return fail(file, "write", ENAMETOOLONG, error);
    }
    file->descriptor = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    problem = file->descriptor < 0 ? errno : 0;
  }
  return problem == 0 ? RFT_OK : fail(file, "write", problem, error);
}

int32_t rft_atomic_write(rft_atomic_file *file, const void *data, size_t size, rft_error *error)
{
  const char *rest = data;
  while (size > 0) {
    const ssize_t written = write(file->descriptor, rest, size);
    if (written < 0 && errno != EINTR) {
      return fail(file, "write", errno, error);
    }
    if (written > 0) {
      rest += written;
      size -= (size_t)written;
    }
  }
  return RFT_OK;
}

// So that the new name, too, survives a power cut. Some filesystems can't, which is no failure.
static void flush_directory(const char *path)
{
  char directory[PATH_MAX];
  const char *const slash = strrchr(path, '/');
  const int length = slash == NULL ? 0 : (int)(slash - path);
  snprintf(directory, sizeof directory, "%.*s", length, path);
  const char *const name = slash == NULL ? "." : length == 0 ? "/" : directory;
  const int descriptor = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

int32_t rft_atomic_commit(rft_atomic_file *file, rft_error *error)
{
  if (fsync(file->descriptor) != 0) {
    const int problem = errno;
    rft_atomic_abandon(file);
    return fail(file, "flush", problem, error);
  }
  if (rename(file->temporary, file->path) != 0) {
    const int problem = errno;
    rft_atomic_abandon(file);
    return fail(file, "write", problem, error);
  }
  close(file->descriptor);
  flush_directory(file->path);
  return RFT_OK;
}

void rft_atomic_abandon(rft_atomic_file *file)
{
  close(file->descriptor);
  unlink(file->temporary);
}
