// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Tables of text, as wide as the terminal.

#ifndef RFT_CLI_TABLE_H
#define RFT_CLI_TABLE_H

#include <stdbool.h>

enum { CLI_MOST_COLUMNS = 12 };

/// A row of cells, one a column; the last column is wrapped.
typedef struct cli_row {
  const char *cells[CLI_MOST_COLUMNS];
} cli_row;

/// Prints a heading and rows, every line indented by `indent`.
void cli_print_table(int columns, const cli_row *heading, const cli_row *rows, int row_count,
                     int indent);

/// Prints text wrapped, every line indented by `indent`.
void cli_print_wrapped(const char *text, int indent);

/// Whether standard output is a terminal.
bool cli_on_terminal(void);

#endif // RFT_CLI_TABLE_H
