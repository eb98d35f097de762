// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Tasks: problems to draw, and answers that can be checked. A prompt is made of symbols, of which 0
// to 9 are the digits; an answer is made of digits, least significant first, so that a carry is
// known when the next digit is due. The reward is 1 for a right result, else 0.

#ifndef TRAIN_TASK_H
#define TRAIN_TASK_H

#include "rng.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TASK_BASE 10
#define TASK_UNKNOWN 10 // stands for an answer digit that is still to come
#define TASK_FIRST_WORD 11
#define TASK_MAX_SIZE 9
#define TASK_MAX_ANSWER 18
#define TASK_MAX_TEXT 512

typedef struct train_task train_task;

// What a task is; one file each.
typedef struct task_kind {
  const char *name;
  int64_t words; // symbols above TASK_FIRST_WORD
  void (*measure)(train_task *self);
  void (*draw)(const train_task *self, train_rng *generator, uint8_t *prompt);
  void (*solve)(const train_task *self, const uint8_t *prompt, uint8_t *answer);
  // Fills row[row_length] with what the policy sees of a sequence, prompt and answer, of whose
  // answer `known` digits are known, when the next one is due.
  void (*look)(const train_task *self, const uint8_t *sequence, int64_t known, uint8_t *row);
  // The same for problems that are the same but for their wording.
  uint64_t (*identity)(const train_task *self, const uint8_t *prompt);
  // Writes the problem out for people, in less than TASK_MAX_TEXT.
  void (*tell)(const train_task *self, const uint8_t *prompt, FILE *to);
} task_kind;

extern const task_kind task_addition;
extern const task_kind task_word_problems;

struct train_task {
  const task_kind *kind;
  int64_t size; // of a problem, as the kind counts it
  int64_t symbols;
  int64_t prompt_length;
  int64_t answer_length;
  int64_t result_length; // the last digits of an answer, which decide the reward
  int64_t row_length;    // what the policy sees at once
};

// `size`: from 1 to TASK_MAX_SIZE.
train_task task_make(const task_kind *kind, int64_t size);

// Draws a problem. Held-out problems, about one in eight, are never drawn for training.
void task_draw(const train_task *self, bool held_out, train_rng *generator, uint8_t *prompt);

// The right answer.
void task_solve(const train_task *self, const uint8_t *prompt, uint8_t *answer);

float task_reward(const train_task *self, const uint8_t *prompt, const uint8_t *answer);

// Numbers of `count` digits, least significant first.
void task_write_number(int64_t number, int64_t count, uint8_t *digits);
int64_t task_read_number(const uint8_t *digits, int64_t count);

#endif // TRAIN_TASK_H
