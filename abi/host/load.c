// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// One file: from a path to a plugin in the registry.

#include "dylib.h"
#include "probe.h"
#include "registry.h"
#include "support/system_error.h"
#include "trust.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t resolve_path(const char *path, char real_path[PATH_MAX], rft_error *error)
{
  struct stat status;
  if (realpath(path, real_path) != NULL) {
    return RFT_OK;
  }
  const int problem = errno;
  if (problem == ENOENT && lstat(path, &status) == 0 && S_ISLNK(status.st_mode)) {
    return rft_fail(error, RFT_NOT_FOUND, "it is a symbolic link to a file that does not exist");
  }
  char words[RFT_SYSTEM_ERROR_SIZE];
  return rft_fail(error, problem == EACCES ? RFT_PERMISSION_DENIED : RFT_NOT_FOUND,
                  "it cannot be found: %s", rft_system_error(words, problem));
}

// Whoever can write the directory of a symbolic link chooses the file that it leads to.
static int32_t check_link(const char *path, rft_error *error)
{
  char directory[PATH_MAX];
  char real_directory[PATH_MAX];
  const char *const slash = strrchr(path, '/');
  const int length = slash == NULL ? 0 : (int)(slash - path);
  snprintf(directory, sizeof directory, "%.*s", length, path);
  const char *const shown = slash == NULL ? "." : length == 0 ? "/" : directory;
  if (realpath(shown, real_directory) == NULL) {
    char words[RFT_SYSTEM_ERROR_SIZE];
    return rft_fail(error, RFT_NOT_FOUND, "its directory cannot be found: %s",
                    rft_system_error(words, errno));
  }
  return rft_trust_directory(real_directory, error);
}

static bool is_loaded(const rft_registry *registry, const struct stat *status)
{
  for (int64_t i = 0; i < registry->loaded_count; ++i) {
    const rft_loaded *const loaded = &registry->loaded[i];
    if (loaded->device == status->st_dev && loaded->inode == status->st_ino) {
      return true;
    }
  }
  return false;
}

static int32_t check_id(const rft_registry *registry, const rft_plugin *plugin, rft_error *error)
{
  for (int64_t i = 0; i < registry->loaded_count; ++i) {
    if (strcmp(registry->loaded[i].plugin->id, plugin->id) == 0) {
      char shown[RFT_SHORT_PATH_SIZE];
      return rft_fail(error, RFT_ALREADY_EXISTS, "the plugin %.64s was already loaded, from %s",
                      plugin->id, rft_short_path(shown, registry->loaded[i].path));
    }
  }
  return RFT_OK;
}

static int32_t append(rft_registry *registry, const char *path, const struct stat *status,
                      const rft_plugin *plugin, rft_error *error)
{
  const size_t count = (size_t)registry->loaded_count;
  char *const own_path = strdup(path);
  rft_loaded *const grown = realloc(registry->loaded, (count + 1) * sizeof *grown);
  if (grown != NULL) {
    registry->loaded = grown;
  }
  if (own_path == NULL || grown == NULL) {
    free(own_path);
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory");
  }
  grown[count] = (rft_loaded){
      .path = own_path, .device = status->st_dev, .inode = status->st_ino, .plugin = plugin};
  ++registry->loaded_count;
  return RFT_OK;
}

// H1.
static void warn_hidden(const rft_registry *registry, const rft_plugin *plugin, const char *path)
{
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    const rft_policy_loss *first = NULL;
    rft_registry_find_policy_loss(registry, plugin->policy_losses[i]->name, &first, NULL);
    if (first != plugin->policy_losses[i]) {
      rft_registry_log(registry, RFT_LOG_WARNING,
                       "policy loss \"%s\" of %s is hidden by an earlier plugin's",
                       plugin->policy_losses[i]->name, path);
    }
  }
  for (int64_t i = 0; i < plugin->algorithm_preset_count; ++i) {
    const rft_algorithm_preset *first = NULL;
    rft_registry_find_algorithm_preset(registry, plugin->algorithm_presets[i]->name, &first, NULL);
    if (first != plugin->algorithm_presets[i]) {
      rft_registry_log(registry, RFT_LOG_WARNING,
                       "algorithm preset \"%s\" of %s is hidden by an earlier plugin's",
                       plugin->algorithm_presets[i]->name, path);
    }
  }
}

int32_t rft_registry_load_file(rft_registry *registry, const char *path, rft_error *reason)
{
  char real_path[PATH_MAX];
  struct stat status;
  int32_t code = resolve_path(path, real_path, reason);
  if (code == RFT_OK) {
    code = rft_dylib_check(real_path, &status, reason);
  }
  if (code == RFT_OK) {
    code = check_link(path, reason);
  }
  if (code != RFT_OK || is_loaded(registry, &status)) {
    return code;
  }
  rft_plugin_entry entry = NULL;
  const rft_plugin *plugin = NULL;
  code = rft_probe(registry, real_path, reason);
  if (code == RFT_OK) {
    code = rft_dylib_entry(real_path, &entry, reason);
  }
  if (code == RFT_OK) {
    code = rft_negotiate(entry, &registry->host, &plugin, reason);
  }
  if (code == RFT_OK) {
    code = check_id(registry, plugin, reason);
  }
  if (code == RFT_OK) {
    code = append(registry, real_path, &status, plugin, reason);
  }
  if (code == RFT_OK) {
    warn_hidden(registry, plugin, real_path);
  }
  return code;
}

int32_t rft_registry_load(rft_registry *registry, const char *path, rft_error *error)
{
  rft_error reason = {.struct_size = sizeof reason};
  const int32_t code = rft_registry_load_file(registry, path, &reason);
  if (code != RFT_OK) {
    char shown[RFT_SHORT_PATH_SIZE];
    return rft_fail(error, code, "plugin %s: %s", rft_short_path(shown, path), reason.message);
  }
  return RFT_OK;
}
