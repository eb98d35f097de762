// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Directories of plugins (H1, H5, H6).

#define _GNU_SOURCE // secure_getenv

#include "registry.h"
#include "support/system_error.h"
#include "trust.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char SUFFIX[] = ".so";

static int has_suffix(const struct dirent *entry)
{
  const size_t length = strlen(entry->d_name);
  const size_t suffix = sizeof SUFFIX - 1;
  return length >= suffix && strcmp(entry->d_name + length - suffix, SUFFIX) == 0;
}

// Byte order; alphasort would follow the locale.
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
  return strcmp((*a)->d_name, (*b)->d_name);
}

static int32_t refuse(rft_registry *registry, const char *path, const rft_error *reason,
                      rft_error *error)
{
  rft_registry_log(registry, RFT_LOG_WARNING, "refused %s: %s", path, reason->message);
  const size_t count = (size_t)registry->refusal_count;
  rft_refusal **const grown = realloc(registry->refusals, (count + 1) * sizeof(rft_refusal *));
  if (grown != NULL) {
    registry->refusals = grown;
  }
  rft_refusal *const refusal = malloc(sizeof *refusal);
  char *const own_path = strdup(path);
  char *const own_reason = strdup(reason->message);
  if (grown == NULL || refusal == NULL || own_path == NULL || own_reason == NULL) {
    free(refusal);
    free(own_path);
    free(own_reason);
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory while scanning for plugins");
  }
  *refusal = (rft_refusal){.path = own_path, .reason = own_reason, .code = reason->code};
  grown[count] = refusal;
  ++registry->refusal_count;
  return RFT_OK;
}

static int32_t load_entry(rft_registry *registry, const char *directory, const char *name,
                          rft_error *error)
{
  char path[PATH_MAX + NAME_MAX + 2];
  snprintf(path, sizeof path, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name);
  rft_error reason = {.struct_size = sizeof reason};
  const int32_t code = rft_registry_load_file(registry, path, &reason);
  if (code == RFT_OK) {
    return RFT_OK;
  }
  if (code == RFT_RESOURCE_EXHAUSTED) {
    return rft_fail(error, code, "%s", reason.message);
  }
  return refuse(registry, path, &reason, error);
}

int32_t rft_registry_scan(rft_registry *registry, const char *directory, rft_error *error)
{
  char shown[RFT_SHORT_PATH_SIZE];
  char real_path[PATH_MAX];
  if (realpath(directory, real_path) == NULL) {
    char words[RFT_SYSTEM_ERROR_SIZE];
    return rft_fail(error, errno == EACCES ? RFT_PERMISSION_DENIED : RFT_NOT_FOUND,
                    "plugin directory %s: %s", rft_short_path(shown, directory),
                    rft_system_error(words, errno));
  }
  rft_error reason = {.struct_size = sizeof reason};
  int32_t code = rft_trust_directory(real_path, &reason);
  if (code != RFT_OK) {
    return rft_fail(error, code, "plugins are not loaded from here: %s", reason.message);
  }
  struct dirent **entries = NULL;
  const int count = scandir(real_path, &entries, has_suffix, by_bytes);
  if (count < 0) {
    char words[RFT_SYSTEM_ERROR_SIZE];
    return rft_fail(error, errno == EACCES ? RFT_PERMISSION_DENIED : RFT_INVALID_ARGUMENT,
                    "plugin directory %s: %s", rft_short_path(shown, directory),
                    rft_system_error(words, errno));
  }
  for (int i = 0; i < count; ++i) {
    if (code == RFT_OK) {
      code = load_entry(registry, real_path, entries[i]->d_name, error);
    }
    free(entries[i]);
  }
  free(entries);
  return code;
}

// An empty or relative entry would mean the current directory, which is not the user's choice (H6).
static int32_t check_entries(const char *list, rft_error *error)
{
  int64_t number = 1;
  for (const char *entry = list;; ++number) {
    const size_t length = strcspn(entry, ":");
    if (entry[0] != '/') {
      return rft_fail(error, RFT_INVALID_ARGUMENT,
                      "RFT_PLUGIN_PATH: expected absolute directories separated by ':', found "
                      "\"%.*s\" as entry %" PRId64,
                      length > 200 ? 200 : (int)length, entry, number);
    }
    if (entry[length] == '\0') {
      return RFT_OK;
    }
    entry += length + 1;
  }
}

static int32_t scan_list(rft_registry *registry, const char *list, rft_error *error)
{
  int32_t code = check_entries(list, error);
  char *const directories = strdup(list);
  if (directories == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory while scanning for plugins");
  }
  char *rest = directories;
  while (code == RFT_OK && rest != NULL) {
    code = rft_registry_scan(registry, strsep(&rest, ":"), error);
  }
  free(directories);
  return code;
}

static int32_t scan_installed(rft_registry *registry, rft_error *error)
{
  rft_error problem = {.struct_size = sizeof problem};
  const int32_t code = rft_registry_scan(registry, RFT_PLUGIN_DIR, &problem);
  return code == RFT_OK ? RFT_OK
                        : rft_fail(error, code, "%s (RFT_PLUGIN_PATH is not set)", problem.message);
}

int32_t rft_registry_scan_default(rft_registry *registry, rft_error *error)
{
  const char *const list = secure_getenv("RFT_PLUGIN_PATH");
  return list == NULL || list[0] == '\0' ? scan_installed(registry, error)
                                         : scan_list(registry, list, error);
}
