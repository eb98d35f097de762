// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "trust.h"

#include "support/error.h"
#include "support/system_error.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *rft_short_path(char text[RFT_SHORT_PATH_SIZE], const char *path)
{
  const size_t length = strlen(path);
  if (length < RFT_SHORT_PATH_SIZE) {
    return strcpy(text, path);
  }
  const char *tail = path + length - (RFT_SHORT_PATH_SIZE - 4);
  while (((unsigned char)*tail & 0xC0U) == 0x80U) {
    ++tail;
  }
  snprintf(text, RFT_SHORT_PATH_SIZE, "...%s", tail);
  return text;
}

static int32_t check_owner(const char *kind, const char *path, const struct stat *status,
                           rft_error *error)
{
  char shown[RFT_SHORT_PATH_SIZE];
  if (status->st_uid != 0 && status->st_uid != geteuid()) {
    return rft_fail(error, RFT_PERMISSION_DENIED,
                    "%s %s belongs to user %u: expected root or the user of this process (%u)",
                    kind, rft_short_path(shown, path), (unsigned)status->st_uid,
                    (unsigned)geteuid());
  }
  if ((status->st_mode & S_IWOTH) != 0) {
    return rft_fail(error, RFT_PERMISSION_DENIED, "%s %s may be written by others (mode %04o)",
                    kind, rft_short_path(shown, path), (unsigned)status->st_mode & 07777U);
  }
  return RFT_OK;
}

// A parent that others may write lets them rename what is below it, unless it is sticky as /tmp is.
static int32_t check_parents(const char *directory, rft_error *error)
{
  char parent[PATH_MAX];
  snprintf(parent, sizeof parent, "%s", directory);
  for (char *slash = strrchr(parent, '/'); slash != NULL; slash = strrchr(parent, '/')) {
    *slash = '\0';
    const char *const path = parent[0] == '\0' ? "/" : parent;
    struct stat status = {.st_mode = 0};
    if (stat(path, &status) == 0 && (status.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH) {
      char shown[RFT_SHORT_PATH_SIZE];
      return rft_fail(error, RFT_PERMISSION_DENIED,
                      "parent directory %s may be written by others (mode %04o)",
                      rft_short_path(shown, path), (unsigned)status.st_mode & 07777U);
    }
  }
  return RFT_OK;
}

int32_t rft_trust_directory(const char *directory, rft_error *error)
{
  char shown[RFT_SHORT_PATH_SIZE];
  struct stat status;
  if (stat(directory, &status) != 0) {
    char words[RFT_SYSTEM_ERROR_SIZE];
    return rft_fail(error, RFT_NOT_FOUND, "directory %s: %s", rft_short_path(shown, directory),
                    rft_system_error(words, errno));
  }
  const int32_t code = check_owner("directory", directory, &status, error);
  return code == RFT_OK ? check_parents(directory, error) : code;
}

int32_t rft_trust_file(const char *path, const struct stat *status, rft_error *error)
{
  const int32_t code = check_owner("file", path, status, error);
  if (code != RFT_OK) {
    return code;
  }
  char directory[PATH_MAX];
  snprintf(directory, sizeof directory, "%s", path);
  *strrchr(directory, '/') = '\0';
  return rft_trust_directory(directory[0] == '\0' ? "/" : directory, error);
}
