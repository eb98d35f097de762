// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What `rft inspect` has found, printed.

#ifndef RFT_CLI_INSPECT_REPORT_H
#define RFT_CLI_INSPECT_REPORT_H

#include "inspect_losses.h"

/// Columns side by side.
enum { INSPECT_MOST_EFFECTS = 8 };

typedef struct inspect_report {
  const inspect_batch *batch;
  const inspect_effect *effects; ///< [count]
  const inspect_losses *losses;  ///< [count]
  int count;
  const json_t *warnings; ///< of inspect_warnings
  const json_t *files;    ///< paths that were written; NULL: none were asked for
} inspect_report;

/// For people. Control characters of token texts are shown, never sent to the terminal.
int inspect_print_text(const inspect_report *report);

/// One object.
int inspect_print_json(const inspect_report *report);

#endif // RFT_CLI_INSPECT_REPORT_H
