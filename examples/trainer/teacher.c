// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "teacher.h"

#include <stdlib.h>
#include <string.h>

static bool block_init(teacher_block *block, const train_teacher *self, policy_shape shape,
                       int64_t i)
{
  block->first = parallel_split(self->sequences, self->blocks, i);
  block->count = parallel_split(self->sequences, self->blocks, i + 1) - block->first;
  const int64_t rows = block->count * self->task.answer_length;
  block->rows = malloc((size_t)(rows * shape.slots));
  block->chosen = malloc((size_t)rows);
  block->gradient = malloc((size_t)self->parameters * sizeof(float));
  return policy_workspace_init(&block->workspace, shape, rows) && block->rows != NULL &&
         block->chosen != NULL && block->gradient != NULL;
}

bool teacher_init(train_teacher *self, const train_task *task, const train_policy *policy,
                  int64_t sequences, int64_t blocks, const rft_parallel *parallel)
{
  const size_t tokens = (size_t)(sequences * task->answer_length);
  *self = (train_teacher){.task = *task,
                          .sequences = sequences,
                          .parameters = policy->count,
                          .blocks = blocks,
                          .block = calloc((size_t)blocks, sizeof(teacher_block)),
                          .logprob = calloc(tokens, sizeof(float)),
                          .dlogprob = calloc(tokens, sizeof(float)),
                          .gradient = calloc((size_t)policy->count, sizeof(float)),
                          .parallel = parallel};
  bool ready = self->block != NULL && self->logprob != NULL && self->dlogprob != NULL &&
               self->gradient != NULL;
  for (int64_t i = 0; ready && i < blocks; ++i) {
    ready = block_init(&self->block[i], self, policy->shape, i);
  }
  if (!ready) {
    teacher_free(self);
  }
  return ready;
}

void teacher_free(train_teacher *self)
{
  for (int64_t i = 0; self->block != NULL && i < self->blocks; ++i) {
    policy_workspace_free(&self->block[i].workspace);
    free(self->block[i].rows);
    free(self->block[i].chosen);
    free(self->block[i].gradient);
  }
  free(self->block);
  free(self->logprob);
  free(self->dlogprob);
  free(self->gradient);
  *self = (train_teacher){0};
}

typedef struct teacher_call {
  train_teacher *self;
  const train_policy *policy;
  const uint8_t *sequences; // forward only
} teacher_call;

static void forward_block(void *context, int64_t i)
{
  const teacher_call *const call = context;
  train_teacher *const self = call->self;
  teacher_block *const block = &self->block[i];
  const train_task *const task = &self->task;
  const int64_t answer = task->answer_length;
  const int64_t slots = call->policy->shape.slots;

  for (int64_t s = 0; s < block->count; ++s) {
    const uint8_t *const sequence =
        call->sequences + (block->first + s) * (task->prompt_length + answer);
    for (int64_t t = 0; t < answer; ++t) {
      task->kind->look(task, sequence, t, block->rows + (s * answer + t) * slots);
    }
    memcpy(block->chosen + s * answer, sequence + task->prompt_length, (size_t)answer);
  }
  policy_forward(call->policy, block->rows, block->count * answer, &block->workspace);
  float *const logprob = self->logprob + block->first * answer;
  for (int64_t row = 0; row < block->count * answer; ++row) {
    logprob[row] = block->workspace.logprob[row * POLICY_ACTIONS + block->chosen[row]];
  }
}

void teacher_forward(train_teacher *self, const train_policy *policy, const uint8_t *sequences)
{
  teacher_call call = {.self = self, .policy = policy, .sequences = sequences};
  parallel_run(self->parallel, self->blocks, forward_block, &call);
}

static void backward_block(void *context, int64_t i)
{
  const teacher_call *const call = context;
  train_teacher *const self = call->self;
  teacher_block *const block = &self->block[i];
  const int64_t answer = self->task.answer_length;

  memset(block->gradient, 0, (size_t)self->parameters * sizeof(float));
  policy_backward(call->policy, block->rows, block->chosen, self->dlogprob + block->first * answer,
                  block->count * answer, &block->workspace, block->gradient);
}

void teacher_backward(train_teacher *self, const train_policy *policy)
{
  teacher_call call = {.self = self, .policy = policy};
  parallel_run(self->parallel, self->blocks, backward_block, &call);
  memset(self->gradient, 0, (size_t)self->parameters * sizeof(float));
}

void teacher_add_gradients(train_teacher *self)
{
  for (int64_t i = 0; i < self->blocks; ++i) {
    for (int64_t j = 0; j < self->parameters; ++j) {
      self->gradient[j] += self->block[i].gradient[j];
    }
  }
}
