// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Padding is recognised by what trainers fill it with: zeros (or what is not finite), or the end
// marker's text over and over. Where a tensor changes from filling to content, mask and tensor
// should change together. A position where the tensor and its neighbour differ tells whether the
// mask goes with the one or with the other; a zero within an answer gives one vote to each side.

#include "inspect_shift.h"

#include <math.h>
#include <string.h>

#define MAJORITY 0.8
enum { FEWEST_VOTES = 3 };

static inspect_shift judge(int by, const char *evidence, int64_t votes, int64_t asked)
{
  const bool convinced = votes >= FEWEST_VOTES && (double)votes >= MAJORITY * (double)asked;
  return (inspect_shift){
      .by = convinced ? by : 0, .evidence = evidence, .votes = votes, .asked = asked};
}

// ----------------------------------------------------------------------------------------- filling

static bool is_content(const double *values, int64_t position)
{
  return isfinite(values[position]) && values[position] != 0;
}

// A mask that is late by one goes with the content of the position before.
static inspect_shift compare(const inspect_batch *batch, const double *values, int by,
                             const char *evidence)
{
  int64_t asked = 0;
  int64_t votes = 0;
  for (int64_t row = 0; row < batch->source->rows; ++row) {
    const int64_t end = cli_batch_positions(batch->source, row + 1);
    for (int64_t i = cli_batch_positions(batch->source, row) + 1; i < end - 1; ++i) {
      const bool beside = is_content(values, i - by);
      if (is_content(values, i) != beside) {
        asked += 1;
        votes += batch->valid[i] == beside;
      }
    }
  }
  return judge(by, evidence, votes, asked);
}

// -------------------------------------------------------------------------------------------- text

// "<|im_end|>", "</s>": what tokenizers call their special tokens.
static bool is_special(const char *text)
{
  const size_t length = strlen(text);
  return length > 2 && text[0] == '<' && text[length - 1] == '>';
}

// The position of the end marker of a row that ends in padding, or -1. The padding is a text that
// repeats to the row's end; it is the end marker over again, or follows another.
static int64_t end_marker(const inspect_batch *batch, int64_t row)
{
  const int64_t start = cli_batch_positions(batch->source, row);
  const int64_t end = cli_batch_positions(batch->source, row + 1);
  const char *const padding = end - start < 3 ? "" : inspect_batch_text(batch, row, end - 1);
  int64_t first = end - 1;
  while (first > start && strcmp(inspect_batch_text(batch, row, first - 1), padding) == 0) {
    --first;
  }
  if (!is_special(padding) || end - first < 2 || first == start) {
    return -1;
  }
  return is_special(inspect_batch_text(batch, row, first - 1)) ? first - 1 : first;
}

// Whether the valid tokens end at a position.
static bool ends_at(const inspect_batch *batch, int64_t position, int64_t row)
{
  const int64_t next = position + 1;
  return position >= cli_batch_positions(batch->source, row) && batch->valid[position] &&
         (next == cli_batch_positions(batch->source, row + 1) || !batch->valid[next]);
}

static inspect_shift compare_text(const inspect_batch *batch, int by, const char *evidence)
{
  int64_t asked = 0;
  int64_t votes = 0;
  for (int64_t row = 0; batch->text != NULL && row < batch->source->rows; ++row) {
    const int64_t marker = end_marker(batch, row);
    if (marker >= 0) {
      asked += 1;
      votes += ends_at(batch, marker + by, row);
    }
  }
  return judge(by, evidence, votes, asked);
}

// -------------------------------------------------------------------------------------------- find

inspect_shift inspect_shift_find(const inspect_batch *batch)
{
  const struct {
    const double *values;
    const char *evidence;
  } filled[] = {{batch->logprob, "positions at the edge of what logprob is filled with"},
                {batch->old_logprob, "positions at the edge of what old_logprob is filled with"},
                {batch->advantage, "positions at the edge of what advantages is filled with"}};
  inspect_shift shift = {.by = 0};
  for (int by = 1; shift.by == 0 && by >= -1; by -= 2) {
    for (size_t i = 0; shift.by == 0 && i < sizeof filled / sizeof filled[0]; ++i) {
      shift = compare(batch, filled[i].values, by, filled[i].evidence);
    }
    if (shift.by == 0) {
      shift = compare_text(batch, by, "sequences whose end marker is followed by padding");
    }
  }
  return shift;
}
