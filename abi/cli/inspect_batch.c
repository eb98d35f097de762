// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "inspect_batch.h"

#include "cli.h"
#include "support/batch_view.h"
#include "support/error.h"
#include "support/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------------ values

typedef struct column {
  const char *name;
  double *values; // [positions]; NULL: the batch doesn't have it
} column;

static int32_t check_finite(const inspect_batch *batch, const column *columns, int count,
                            rft_error *error)
{
  for (int i = 0; i < count; ++i) {
    for (int64_t at = 0; columns[i].values != NULL && at < batch->positions; ++at) {
      if (batch->valid[at] && !isfinite(columns[i].values[at])) {
        char number[RFT_NUMBER_TEXT_SIZE];
        const int64_t row = inspect_batch_row(batch, at);
        return rft_fail(error, RFT_OUT_OF_RANGE,
                        "%s: tensor \"%s\" at valid token %" PRId64 " of sequence %" PRId64
                        ": expected a finite number, found %s",
                        batch->source->path, columns[i].name,
                        at - cli_batch_positions(batch->source, row), row,
                        rft_number_text(number, columns[i].values[at]));
      }
    }
  }
  return RFT_OK;
}

static double *load(const rft_view *view, int64_t count)
{
  double *const values = cli_allocate((size_t)count, sizeof *values);
  rft_view_load(view, 0, count, values);
  return values;
}

// Log-ratio of a policy's log-probs.
static double *subtract(const inspect_batch *batch, const double *logprob)
{
  double *const values = cli_allocate((size_t)batch->positions, sizeof *values);
  for (int64_t i = 0; i < batch->positions; ++i) {
    values[i] = batch->valid[i] ? logprob[i] - batch->old_logprob[i] : 0;
  }
  return values;
}

static void count_valid(inspect_batch *batch, const double *mask)
{
  for (int64_t row = 0; row < batch->source->rows; ++row) {
    const int64_t before = batch->valid_tokens;
    const int64_t end = cli_batch_positions(batch->source, row + 1);
    for (int64_t i = cli_batch_positions(batch->source, row); i < end; ++i) {
      batch->valid[i] = mask[i] != 0;
      batch->valid_tokens += batch->valid[i];
    }
    const int64_t length = batch->valid_tokens - before;
    batch->longest = length > batch->longest ? length : batch->longest;
  }
}

static int32_t read_values(const rft_batch_view *view, inspect_batch *batch, rft_error *error)
{
  const int64_t count = batch->positions;
  double *const mask = load(&view->mask, count);
  batch->valid = cli_allocate((size_t)count, sizeof *batch->valid);
  count_valid(batch, mask);
  free(mask);
  batch->logprob = load(&view->logprob, count);
  batch->old_logprob = load(&view->old_logprob, count);
  batch->advantage = cli_allocate((size_t)count, sizeof *batch->advantage);
  rft_batch_view_load_advantages(view, 0, count, batch->advantage);
  double *const proximal =
      rft_view_present(&view->proximal_logprob) ? load(&view->proximal_logprob, count) : NULL;
  const column columns[] = {{"logprob", batch->logprob},
                            {"old_logprob", batch->old_logprob},
                            {"proximal_logprob", proximal},
                            {"advantages", batch->advantage}};
  const int32_t code = check_finite(batch, columns, sizeof columns / sizeof columns[0], error);
  batch->log_ratio = subtract(batch, batch->logprob);
  batch->proximal_log_ratio = proximal == NULL ? NULL : subtract(batch, proximal);
  free(proximal);
  return code;
}

// ---------------------------------------------------------------------------------------- metadata

static void read_staleness(inspect_batch *batch)
{
  const char *const text = rft_safetensors_metadata(batch->source->file, "staleness");
  char *end = NULL;
  errno = 0;
  const long long value =
      text == NULL || text[0] < '0' || text[0] > '9' ? -1 : strtoll(text, &end, 10);
  if (value >= 0 && *end == '\0' && errno == 0) {
    batch->staleness = value;
  }
}

// Token texts are for people: a fault in them leaves the numbers as good as they were.
static int32_t check_text(const inspect_batch *batch, rft_error *error)
{
  const size_t rows = (size_t)batch->source->rows;
  if (!json_is_array(batch->text) || json_array_size(batch->text) != rows) {
    return rft_fail(
        error, RFT_INVALID_ARGUMENT, "expected a JSON array of %zu rows, found %s of %zu", rows,
        json_is_array(batch->text) ? "one" : "another value", json_array_size(batch->text));
  }
  for (size_t i = 0; i < rows; ++i) {
    const json_t *const row = json_array_get(batch->text, i);
    const size_t tokens = (size_t)(cli_batch_positions(batch->source, (int64_t)i + 1) -
                                   cli_batch_positions(batch->source, (int64_t)i));
    if (json_array_size(row) != tokens) {
      return rft_fail(error, RFT_INVALID_ARGUMENT, "expected %zu strings in row %zu, found %zu",
                      tokens, i, json_array_size(row));
    }
    for (size_t j = 0; j < tokens; ++j) {
      if (!json_is_string(json_array_get(row, j))) {
        char found[RFT_JSON_BRIEF_SIZE];
        return rft_fail(error, RFT_INVALID_ARGUMENT,
                        "expected a string for token %zu of row %zu, found %s", j, i,
                        rft_json_brief(found, json_array_get(row, j)));
      }
    }
  }
  return RFT_OK;
}

static void read_text(inspect_batch *batch)
{
  const char *const text = rft_safetensors_metadata(batch->source->file, "token_text");
  if (text == NULL) {
    return;
  }
  rft_error error = {.struct_size = sizeof error};
  int32_t code = rft_json_parse("the text", text, (int64_t)strlen(text), &batch->text, &error);
  if (code == RFT_OK) {
    code = check_text(batch, &error);
  }
  if (code != RFT_OK) {
    json_decref(batch->text);
    batch->text = NULL;
    batch->text_fault = strcpy(cli_allocate(strlen(error.message) + 1, 1), error.message);
  }
}

// -------------------------------------------------------------------------------------------- read

int32_t inspect_batch_read(const cli_batch *source, int64_t staleness, inspect_batch *batch,
                           rft_error *error)
{
  *batch = (inspect_batch){.source = source,
                           .positions = cli_batch_positions(source, source->rows),
                           .staleness = staleness};
  cli_slice whole;
  rft_batch_view view;
  rft_error problem = {.struct_size = sizeof problem};
  cli_slice_make(source, 0, source->rows, &whole);
  int32_t code = rft_batch_view_open(&whole.batch, &view, &problem);
  if (code != RFT_OK) {
    rft_fail(error, code, "%s: %s", source->path, problem.message);
  } else {
    code = read_values(&view, batch, error);
  }
  cli_slice_free(&whole);
  if (staleness == INSPECT_STALENESS_UNKNOWN) {
    read_staleness(batch);
  }
  read_text(batch);
  return code;
}

void inspect_batch_free(inspect_batch *batch)
{
  free(batch->valid);
  free(batch->logprob);
  free(batch->old_logprob);
  free(batch->advantage);
  free(batch->log_ratio);
  free(batch->proximal_log_ratio);
  free(batch->text_fault);
  json_decref(batch->text);
}

const char *inspect_batch_text(const inspect_batch *batch, int64_t row, int64_t position)
{
  const int64_t token = position - cli_batch_positions(batch->source, row);
  return json_string_value(json_array_get(json_array_get(batch->text, (size_t)row), (size_t)token));
}

int64_t inspect_batch_row(const inspect_batch *batch, int64_t position)
{
  int64_t low = 0; // the last row that starts at or before `position`
  int64_t high = batch->source->rows;
  while (high - low > 1) {
    const int64_t middle = low + ((high - low) / 2);
    if (cli_batch_positions(batch->source, middle) <= position) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// ------------------------------------------------------------------------------------------ spread

const double inspect_quantile_levels[INSPECT_QUANTILES] = {0,    0.01, 0.05, 0.25, 0.5,
                                                           0.75, 0.95, 0.99, 1};

static int ascending(const void *left, const void *right)
{
  const double a = *(const double *)left;
  const double b = *(const double *)right;
  return (a > b) - (a < b);
}

// The value at the level's rank: one that a token has. `values` are sorted.
static inspect_spread spread_of(const double *values, int64_t count)
{
  inspect_spread spread = {.mean = 0};
  double squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    spread.mean += values[i] / (double)count;
    squares += values[i] * values[i] / (double)count;
  }
  spread.root_mean_square = sqrt(squares);
  for (int i = 0; count > 0 && i < INSPECT_QUANTILES; ++i) {
    spread.quantiles[i] = values[(int64_t)round(inspect_quantile_levels[i] * (double)(count - 1))];
  }
  return spread;
}

void inspect_batch_spread(const inspect_batch *batch, inspect_spread *log_ratio,
                          inspect_spread *ratio)
{
  double *const values = cli_allocate((size_t)batch->valid_tokens, sizeof *values);
  int64_t count = 0;
  for (int64_t i = 0; i < batch->positions; ++i) {
    if (batch->valid[i]) {
      values[count++] = batch->log_ratio[i];
    }
  }
  qsort(values, (size_t)count, sizeof *values, ascending);
  *log_ratio = spread_of(values, count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = exp(values[i]);
  }
  *ratio = spread_of(values, count);
  free(values);
}
