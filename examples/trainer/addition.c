// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The task "addition": a sum of two numbers of k digits. A prompt is the 2k digits of both, an
// answer the k + 1 digits of the sum.

#include "task.h"

#include <string.h>

static void measure(train_task *self)
{
  self->prompt_length = 2 * self->size;
  self->answer_length = self->size + 1;
  self->result_length = self->answer_length;
  self->row_length = self->prompt_length + self->answer_length - 1;
}

static int64_t limit(const train_task *self)
{
  int64_t power = 1;
  for (int64_t i = 0; i < self->size; ++i) {
    power *= TASK_BASE;
  }
  return power;
}

static void draw(const train_task *self, train_rng *generator, uint8_t *prompt)
{
  task_write_number(rng_below(generator, limit(self)), self->size, prompt);
  task_write_number(rng_below(generator, limit(self)), self->size, prompt + self->size);
}

static void solve(const train_task *self, const uint8_t *prompt, uint8_t *answer)
{
  const int64_t a = task_read_number(prompt, self->size);
  const int64_t b = task_read_number(prompt + self->size, self->size);
  task_write_number(a + b, self->answer_length, answer);
}

// All of it; the last digit is never looked at.
static void look(const train_task *self, const uint8_t *sequence, int64_t known, uint8_t *row)
{
  const int64_t set = self->prompt_length + known;
  memcpy(row, sequence, (size_t)set);
  memset(row + set, TASK_UNKNOWN, (size_t)(self->row_length - set));
}

static uint64_t identity(const train_task *self, const uint8_t *prompt)
{
  const int64_t a = task_read_number(prompt, self->size);
  const int64_t b = task_read_number(prompt + self->size, self->size);
  return (uint64_t)(a * limit(self) + b);
}

static void tell(const train_task *self, const uint8_t *prompt, FILE *to)
{
  fprintf(to, "%lld + %lld", (long long)task_read_number(prompt, self->size),
          (long long)task_read_number(prompt + self->size, self->size));
}

const task_kind task_addition = {.name = "addition",
                                 .measure = measure,
                                 .draw = draw,
                                 .solve = solve,
                                 .look = look,
                                 .identity = identity,
                                 .tell = tell};
