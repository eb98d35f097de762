// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The task "word_problems": stories in k steps, in the style of GSM8K (arXiv 2110.14168), as "A
// baker has 14 cups, buys 6, breaks 3 and doubles them." An answer works the story out: how many
// there are after each step, two digits each. The reward looks at the last number alone.
//
// The policy reads step by step: it sees a step and the number that it wrote after the last one, so
// that a slip stays with it to the end.

#include "task.h"

#include <limits.h>
#include <string.h>

enum { NUMBER_DIGITS = 2, NUMBER_LIMIT = 100 };

typedef enum effect { ADD, SUBTRACT, DOUBLE, HALVE } effect;

typedef struct verb {
  const char *text;
  effect effect;
} verb;

static const char *const holders[] = {"baker", "child", "farmer", "library", "school", "shop"};
static const char *const items[] = {"apples", "books", "cards", "coins", "cups", "stamps"};
static const verb verbs[] = {
    {"buys", ADD},
    {"collects", ADD},
    {"finds", ADD},
    {"is given", ADD},
    {"breaks", SUBTRACT},
    {"gives away", SUBTRACT},
    {"loses", SUBTRACT},
    {"sells", SUBTRACT},
    {"doubles", DOUBLE},
    {"gets as many again as", DOUBLE},
    {"keeps half of", HALVE},
    {"parts with half of", HALVE},
};
enum {
  HOLDERS = sizeof holders / sizeof holders[0],
  ITEMS = sizeof items / sizeof items[0],
  VERBS = sizeof verbs / sizeof verbs[0],
  FIRST_HOLDER = TASK_FIRST_WORD,
  FIRST_ITEM = FIRST_HOLDER + HOLDERS,
  FIRST_VERB = FIRST_ITEM + ITEMS,
  THEM = FIRST_VERB + VERBS, // where a verb takes no number
  WORDS = THEM + 1 - TASK_FIRST_WORD
};

// Where things stand in a prompt: holder, number, item, then a verb and its object for each step.
enum { NUMBER_AT = 1, ITEM_AT = NUMBER_AT + NUMBER_DIGITS, STEPS_AT, STEP_LENGTH = 2 };

// And in a row: the number so far, the step, the digits of the next number but the last.
enum { ROW_STEP_AT = NUMBER_DIGITS, ROW_NEXT_AT = ROW_STEP_AT + STEP_LENGTH };

static void measure(train_task *self)
{
  self->prompt_length = STEPS_AT + STEP_LENGTH * self->size;
  self->answer_length = NUMBER_DIGITS * self->size;
  self->result_length = NUMBER_DIGITS;
  self->row_length = ROW_NEXT_AT + NUMBER_DIGITS - 1;
}

static bool takes_number(effect of)
{
  return of == ADD || of == SUBTRACT;
}

// What a step leaves of `total`; below 0 or NUMBER_LIMIT and more: not a step to tell of.
static int64_t take_step(effect of, int64_t total, int64_t number)
{
  switch (of) {
  case ADD:
    return total + number;
  case SUBTRACT:
    return total - number;
  case DOUBLE:
    return total > 0 ? 2 * total : -1;
  case HALVE:
    return total > 0 && total % 2 == 0 ? total / 2 : -1;
  }
  return -1;
}

static uint8_t draw_word(train_rng *generator, int first, int count)
{
  return (uint8_t)(first + rng_below(generator, count));
}

static int64_t draw_step(train_rng *generator, int64_t total, uint8_t *step)
{
  int64_t left = -1;
  while (left < 0 || left >= NUMBER_LIMIT) {
    const int64_t number = 1 + rng_below(generator, TASK_BASE - 1);
    step[0] = draw_word(generator, FIRST_VERB, VERBS);
    const effect of = verbs[step[0] - FIRST_VERB].effect;
    step[1] = takes_number(of) ? (uint8_t)number : THEM;
    left = take_step(of, total, number);
  }
  return left;
}

static void draw(const train_task *self, train_rng *generator, uint8_t *prompt)
{
  int64_t total = rng_below(generator, NUMBER_LIMIT);
  prompt[0] = draw_word(generator, FIRST_HOLDER, HOLDERS);
  task_write_number(total, NUMBER_DIGITS, prompt + NUMBER_AT);
  prompt[ITEM_AT] = draw_word(generator, FIRST_ITEM, ITEMS);
  for (int64_t i = 0; i < self->size; ++i) {
    total = draw_step(generator, total, prompt + STEPS_AT + STEP_LENGTH * i);
  }
}

static void solve(const train_task *self, const uint8_t *prompt, uint8_t *answer)
{
  int64_t total = task_read_number(prompt + NUMBER_AT, NUMBER_DIGITS);
  for (int64_t i = 0; i < self->size; ++i) {
    const uint8_t *const step = prompt + STEPS_AT + STEP_LENGTH * i;
    total = take_step(verbs[step[0] - FIRST_VERB].effect, total, step[1]);
    task_write_number(total, NUMBER_DIGITS, answer + NUMBER_DIGITS * i);
  }
}

static void look(const train_task *self, const uint8_t *sequence, int64_t known, uint8_t *row)
{
  const int64_t step = known / NUMBER_DIGITS;
  const uint8_t *const answer = sequence + self->prompt_length;
  const uint8_t *const next = answer + NUMBER_DIGITS * step;
  const uint8_t *const number = step == 0 ? sequence + NUMBER_AT : next - NUMBER_DIGITS;
  memcpy(row, number, NUMBER_DIGITS);
  memcpy(row + ROW_STEP_AT, sequence + STEPS_AT + STEP_LENGTH * step, STEP_LENGTH);
  for (int64_t i = 0; i + 1 < NUMBER_DIGITS; ++i) {
    row[ROW_NEXT_AT + i] = i < known % NUMBER_DIGITS ? next[i] : TASK_UNKNOWN;
  }
}

static uint64_t identity(const train_task *self, const uint8_t *prompt)
{
  uint64_t hash = (uint64_t)task_read_number(prompt + NUMBER_AT, NUMBER_DIGITS);
  for (int64_t i = 0; i < self->size; ++i) {
    const uint8_t *const step = prompt + STEPS_AT + STEP_LENGTH * i;
    const uint64_t of = verbs[step[0] - FIRST_VERB].effect;
    hash = rng_mix(hash) ^ (of << CHAR_BIT | step[1]);
  }
  return hash;
}

static void tell(const train_task *self, const uint8_t *prompt, FILE *to)
{
  fprintf(to, "A %s has %d %s", holders[prompt[0] - FIRST_HOLDER],
          (int)task_read_number(prompt + NUMBER_AT, NUMBER_DIGITS),
          items[prompt[ITEM_AT] - FIRST_ITEM]);
  for (int64_t i = 0; i < self->size; ++i) {
    const uint8_t *const step = prompt + STEPS_AT + STEP_LENGTH * i;
    fprintf(to, "%s %s ", i + 1 < self->size ? "," : " and", verbs[step[0] - FIRST_VERB].text);
    if (step[1] == THEM) {
      fputs("them", to);
    } else {
      fprintf(to, "%d", step[1]);
    }
  }
  fputs(". How many are there after each step?", to);
}

const task_kind task_word_problems = {.name = "word_problems",
                                      .words = WORDS,
                                      .measure = measure,
                                      .draw = draw,
                                      .solve = solve,
                                      .look = look,
                                      .identity = identity,
                                      .tell = tell};
