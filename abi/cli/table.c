// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // secure_getenv

#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PLAIN_WIDTH = 100, LEAST_LAST_COLUMN = 24, GAP = 2 };

bool cli_on_terminal(void)
{
  return isatty(STDOUT_FILENO) == 1;
}

static int line_width(void)
{
  struct winsize size;
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : PLAIN_WIDTH;
}

// Characters, not bytes.
static int text_width(const char *text)
{
  int width = 0;
  for (; *text != '\0'; ++text) {
    width += ((unsigned char)*text & 0xC0U) != 0x80U;
  }
  return width;
}

// Prints words up to `width` a line; lines after the first begin with `indent` spaces.
static void print_words(const char *text, int indent, int width)
{
  int used = 0;
  while (*text != '\0') {
    const int length = (int)strcspn(text, " ");
    char *const word = strndup(text, (size_t)length);
    const int shown = word == NULL ? length : text_width(word);
    free(word);
    if (used > 0 && used + 1 + shown > width) {
      printf("\n%*s", indent, "");
      used = 0;
    }
    printf("%s%.*s", used > 0 ? " " : "", length, text);
    used += shown + (used > 0);
    text += length;
    text += strspn(text, " ");
  }
}

void cli_print_wrapped(const char *text, int indent)
{
  const int room = line_width() - indent;
  printf("%*s", indent, "");
  print_words(text, indent, room < LEAST_LAST_COLUMN ? LEAST_LAST_COLUMN : room);
  putchar('\n');
}

static void print_row(int columns, const cli_row *row, const int *widths, int indent)
{
  int position = indent;
  printf("%*s", indent, "");
  for (int i = 0; i < columns - 1; ++i) {
    printf("%s%*s", row->cells[i], widths[i] + GAP - text_width(row->cells[i]), "");
    position += widths[i] + GAP;
  }
  const int room = line_width() - position;
  print_words(row->cells[columns - 1], position,
              room < LEAST_LAST_COLUMN ? LEAST_LAST_COLUMN : room);
}

void cli_print_table(int columns, const cli_row *heading, const cli_row *rows, int row_count,
                     int indent)
{
  const bool styled = cli_on_terminal() && secure_getenv("NO_COLOR") == NULL;
  int widths[CLI_MOST_COLUMNS] = {0};
  for (int i = 0; i < columns; ++i) {
    widths[i] = text_width(heading->cells[i]);
    for (int j = 0; j < row_count; ++j) {
      const int width = text_width(rows[j].cells[i]);
      widths[i] = width > widths[i] ? width : widths[i];
    }
  }
  fputs(styled ? "\033[1m" : "", stdout);
  print_row(columns, heading, widths, indent);
  puts(styled ? "\033[0m" : "");
  for (int j = 0; j < row_count; ++j) {
    print_row(columns, &rows[j], widths, indent);
    putchar('\n');
  }
}
