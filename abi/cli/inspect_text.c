// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "cli.h"
#include "inspect_report.h"
#include "support/phrase.h"
#include "table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct cell {
  char text[96];
} cell;

// A table that is filled row by row.
typedef struct sheet {
  int columns;
  int rows;
  cell *cells; // [most rows][columns]
} sheet;

static sheet sheet_of(int columns, int64_t most_rows)
{
  return (sheet){.columns = columns,
                 .cells = cli_allocate((size_t)(columns * most_rows), sizeof(cell))};
}

static char *cell_at(const sheet *table, int row, int column)
{
  return table->cells[(row * table->columns) + column].text;
}

static void set(const sheet *table, int column, const char *format, ...) RFT_PRINTF(3, 4);

// Of the row that is being filled.
static void set(const sheet *table, int column, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(cell_at(table, table->rows, column), sizeof(cell), format, arguments);
  va_end(arguments);
}

static void print_sheet(sheet *table, const cli_row *heading)
{
  cli_row *const rows = cli_allocate((size_t)table->rows, sizeof *rows);
  for (int i = 0; i < table->rows; ++i) {
    for (int j = 0; j < table->columns; ++j) {
      rows[i].cells[j] = cell_at(table, i, j);
    }
  }
  cli_print_table(table->columns, heading, rows, table->rows, 2);
  putchar('\n');
  free(rows);
  free(table->cells);
}

// ------------------------------------------------------------------------------------------- batch

static void print_spread(const inspect_batch *batch)
{
  inspect_spread spreads[2];
  inspect_batch_spread(batch, &spreads[0], &spreads[1]);
  const cli_row heading = {
      {"", "mean", "rms", "least", "1 %", "5 %", "25 %", "50 %", "75 %", "95 %", "99 %", "most"}};
  sheet table = sheet_of(INSPECT_QUANTILES + 3, 2);
  for (; table.rows < 2; ++table.rows) {
    const inspect_spread *const spread = &spreads[table.rows];
    set(&table, 0, "%s", table.rows == 0 ? "log-ratio" : "ratio");
    set(&table, 1, "%.3g", spread->mean);
    set(&table, 2, "%.3g", spread->root_mean_square);
    for (int i = 0; i < INSPECT_QUANTILES; ++i) {
      set(&table, i + 3, "%.3g", spread->quantiles[i]);
    }
  }
  print_sheet(&table, &heading);
}

static void print_batch(const inspect_batch *batch)
{
  printf("%s\n  %" PRId64 " sequences, %" PRId64 " valid tokens of %" PRId64 " positions, ",
         batch->source->path, batch->source->rows, batch->valid_tokens, batch->positions);
  if (batch->staleness == INSPECT_STALENESS_UNKNOWN) {
    printf("staleness not known (--staleness K tells it)\n\n");
  } else {
    printf("%" PRId64 " updates stale\n\n", batch->staleness);
  }
  print_spread(batch);
}

// ------------------------------------------------------------------------------------ side by side

enum { COUNT_ROWS = 7 };
static const char *const LABELS[COUNT_ROWS] = {
    "loss",     "trust-region tokens", "masked tokens", "clipped tokens", "m2 before",
    "m2 after", "cut, |log-ratio|"};

static void set_tokens(const sheet *table, int column, int64_t tokens, int64_t valid)
{
  set(table, column, "%" PRId64 " (%.2f %%)", tokens, 100 * inspect_fraction(tokens, valid));
}

static void set_count(const sheet *table, int column, const inspect_effect *effect, int64_t valid)
{
  switch (table->rows) {
  case 0:
    set(table, column, "%.4g", effect->loss);
    break;
  case 1:
    set_tokens(table, column, effect->trust_region_tokens, valid);
    break;
  case 2:
    set_tokens(table, column, effect->masked_tokens, valid);
    break;
  case 3:
    set_tokens(table, column, effect->clipped_tokens, valid);
    break;
  case 4:
    set(table, column, "%.4g", effect->m2_before);
    break;
  case 5:
    set(table, column, "%.4g", effect->m2_after);
    break;
  default:
    if (isnan(effect->cut)) {
      set(table, column, "none");
    } else {
      set(table, column, "%.4g", effect->cut);
    }
  }
}

// From a quarter of the middle to four times it.
static void add_sweep(const inspect_report *report, sheet *table)
{
  const int middle = INSPECT_SWEEP_POINTS / 2;
  const int reach = 2 * INSPECT_SWEEP_OCTAVE;
  bool swept = false;
  for (int i = 0; i < report->count; ++i) {
    swept = swept || report->effects[i].swept;
  }
  for (int point = middle - reach; swept && point <= middle + reach;
       point += INSPECT_SWEEP_OCTAVE) {
    set(table, 0, "masked at " INSPECT_THRESHOLD " %.4g", inspect_sweep_threshold(point));
    for (int i = 0; i < report->count; ++i) {
      if (report->effects[i].swept) {
        set(table, i + 1, "%.2f %%", 100 * report->effects[i].sweep[point]);
      } else {
        set(table, i + 1, "-");
      }
    }
    ++table->rows;
  }
}

static void print_effects(const inspect_report *report)
{
  cli_row heading = {{""}};
  sheet table = sheet_of(report->count + 1, COUNT_ROWS + INSPECT_SWEEP_POINTS);
  for (; table.rows < COUNT_ROWS; ++table.rows) {
    set(&table, 0, "%s", LABELS[table.rows]);
    for (int i = 0; i < report->count; ++i) {
      heading.cells[i + 1] = report->effects[i].name;
      set_count(&table, i + 1, &report->effects[i], report->batch->valid_tokens);
    }
  }
  add_sweep(report, &table);
  print_sheet(&table, &heading);
}

// ------------------------------------------------------------------------------------------ losses

// Bytes of the UTF-8 character that begins with `lead`.
static int character_size(unsigned char lead)
{
  return lead < 0xC0U ? 1 : lead < 0xE0U ? 2 : lead < 0xF0U ? 3 : 4;
}

// Text with its control characters shown, C1 (two bytes of UTF-8) too; cut between characters.
static void add_visible(rft_phrase *phrase, const char *text)
{
  while (*text != '\0') {
    const unsigned char c = (unsigned char)*text;
    const int size = character_size(c);
    if (phrase->length + (size_t)size >= phrase->size) {
      phrase->cut = true;
      return;
    }
    if (c == '\n') {
      rft_phrase_add(phrase, "\\n");
    } else if (c < 0x20U || c == 0x7FU || (c == 0xC2U && (unsigned char)text[1] < 0xA0U)) {
      rft_phrase_add(phrase, "?");
    } else {
      rft_phrase_add(phrase, "%.*s", size, text);
    }
    text += size;
  }
}

static void set_text(const sheet *table, int column, const char *text)
{
  char visible[sizeof(cell) - sizeof "''..."];
  rft_phrase phrase = rft_phrase_in(visible, sizeof visible);
  if (text == NULL) {
    set(table, column, "-");
  } else {
    add_visible(&phrase, text);
    set(table, column, "'%s'%s", visible, phrase.cut ? "..." : "");
  }
}

static const char *state_name(const inspect_effect *effect, int64_t position)
{
  return effect->states[position] == INSPECT_MASKED ? "masked" : "clipped";
}

static void print_tokens(const inspect_report *report, int index)
{
  const inspect_batch *const batch = report->batch;
  const inspect_effect *const effect = &report->effects[index];
  const inspect_losses *const losses = &report->losses[index];
  const cli_row heading = {
      {"SEQUENCE", "POSITION", "LOST", "ADVANTAGE", "LOG-RATIO", "RATIO", "TEXT"}};
  sheet table = sheet_of(7, losses->token_count);
  for (; table.rows < losses->token_count; ++table.rows) {
    const int64_t at = losses->tokens[table.rows];
    const int64_t row = inspect_batch_row(batch, at);
    set(&table, 0, "%" PRId64, row);
    set(&table, 1, "%" PRId64, at - cli_batch_positions(batch->source, row));
    set(&table, 2, "%s", state_name(effect, at));
    set(&table, 3, "%.4g", batch->advantage[at]);
    set(&table, 4, "%.4g", effect->log_ratio[at]);
    set(&table, 5, "%.4g", exp(effect->log_ratio[at]));
    set_text(&table, 6, inspect_batch_text(batch, row, at));
  }
  printf("%s: tokens without a gradient, by log-ratio\n", effect->name);
  print_sheet(&table, &heading);
}

static void set_group(const sheet *table, const inspect_group *group)
{
  set(table, 1, "%" PRId64, group->masked_tokens);
  set(table, 2, "%" PRId64, group->clipped_tokens);
  set(table, 3, "%" PRId64, group->valid_tokens);
}

static void print_texts(const inspect_report *report, int index)
{
  const inspect_losses *const losses = &report->losses[index];
  const cli_row heading = {{"TEXT", "MASKED", "CLIPPED", "OF"}};
  sheet table = sheet_of(4, losses->text_count);
  for (; table.rows < losses->text_count; ++table.rows) {
    const inspect_group *const group = &losses->texts[table.rows];
    set_text(&table, 0, group->text);
    set_group(&table, group);
  }
  printf("%s: texts without a gradient\n", report->effects[index].name);
  print_sheet(&table, &heading);
}

// A sequence's valid tokens, the lost ones in brackets, as far as a few lines of a terminal hold.
enum { SEQUENCE_TEXT_SIZE = 400 };
static void print_sequence(const inspect_report *report, int index, const inspect_group *group)
{
  const inspect_batch *const batch = report->batch;
  const int64_t end = cli_batch_positions(batch->source, group->row + 1);
  char text[SEQUENCE_TEXT_SIZE];
  rft_phrase phrase = rft_phrase_in(text, sizeof text);
  for (int64_t i = cli_batch_positions(batch->source, group->row); i < end; ++i) {
    if (batch->valid[i]) {
      const bool lost = inspect_is_lost(report->effects[index].states[i]);
      rft_phrase_add(&phrase, lost ? "[" : "");
      add_visible(&phrase, inspect_batch_text(batch, group->row, i));
      rft_phrase_add(&phrase, lost ? "]" : "");
    }
  }
  printf("    %s%s\n", text, phrase.cut ? "..." : "");
}

static void print_sequences(const inspect_report *report, int index)
{
  const inspect_losses *const losses = &report->losses[index];
  printf("%s: sequences that lost most%s\n", report->effects[index].name,
         report->batch->text == NULL ? "" : ", lost tokens in brackets");
  for (int64_t i = 0; i < losses->sequence_count; ++i) {
    const inspect_group *const group = &losses->sequences[i];
    printf("  sequence %" PRId64 ": %" PRId64 " masked, %" PRId64 " clipped of %" PRId64 "\n",
           group->row, group->masked_tokens, group->clipped_tokens, group->valid_tokens);
    if (report->batch->text != NULL) {
      print_sequence(report, index, group);
    }
  }
  putchar('\n');
}

static void print_losses(const inspect_report *report, int index)
{
  const inspect_losses *const losses = &report->losses[index];
  if (losses->token_count > 0) {
    print_tokens(report, index);
    if (losses->text_count > 0) {
      print_texts(report, index);
    }
    print_sequences(report, index);
  }
}

// ------------------------------------------------------------------------------------------ report

int inspect_print_text(const inspect_report *report)
{
  size_t index;
  json_t *item;
  print_batch(report->batch);
  print_effects(report);
  for (int i = 0; i < report->count; ++i) {
    print_losses(report, i);
  }
  json_array_foreach(report->warnings, index, item)
  {
    printf("warning: %s\n", json_string_value(json_object_get(item, "message")));
  }
  if (json_array_size(report->warnings) == 0) {
    puts("no warnings");
  }
  json_array_foreach(report->files, index, item)
  {
    printf("wrote %s\n", json_string_value(item));
  }
  return CLI_OK;
}
