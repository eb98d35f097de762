// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "task.h"

static const uint64_t held_out_share = 8;

train_task task_make(int64_t digits)
{
  train_task self = {
      .digits = digits, .prompt_length = 2 * digits, .answer_length = digits + 1, .limit = 1};
  for (int64_t i = 0; i < digits; ++i) {
    self.limit *= TASK_BASE;
  }
  return self;
}

static void write_digits(int64_t number, int64_t count, uint8_t *digits)
{
  for (int64_t i = 0; i < count; ++i) {
    digits[i] = (uint8_t)(number % TASK_BASE);
    number /= TASK_BASE;
  }
}

static int64_t read_digits(const uint8_t *digits, int64_t count)
{
  int64_t number = 0;
  for (int64_t i = count; i-- > 0;) {
    number = number * TASK_BASE + digits[i];
  }
  return number;
}

// Membership is a function of the problem alone: no seed can mix the two sets.
static bool is_held_out(const train_task *self, int64_t a, int64_t b)
{
  return rng_mix((uint64_t)(a * self->limit + b)) % held_out_share == 0;
}

void task_draw(const train_task *self, bool held_out, train_rng *generator, uint8_t *prompt)
{
  int64_t a = 0;
  int64_t b = 0;
  do {
    a = rng_below(generator, self->limit);
    b = rng_below(generator, self->limit);
  } while (is_held_out(self, a, b) != held_out);
  write_digits(a, self->digits, prompt);
  write_digits(b, self->digits, prompt + self->digits);
}

void task_solve(const train_task *self, const uint8_t *prompt, uint8_t *answer)
{
  const int64_t a = read_digits(prompt, self->digits);
  const int64_t b = read_digits(prompt + self->digits, self->digits);
  write_digits(a + b, self->answer_length, answer);
}

float task_reward(const train_task *self, const uint8_t *prompt, const uint8_t *answer)
{
  const int64_t a = read_digits(prompt, self->digits);
  const int64_t b = read_digits(prompt + self->digits, self->digits);
  return read_digits(answer, self->answer_length) == a + b ? 1.0F : 0.0F;
}
