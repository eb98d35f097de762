// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // dladdr1

#include "dylib.h"

#include "elf_check.h"
#include "support/error.h"
#include "support/system_error.h"
#include "trust.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
  return S_ISDIR(mode)    ? "a directory"
         : S_ISFIFO(mode) ? "a FIFO"
         : S_ISSOCK(mode) ? "a socket"
                          : "a device";
}

// Opening a FIFO or a device can wait or have effects, so the kind is asked first.
static int32_t open_regular(const char *real_path, struct stat *status, int *descriptor,
                            rft_error *error)
{
  if (stat(real_path, status) != 0) {
    char words[RFT_SYSTEM_ERROR_SIZE];
    return rft_fail(error, RFT_NOT_FOUND, "it cannot be examined: %s",
                    rft_system_error(words, errno));
  }
  if (!S_ISREG(status->st_mode)) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "it is not a regular file but %s",
                    kind_of(status->st_mode));
  }
  const int opened = open(real_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (opened < 0) {
    char words[RFT_SYSTEM_ERROR_SIZE];
    return rft_fail(error, RFT_PERMISSION_DENIED, "it cannot be read: %s",
                    rft_system_error(words, errno));
  }
  *descriptor = opened;
  return RFT_OK;
}

int32_t rft_dylib_check(const char *real_path, struct stat *status, rft_error *error)
{
  int descriptor = -1;
  int32_t code = open_regular(real_path, status, &descriptor, error);
  if (code != RFT_OK) {
    return code;
  }
  code = rft_trust_file(real_path, status, error);
  if (code == RFT_OK) {
    code = rft_elf_check(descriptor, status->st_size, error);
  }
  close(descriptor);
  return code;
}

// A symbol that the object itself defines; dlsym would also give one of a library that it needs.
static void *own_symbol(void *handle, const char *name)
{
  void *const symbol = dlsym(handle, name);
  struct link_map *object = NULL;
  struct link_map *definer = NULL;
  Dl_info info;
  const bool own = symbol != NULL && dlinfo(handle, RTLD_DI_LINKMAP, &object) == 0 &&
                   dladdr1(symbol, &info, (void **)&definer, RTLD_DL_LINKMAP) != 0 &&
                   definer == object;
  return own ? symbol : NULL;
}

enum { MAJORS_ASKED = 100 };

static int32_t fail_no_entry(void *handle, rft_error *error)
{
  for (int major = 0; major < MAJORS_ASKED; ++major) {
    char name[32];
    snprintf(name, sizeof name, "rft_plugin_entry_v%d", major);
    if (own_symbol(handle, name) != NULL) {
      return rft_fail(error, RFT_UNIMPLEMENTED,
                      "it is a plugin of ABI version %d, this host speaks version %d: looked for "
                      "the symbol " RFT_PLUGIN_ENTRY_SYMBOL ", found %s",
                      major, RFT_ABI_MAJOR, name);
    }
  }
  return rft_fail(error, RFT_INVALID_ARGUMENT,
                  "it is not a plugin: looked for the symbol " RFT_PLUGIN_ENTRY_SYMBOL
                  ", found no rft_plugin_entry of any version");
}

// dlerror begins with the path, which the caller's message names.
static const char *without_path(const char *problem, const char *path)
{
  const size_t length = strlen(path);
  return strncmp(problem, path, length) == 0 && strncmp(problem + length, ": ", 2) == 0
             ? problem + length + 2
             : problem;
}

int32_t rft_dylib_entry(const char *real_path, rft_plugin_entry *entry, rft_error *error)
{
  void *const handle = dlopen(real_path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char *const problem = dlerror(); // NOLINT(concurrency-mt-unsafe): kept per thread
    return rft_fail(error, RFT_FAILED_PRECONDITION, "the dynamic loader refuses it: %s",
                    problem == NULL ? "no reason given" : without_path(problem, real_path));
  }
  void *const symbol = own_symbol(handle, RFT_PLUGIN_ENTRY_SYMBOL);
  if (symbol == NULL) {
    return fail_no_entry(handle, error);
  }
  memcpy(entry, &symbol, sizeof *entry);
  return RFT_OK;
}
