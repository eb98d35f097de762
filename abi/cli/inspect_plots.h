// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What `rft inspect` has found, drawn.

#ifndef RFT_CLI_INSPECT_PLOTS_H
#define RFT_CLI_INSPECT_PLOTS_H

#include "inspect_report.h"

#include <stdio.h>

/// Draws log-ratios, masked-along and threshold-sweep (.svg and .png, by gnuplot) and tokens.html
/// in `directory`, which is made where it isn't there. Each file appears whole or not at all, and
/// none before all are made. *files: their paths, an array that the caller owns.
int32_t inspect_plots_write(const char *directory, const inspect_report *report, json_t **files,
                            rft_error *error);

/// A gnuplot script that draws the plots where it is run.
void inspect_script_write(const inspect_report *report, FILE *file);

/// The batch as tokens: an HTML page that shows threshold-sweep.svg and its siblings, too.
void inspect_page_write(const inspect_report *report, FILE *file);

#endif // RFT_CLI_INSPECT_PLOTS_H
