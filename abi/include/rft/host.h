// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

/// @file host.h
/// The host side: find plugins, load them, check configs, make instances. This is librft_host.
///
/// A registry holds what was loaded. Loading is [setup]: do it before other threads use the
/// registry; afterwards every function that takes a const registry is [thread-safe]. Errors are as
/// in plugin.h: a code, a complete message, and outputs untouched.

#ifndef RFT_HOST_H
#define RFT_HOST_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Version of librft_host. The soname carries the ABI's major.
#define RFT_HOST_VERSION "1.1.0"

typedef struct rft_registry rft_registry;

/// How a registry presents itself to plugins. All zero is a valid choice.
typedef struct rft_registry_options {
  uint32_t struct_size;
  int32_t threads;     ///< for rft.host.parallel/1, with the caller's; 0 or 1: no service
  const char *name;    ///< of the host program; NULL: "librft_host"
  const char *version; ///< NULL: RFT_HOST_VERSION
  /// Receives what plugins and the host log, on any thread; NULL: dropped.
  void (*log)(void *log_context, int32_t level, const char *message);
  void *log_context;
  /// Milliseconds for trying each file in a child process first: what crashes or hangs while it is
  /// loaded is then refused, and the scan goes on. 0: it is not tried, as a host must choose that
  /// can't fork.
  int32_t probe_timeout_ms;
  uint32_t reserved; ///< 0
} rft_registry_options;

/// A file that was not loaded, and why.
typedef struct rft_refusal {
  const char *path;   ///< absolute
  const char *reason; ///< complete sentence
  int32_t code;       ///< RFT_*
} rft_refusal;

/// Makes an empty registry. `options` NULL: all zero. [thread-safe]
int32_t rft_registry_create(const rft_registry_options *options, rft_registry **registry,
                            rft_error *error);

/// Frees a registry, after every instance made with it. Shared objects stay mapped (rule H8).
void rft_registry_destroy(rft_registry *registry);

/// Loads every file of `directory` whose name ends in ".so", in byte order of names (H1). A file
/// that is refused is recorded and the scan goes on; only a directory that can't be read, or that
/// others may write (H5), is an error. [setup]
int32_t rft_registry_scan(rft_registry *registry, const char *directory, rft_error *error);

/// Scans the directories of RFT_PLUGIN_PATH (colon-separated, absolute; H6), or where that is not
/// set the installed one. [setup]
int32_t rft_registry_scan_default(rft_registry *registry, rft_error *error);

/// Loads one file. [setup]
int32_t rft_registry_load(rft_registry *registry, const char *path, rft_error *error);

/// What was loaded, in order. The index is in [0, count).
int64_t rft_registry_plugin_count(const rft_registry *registry);
const rft_plugin *rft_registry_plugin(const rft_registry *registry, int64_t index);
const char *rft_registry_plugin_path(const rft_registry *registry, int64_t index);

/// What was refused by scans, in order. The index is in [0, count).
int64_t rft_registry_refusal_count(const rft_registry *registry);
const rft_refusal *rft_registry_refusal(const rft_registry *registry, int64_t index);

/// Finds by name; the first plugin that has it wins. RFT_NOT_FOUND names the nearest known name.
int32_t rft_registry_find_policy_loss(const rft_registry *registry, const char *name,
                                      const rft_policy_loss **loss, rft_error *error);
int32_t rft_registry_find_algorithm_preset(const rft_registry *registry, const char *name,
                                           const rft_algorithm_preset **preset, rft_error *error);

/// The one-pass functions (RFT_PLUGIN_ONE_PASS) of the plugin that `loss` belongs to, or NULL where
/// it has none and the loss's own functions serve. What a call that fails leaves behind is not what
/// P9 says: see rft_one_pass. Since librft_host 1.1. [thread-safe]
const rft_one_pass *rft_registry_one_pass(const rft_registry *registry,
                                          const rft_policy_loss *loss);

/// The host as plugins see it, to call create with.
const rft_host *rft_registry_host(const rft_registry *registry);

/// Checks `config` (JSON text, `length` bytes; length 0 is {}) against the loss's schema, and gives
/// it with every default filled in, as JSON text; free it with rft_string_free. The message of an
/// RFT_INVALID_ARGUMENT names the key, what was expected, what came, and the nearest known key.
/// [thread-safe]
int32_t rft_config_resolve(const rft_policy_loss *loss, const char *config, int64_t length,
                           char **resolved, rft_error *error);

/// Resolves a preset: its document with policy_loss_fn_args overlaid by `args` (JSON object text,
/// NULL: none), checked and completed against the schema of its policy loss. Free the text with
/// rft_string_free. [thread-safe]
int32_t rft_preset_resolve(const rft_registry *registry, const char *name, const char *args,
                           char **document, rft_error *error);

/// rft_config_resolve, then the loss's create. Free with loss->destroy. [thread-safe]
int32_t rft_instance_create(const rft_registry *registry, const rft_policy_loss *loss,
                            const char *config, int64_t length, rft_instance **instance,
                            rft_error *error);

void rft_string_free(char *text);

/// Metrics arrays, [loss->metric_count]: start one at the neutral values, fold in the part that one
/// evaluate or selection_finish wrote, then divide the ratios once. `phase`: RFT_METRIC_*, the
/// entries that `part` holds. [thread-safe]
void rft_metrics_reset(const rft_policy_loss *loss, double *total);
void rft_metrics_combine(const rft_policy_loss *loss, int32_t phase, double *total,
                         const double *part);
void rft_metrics_finish(const rft_policy_loss *loss, double *total);

/// The name of a code, "INVALID_ARGUMENT"; "UNKNOWN" for one that is not known.
const char *rft_code_name(int32_t code);

#ifdef __cplusplus
}
#endif

#endif // RFT_HOST_H
