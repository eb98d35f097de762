// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "inspect_losses.h"

#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------------------ tokens

typedef struct lost_token {
  int64_t position;
  double size;
} lost_token;

static int larger_first(const void *left, const void *right)
{
  const lost_token *const a = left;
  const lost_token *const b = right;
  const int by_size = (a->size < b->size) - (a->size > b->size);
  return by_size != 0 ? by_size : (a->position > b->position) - (a->position < b->position);
}

static void find_tokens(const inspect_batch *batch, const inspect_effect *effect, int64_t most,
                        inspect_losses *losses)
{
  const int64_t lost = effect->masked_tokens + effect->clipped_tokens;
  lost_token *const tokens = cli_allocate((size_t)lost, sizeof *tokens);
  int64_t count = 0;
  for (int64_t i = 0; i < batch->positions; ++i) {
    if (inspect_is_lost(effect->states[i])) {
      tokens[count++] = (lost_token){.position = i, .size = fabs(effect->log_ratio[i])};
    }
  }
  qsort(tokens, (size_t)count, sizeof *tokens, larger_first);
  losses->token_count = count < most ? count : most;
  losses->tokens = cli_allocate((size_t)losses->token_count, sizeof *losses->tokens);
  for (int64_t i = 0; i < losses->token_count; ++i) {
    losses->tokens[i] = tokens[i].position;
  }
  free(tokens);
}

// ------------------------------------------------------------------------------------------ groups

static void add_token(inspect_group *group, inspect_state state)
{
  group->valid_tokens += state != INSPECT_INVALID;
  group->masked_tokens += state == INSPECT_MASKED;
  group->clipped_tokens += state == INSPECT_CLIPPED;
}

static int64_t lost_of(const inspect_group *group)
{
  return group->masked_tokens + group->clipped_tokens;
}

static int most_lost_first(const void *left, const void *right)
{
  const inspect_group *const a = left;
  const inspect_group *const b = right;
  const int by_lost = (lost_of(a) < lost_of(b)) - (lost_of(a) > lost_of(b));
  const int by_row = (a->row > b->row) - (a->row < b->row);
  return by_lost != 0                     ? by_lost
         : by_row != 0 || a->text == NULL ? by_row
                                          : strcmp(a->text, b->text);
}

// Sorts, and gives how many are worth telling.
static int64_t rank(inspect_group *groups, int64_t count, int64_t most)
{
  qsort(groups, (size_t)count, sizeof *groups, most_lost_first);
  int64_t told = 0;
  while (told < count && told < most && lost_of(&groups[told]) > 0) {
    ++told;
  }
  return told;
}

static void find_sequences(const inspect_batch *batch, const inspect_effect *effect, int64_t most,
                           inspect_losses *losses)
{
  const int64_t rows = batch->source->rows;
  losses->sequences = cli_allocate((size_t)rows, sizeof *losses->sequences);
  for (int64_t row = 0; row < rows; ++row) {
    losses->sequences[row].row = row;
    const int64_t end = cli_batch_positions(batch->source, row + 1);
    for (int64_t i = cli_batch_positions(batch->source, row); i < end; ++i) {
      add_token(&losses->sequences[row], effect->states[i]);
    }
  }
  losses->sequence_count = rank(losses->sequences, rows, most);
}

// The group of a text; `index` maps texts to groups.
static inspect_group *group_of(inspect_losses *losses, json_t *index, const char *text, int64_t row)
{
  const json_t *const known = json_object_get(index, text);
  if (known != NULL) {
    return &losses->texts[json_integer_value(known)];
  }
  inspect_group *const group = &losses->texts[losses->text_count];
  *group = (inspect_group){.text = text, .row = row};
  json_object_set_new(index, text, json_integer(losses->text_count));
  losses->text_count += 1;
  return group;
}

static void find_texts(const inspect_batch *batch, const inspect_effect *effect, int64_t most,
                       inspect_losses *losses)
{
  if (batch->text == NULL) {
    return;
  }
  json_t *const index = json_object();
  losses->texts = cli_allocate((size_t)batch->valid_tokens, sizeof *losses->texts);
  for (int64_t row = 0; row < batch->source->rows; ++row) {
    const int64_t end = cli_batch_positions(batch->source, row + 1);
    for (int64_t i = cli_batch_positions(batch->source, row); i < end; ++i) {
      if (batch->valid[i]) {
        const char *const text = inspect_batch_text(batch, row, i);
        add_token(group_of(losses, index, text, row), effect->states[i]);
      }
    }
  }
  json_decref(index);
  losses->text_count = rank(losses->texts, losses->text_count, most);
}

void inspect_losses_find(const inspect_batch *batch, const inspect_effect *effect, int64_t most,
                         inspect_losses *losses)
{
  *losses = (inspect_losses){.tokens = NULL};
  find_tokens(batch, effect, most, losses);
  find_texts(batch, effect, most, losses);
  find_sequences(batch, effect, most, losses);
}

void inspect_losses_free(inspect_losses *losses)
{
  free(losses->tokens);
  free(losses->texts);
  free(losses->sequences);
}
