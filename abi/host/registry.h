// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a registry holds. Private to librft_host.

#ifndef RFT_HOST_REGISTRY_H
#define RFT_HOST_REGISTRY_H

#include "pool.h"
#include "rft/host.h"
#include "support/error.h"

#include <sys/types.h>

/// A plugin that was loaded, and the file that it came from.
typedef struct rft_loaded {
  char *path; ///< absolute
  dev_t device;
  ino_t inode;
  const rft_plugin *plugin;
} rft_loaded;

struct rft_registry {
  rft_host host;
  rft_log log;
  rft_parallel parallel;
  rft_pool *pool; ///< NULL: the host offers no threads
  void (*log_sink)(void *log_context, int32_t level, const char *message);
  void *log_context;
  int32_t probe_timeout_ms; ///< 0: files are not tried first
  char *name;
  char *version;
  rft_loaded *loaded;
  int64_t loaded_count;
  rft_refusal **refusals;
  int64_t refusal_count;
};

/// Fills host, log and parallel from the other fields. `threads`: the workers and their caller.
void rft_services_init(rft_registry *registry, int32_t threads);

/// Gives a message of the host's own to the log.
void rft_registry_log(const rft_registry *registry, int32_t level, const char *format, ...)
    RFT_PRINTF(3, 4);

/// Loads one file. The message on failure doesn't name the file: the caller does.
int32_t rft_registry_load_file(rft_registry *registry, const char *path, rft_error *reason);

/// Calls a plugin's entry and checks everything that it gives (P1 to P13).
int32_t rft_negotiate(rft_plugin_entry entry, const rft_host *host, const rft_plugin **plugin,
                      rft_error *error);

#endif // RFT_HOST_REGISTRY_H
