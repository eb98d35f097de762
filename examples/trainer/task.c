// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "task.h"

#include <string.h>

static const uint64_t held_out_share = 8;

train_task task_make(const task_kind *kind, int64_t size)
{
  train_task self = {.kind = kind, .size = size, .symbols = TASK_FIRST_WORD + kind->words};
  kind->measure(&self);
  return self;
}

// Membership is a function of the problem alone: no seed can mix the two sets.
static bool is_held_out(const train_task *self, const uint8_t *prompt)
{
  return rng_mix(self->kind->identity(self, prompt)) % held_out_share == 0;
}

void task_draw(const train_task *self, bool held_out, train_rng *generator, uint8_t *prompt)
{
  do {
    self->kind->draw(self, generator, prompt);
  } while (is_held_out(self, prompt) != held_out);
}

void task_solve(const train_task *self, const uint8_t *prompt, uint8_t *answer)
{
  self->kind->solve(self, prompt, answer);
}

float task_reward(const train_task *self, const uint8_t *prompt, const uint8_t *answer)
{
  uint8_t right[TASK_MAX_ANSWER];
  const int64_t result = self->answer_length - self->result_length;
  task_solve(self, prompt, right);
  return memcmp(answer + result, right + result, (size_t)self->result_length) == 0 ? 1.0F : 0.0F;
}

void task_write_number(int64_t number, int64_t count, uint8_t *digits)
{
  for (int64_t i = 0; i < count; ++i) {
    digits[i] = (uint8_t)(number % TASK_BASE);
    number /= TASK_BASE;
  }
}

int64_t task_read_number(const uint8_t *digits, int64_t count)
{
  int64_t number = 0;
  for (int64_t i = count; i-- > 0;) {
    number = number * TASK_BASE + digits[i];
  }
  return number;
}
