// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What rft-train's tasks ask, and what they take for an answer.

#include "task.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(trainer_task, answers_are_sums)
{
  const train_task task = task_make(&task_addition, 3);
  const uint8_t prompt[] = {9, 9, 5, 2, 0, 7}; // 599 + 702
  uint8_t answer[4];
  task_solve(&task, prompt, answer);
  const uint8_t expected[] = {1, 0, 3, 1};
  cr_assert_arr_eq(answer, expected, sizeof expected);
  cr_assert_eq(task_reward(&task, prompt, answer), 1.0F);
  answer[3] = 0;
  cr_assert_eq(task_reward(&task, prompt, answer), 0.0F);
}

Test(trainer_task, training_never_draws_a_held_out_problem)
{
  const train_task task = task_make(&task_addition, 1);
  bool held_out[100] = {false};
  train_rng generator = rng_make(5, RNG_HELD_OUT, 0);
  uint8_t prompt[2];
  for (int i = 0; i < 2000; ++i) {
    task_draw(&task, true, &generator, prompt);
    held_out[prompt[0] * 10 + prompt[1]] = true;
  }
  for (int i = 0; i < 2000; ++i) {
    task_draw(&task, false, &generator, prompt);
    cr_assert_not(held_out[prompt[0] * 10 + prompt[1]], "%d + %d", prompt[0], prompt[1]);
  }
}

enum { VERBS = 12 };

// Follows a story by its text, as a reader would: "A baker has 14 cups, buys 6 and doubles them."
static int follow(const char *story, int *totals)
{
  static const struct {
    const char *verb;
    int sign; // 0: the number is a factor, in halves
    int halves;
  } known[VERBS] = {{"buys", 1, 0},          {"collects", 1, 0},
                    {"finds", 1, 0},         {"is given", 1, 0},
                    {"breaks", -1, 0},       {"gives away", -1, 0},
                    {"loses", -1, 0},        {"sells", -1, 0},
                    {"doubles", 0, 4},       {"gets as many again as", 0, 4},
                    {"keeps half of", 0, 1}, {"parts with half of", 0, 1}};
  int steps = 0;
  const char *at = strstr(story, " has ") + strlen(" has ");
  int total = (int)strtol(at, NULL, 10);
  at = strchr(at, ',');
  while (at != NULL) {
    at += strncmp(at, ", ", 2) == 0 ? 2 : 5; // or " and "
    int i = 0;
    while (i < VERBS && strncmp(at, known[i].verb, strlen(known[i].verb)) != 0) {
      ++i;
    }
    cr_assert_lt(i, VERBS, "%s", at);
    const int number = (int)strtol(at + strlen(known[i].verb), NULL, 10);
    total = known[i].sign == 0 ? total * known[i].halves / 2 : total + known[i].sign * number;
    totals[steps++] = total;
    const char *const comma = strstr(at, ", ");
    at = comma != NULL ? comma : strstr(at, " and ");
  }
  return steps;
}

Test(trainer_task, stories_are_answered_step_by_step_and_graded_by_the_last_number)
{
  enum { STEPS = 5, STORIES = 500 };
  const train_task task = task_make(&task_word_problems, STEPS);
  train_rng generator = rng_make(3, RNG_PROMPT, 0);
  for (int i = 0; i < STORIES; ++i) {
    uint8_t prompt[32];
    uint8_t answer[TASK_MAX_ANSWER];
    char story[TASK_MAX_TEXT] = "";
    int totals[STEPS + 1] = {0};
    task_draw(&task, i % 2 == 0, &generator, prompt);
    task_solve(&task, prompt, answer);
    FILE *const stream = fmemopen(story, sizeof story, "w");
    task.kind->tell(&task, prompt, stream);
    (void)fclose(stream);
    *strchr(story, '.') = '\0';
    cr_assert_eq(follow(story, totals), STEPS, "%s", story);
    for (ptrdiff_t step = 0; step < STEPS; ++step) {
      const int64_t number = task_read_number(answer + 2 * step, 2);
      cr_assert_eq(number, totals[step], "step %d of \"%s\": %d", (int)step, story, (int)number);
    }
    answer[0] = (uint8_t)((answer[0] + 1) % 10);
    cr_assert_eq(task_reward(&task, prompt, answer), 1.0F, "a slip on the way is not graded");
    answer[2 * STEPS - 1] = (uint8_t)((answer[2 * STEPS - 1] + 1) % 10);
    cr_assert_eq(task_reward(&task, prompt, answer), 0.0F);
  }
}

Test(trainer_task, the_same_problem_in_other_words_is_in_the_same_set)
{
  const train_task task = task_make(&task_word_problems, 1);
  // A holder, 14, an item, a verb, 6; and with another holder, item and verb that adds.
  const uint8_t one[] = {11, 4, 1, 17, 23, 6};
  const uint8_t other[] = {13, 4, 1, 20, 25, 6};
  const uint8_t more[] = {11, 4, 1, 17, 23, 7};
  const uint8_t fewer[] = {11, 4, 1, 17, 27, 6};
  const uint64_t identity = task.kind->identity(&task, one);
  cr_assert_eq(task.kind->identity(&task, other), identity);
  cr_assert_neq(task.kind->identity(&task, more), identity);
  cr_assert_neq(task.kind->identity(&task, fewer), identity);
}

Test(trainer_task, a_sum_is_seen_whole)
{
  const train_task task = task_make(&task_addition, 2);
  const uint8_t sequence[] = {1, 2, 3, 4, 4, 6, 0};
  const uint8_t expected[] = {1, 2, 3, 4, 4, TASK_UNKNOWN};
  uint8_t row[sizeof expected];
  cr_assert_eq(task.row_length, (int64_t)sizeof expected);
  task.kind->look(&task, sequence, 1, row);
  cr_assert_arr_eq(row, expected, sizeof expected);
}

Test(trainer_task, a_story_is_seen_step_by_step)
{
  const train_task task = task_make(&task_word_problems, 2);
  // 14, buys 6, sells 3; the answer so far is 20 and a 7.
  const uint8_t sequence[] = {11, 4, 1, 17, 23, 6, 30, 3, 0, 2, 7, 1};
  const uint8_t expected[][5] = {
      {4, 1, 23, 6, TASK_UNKNOWN}, {4, 1, 23, 6, 0}, {0, 2, 30, 3, TASK_UNKNOWN}, {0, 2, 30, 3, 7}};
  uint8_t row[5];
  cr_assert_eq(task.row_length, 5);
  for (int64_t known = 0; known < task.answer_length; ++known) {
    task.kind->look(&task, sequence, known, row);
    cr_assert_arr_eq(row, expected[known], 5, "%d known", (int)known);
  }
}
