// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The checks of `rft check`: each judges one thing about any plugin, in a process of its own, so
// that a crash, a hang or an exit is a verdict too.

#ifndef RFT_CHECK_H
#define RFT_CHECK_H

#include "rft/plugin.h"

#include <stdbool.h>

/// What a check is run on, and how often.
typedef enum check_scope {
  CHECK_FILE,       ///< on the file, once; the check itself opens and enters it
  CHECK_PLUGIN,     ///< on the plugin's tables, once
  CHECK_LOSS,       ///< on every policy loss
  CHECK_CONFIG,     ///< on every policy loss, with {} and with each preset of it in the plugin
  CHECK_SELECTION,  ///< as CHECK_CONFIG, on losses that select
  CHECK_COLLECTIVES ///< as CHECK_CONFIG, on losses whose selection_finish accepts collectives
} check_scope;

/// What a check works on. Fields are set as far as its scope says.
typedef struct check_subject {
  const char *path; ///< absolute
  uint64_t seed;    ///< of this check
  rft_plugin_entry entry;
  const rft_host *host;
  const rft_plugin *plugin;
  const rft_policy_loss *loss;
  const char *config; ///< JSON text
} check_subject;

typedef struct check {
  int number;
  const char *name;
  const char *rules; ///< "P1, P2": of abi/README.md
  check_scope scope;
  bool required;
  const char *needs; ///< a check without which this one can't be judged, or NULL
  const char *description;
  void (*run)(const check_subject *subject);
} check;

/// One file of checks, in the order of their numbers.
typedef struct check_area {
  const check *checks;
  int count;
} check_area;

extern const check_area file_checks, load_checks, entry_checks, table_checks, schema_checks,
    config_checks, instance_checks, struct_checks, error_checks, tensor_checks, dtype_checks,
    value_checks, numeric_checks, process_checks, selection_checks, collective_checks,
    one_pass_checks;

/// All checks, in the order of their numbers. The index is in [0, check_count()).
int check_count(void);
const check *check_at(int index);

/// By name or number; NULL where there is none.
const check *check_find(const char *name);

#define CHECK_AREA(table)                                                                          \
  {                                                                                                \
    (table), (int)(sizeof(table) / sizeof(table)[0])                                               \
  }

#endif // RFT_CHECK_H
