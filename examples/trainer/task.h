// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The task: add two numbers of k digits. The reward is verifiable: 1 for the right sum, else 0.
//
// Digits stand least significant first, so that a carry is known when the next digit is due. A
// prompt is the 2k digits of both addends, an answer the k + 1 digits of the sum.

#ifndef TRAIN_TASK_H
#define TRAIN_TASK_H

#include "rng.h"

#include <stdbool.h>
#include <stdint.h>

#define TASK_BASE 10
#define TASK_MAX_DIGITS 9

typedef struct train_task {
  int64_t digits;        // k
  int64_t prompt_length; // 2k
  int64_t answer_length; // k + 1
  int64_t limit;         // 10^k
} train_task;

train_task task_make(int64_t digits);

// Draws a problem. Held-out problems, about one in eight, are never drawn for training.
void task_draw(const train_task *self, bool held_out, train_rng *generator, uint8_t *prompt);

// The right answer.
void task_solve(const train_task *self, const uint8_t *prompt, uint8_t *answer);

float task_reward(const train_task *self, const uint8_t *prompt, const uint8_t *answer);

#endif // TRAIN_TASK_H
