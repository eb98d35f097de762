// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// One page without a script: which preset's tokens are marked is a radio button's business.

#include "inspect_plots.h"

#include <inttypes.h>
#include <math.h>

// Log-ratio that is shown in full colour.
#define STRONG 2.0

// A browser's patience: sequences after so many tokens are left out, and counted.
enum { MOST_TOKENS = 200000 };

// Positions that are not valid are shown beside valid ones only, so many.
enum { MARGIN = 2 };

static void write_escaped(const char *text, FILE *file)
{
  for (; *text != '\0'; ++text) {
    const unsigned char c = (unsigned char)*text;
    if (c == '\n') {
      fputs("&#8629;", file);
    } else if (c == '&' || c == '<' || c == '>' || c == '"' || c == '\'' || c < 0x20U) {
      fprintf(file, "&#%d;", c < 0x20U ? 0x2400 + c : c);
    } else {
      fputc(c, file);
    }
  }
}

// ------------------------------------------------------------------------------------------- style

static void write_style(int count, FILE *file)
{
  fputs(
      "<style>\n"
      "body{font:15px/1.5 sans-serif;color:#222;max-width:1100px;margin:24px auto;padding:0 16px}\n"
      "h2{font-size:15px;margin:18px 0 4px;font-weight:600}\n"
      "p{margin:0;white-space:pre-wrap;font:14px/1.9 monospace}\n"
      "b,i{font-weight:400;font-style:normal;padding:2px 0;border-right:1px solid #fff}\n"
      "i{color:#aaa}\nimg{width:49%;min-width:420px;vertical-align:top}\n.n{display:none;font-"
      "weight:400}\n"
      ".legend b{padding:2px 6px;margin-right:8px}\n"
      ".masked{text-decoration:line-through 1px #c00000;outline:2px solid #c00000}\n"
      ".clipped{outline:2px dashed #E69F00}\n",
      file);
  for (int i = 0; i < count; ++i) {
    fprintf(file,
            "#e%d:checked~main .m%d{text-decoration:line-through 1px #c00000;outline:2px solid "
            "#c00000}\n#e%d:checked~main .c%d{outline:2px dashed #E69F00}\n"
            "#e%d:checked~main .n%d{display:inline}\n"
            "#e%d:checked~#lost:checked~main .k%d{display:none}\n",
            i, i, i, i, i, i, i, i);
  }
  fputs("</style>\n", file);
}

static void write_controls(const inspect_report *report, FILE *file)
{
  for (int i = 0; i < report->count; ++i) {
    const inspect_effect *const effect = &report->effects[i];
    fprintf(file,
            "<input type=radio name=effect id=e%d%s> <label for=e%d>%s: %" PRId64
            " masked, %" PRId64 " clipped</label><br>\n",
            i, i == 0 ? " checked" : "", i, effect->name, effect->masked_tokens,
            effect->clipped_tokens);
  }
  fputs("<input type=checkbox id=lost> <label for=lost>only sequences that lost a token</label>\n",
        file);
}

static void write_head(const inspect_report *report, FILE *file)
{
  const inspect_batch *const batch = report->batch;
  fputs("<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n<title>", file);
  write_escaped(batch->source->path, file);
  fputs("</title>\n", file);
  write_style(report->count, file);
  fputs("<h1>", file);
  write_escaped(batch->source->path, file);
  fprintf(file, "</h1>\n<div>%" PRId64 " sequences, %" PRId64 " valid tokens</div>\n",
          batch->source->rows, batch->valid_tokens);
  size_t index;
  json_t *warning;
  json_array_foreach(report->warnings, index, warning)
  {
    fputs("<div><strong>Warning:</strong> ", file);
    write_escaped(json_string_value(json_object_get(warning, "message")), file);
    fputs("</div>\n", file);
  }
  fputs("<div><img src=log-ratios.svg alt='log-ratios'> <img src=masked-along.svg alt='masked "
        "fraction along the sequence'> <img src=threshold-sweep.svg alt='masked fraction against "
        "the threshold'></div>\n",
        file);
  write_controls(report, file);
  fputs("<main>\n<div class=legend><b style='background:#D55E0099'>likelier now</b> "
        "<b style='background:#0072B299'>less likely now</b> <b class=masked>masked</b> "
        "<b class=clipped>clipped</b> <i>not valid</i></div>\n",
        file);
}

// ------------------------------------------------------------------------------------------ tokens

static void write_text(const inspect_batch *batch, int64_t row, int64_t position, FILE *file)
{
  const char *const text = inspect_batch_text(batch, row, position);
  if (text != NULL) {
    write_escaped(text, file);
  } else {
    fprintf(file, " %" PRId64, position - cli_batch_positions(batch->source, row));
  }
}

static void write_token(const inspect_report *report, int64_t row, int64_t position, FILE *file)
{
  const inspect_batch *const batch = report->batch;
  const double log_ratio = batch->log_ratio[position];
  const int strength = (int)lround(160 * fmin(fabs(log_ratio) / STRONG, 1));
  fprintf(file, "<b style=background:#%s%02X title='log-ratio %.3g, ratio %.3g, advantage %.3g' ",
          log_ratio > 0 ? "D55E00" : "0072B2", strength, log_ratio, exp(log_ratio),
          batch->advantage[position]);
  fputs("class='t", file);
  for (int i = 0; i < report->count; ++i) {
    const inspect_state state = (inspect_state)report->effects[i].states[position];
    if (inspect_is_lost(state)) {
      fprintf(file, " %c%d", state == INSPECT_MASKED ? 'm' : 'c', i);
    }
  }
  fputs("'>", file);
  write_text(batch, row, position, file);
  fputs("</b>", file);
}

static bool near_valid(const inspect_batch *batch, int64_t position, int64_t start, int64_t end)
{
  for (int64_t i = position - MARGIN; i <= position + MARGIN; ++i) {
    if (i >= start && i < end && batch->valid[i]) {
      return true;
    }
  }
  return false;
}

static void write_tokens(const inspect_report *report, int64_t row, FILE *file)
{
  const inspect_batch *const batch = report->batch;
  const int64_t start = cli_batch_positions(batch->source, row);
  const int64_t end = cli_batch_positions(batch->source, row + 1);
  int64_t hidden = 0;
  for (int64_t i = start; i <= end; ++i) {
    const bool shown = i < end && near_valid(batch, i, start, end);
    if (hidden > 0 && (shown || i == end)) {
      fprintf(file, "<i> (%" PRId64 " more)</i>", hidden);
      hidden = 0;
    }
    if (shown && batch->valid[i]) {
      write_token(report, row, i, file);
    } else if (shown) {
      fputs("<i>", file);
      write_text(batch, row, i, file);
      fputs("</i>", file);
    }
    hidden += !shown;
  }
}

// --------------------------------------------------------------------------------------- sequences

typedef struct tally {
  int64_t valid;
  int64_t masked;
  int64_t clipped;
  double least; // advantage
  double most;
} tally;

static tally count_row(const inspect_report *report, int64_t row, int index)
{
  const inspect_batch *const batch = report->batch;
  const int64_t end = cli_batch_positions(batch->source, row + 1);
  tally total = {.least = INFINITY, .most = -INFINITY};
  for (int64_t i = cli_batch_positions(batch->source, row); i < end; ++i) {
    const unsigned char state = report->effects[index].states[i];
    if (state != INSPECT_INVALID) {
      total.valid += 1;
      total.masked += state == INSPECT_MASKED;
      total.clipped += state == INSPECT_CLIPPED;
      total.least = fmin(total.least, batch->advantage[i]);
      total.most = fmax(total.most, batch->advantage[i]);
    }
  }
  return total;
}

static void write_advantage(const tally *total, FILE *file)
{
  if (total->valid > 0 && total->least == total->most) {
    fprintf(file, ", advantage %.3g", total->least);
  } else if (total->valid > 0) {
    fprintf(file, ", advantages from %.3g to %.3g", total->least, total->most);
  }
}

static void write_sequence(const inspect_report *report, int64_t row, FILE *file)
{
  tally totals[INSPECT_MOST_EFFECTS] = {{0}};
  fputs("<section class='", file);
  for (int i = 0; i < report->count; ++i) {
    totals[i] = count_row(report, row, i);
    if (totals[i].masked + totals[i].clipped == 0) {
      fprintf(file, " k%d", i);
    }
  }
  fprintf(file, "'><h2>Sequence %" PRId64, row);
  write_advantage(&totals[0], file);
  for (int i = 0; i < report->count; ++i) {
    fprintf(file,
            "<span class='n n%d'>: %" PRId64 " masked, %" PRId64 " clipped of %" PRId64 "</span>",
            i, totals[i].masked, totals[i].clipped, totals[i].valid);
  }
  fputs("</h2><p>", file);
  write_tokens(report, row, file);
  fputs("</p></section>\n", file);
}

void inspect_page_write(const inspect_report *report, FILE *file)
{
  const cli_batch *const source = report->batch->source;
  int64_t row = 0;
  write_head(report, file);
  for (; row < source->rows && (row == 0 || cli_batch_positions(source, row + 1) <= MOST_TOKENS);
       ++row) {
    write_sequence(report, row, file);
  }
  if (row < source->rows) {
    fprintf(file,
            "<p>%" PRId64 " more sequences are left out: a page of all would be too large</p>",
            source->rows - row);
  }
  fputs("</main>\n</html>\n", file);
}
