// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "decode.h"

#include <stdlib.h>

policy_shape decode_policy_shape(const train_task *task, int64_t embedding, int64_t hidden)
{
  return (policy_shape){.symbols = task->symbols,
                        .slots = task->row_length,
                        .embedding = embedding,
                        .hidden = hidden};
}

static bool block_init(decode_block *block, policy_shape shape, int64_t rows)
{
  block->rows = malloc((size_t)(rows * shape.slots));
  return policy_workspace_init(&block->workspace, shape, rows) && block->rows != NULL;
}

bool decoder_init(train_decoder *self, const train_task *task, policy_shape shape, int64_t capacity,
                  int64_t blocks, const rft_parallel *parallel)
{
  *self = (train_decoder){.task = *task,
                          .capacity = capacity,
                          .blocks = blocks,
                          .block = calloc((size_t)blocks, sizeof(decode_block)),
                          .parallel = parallel};
  bool ready = self->block != NULL;
  for (int64_t i = 0; ready && i < blocks; ++i) {
    ready = block_init(&self->block[i], shape, capacity / blocks + 1);
  }
  if (!ready) {
    decoder_free(self);
  }
  return ready;
}

void decoder_free(train_decoder *self)
{
  for (int64_t i = 0; self->block != NULL && i < self->blocks; ++i) {
    policy_workspace_free(&self->block[i].workspace);
    free(self->block[i].rows);
  }
  free(self->block);
  *self = (train_decoder){0};
}

typedef struct decode_call {
  train_decoder *self;
  const train_policy *policy;
  uint8_t *sequences;
  int64_t count;
  train_rng *generators;
  float *logprob;
} decode_call;

static void decode_digit(const decode_call *call, decode_block *block, int64_t first, int64_t count,
                         int64_t known)
{
  const train_task *const task = &call->self->task;
  const int64_t length = task->prompt_length + task->answer_length;
  const int64_t slots = call->policy->shape.slots;

  for (int64_t i = 0; i < count; ++i) {
    task->kind->look(task, call->sequences + (first + i) * length, known, block->rows + i * slots);
  }
  policy_forward(call->policy, block->rows, count, &block->workspace);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t sequence = first + i;
    const float *const logprob = block->workspace.logprob + i * POLICY_ACTIONS;
    const uint8_t digit = call->generators == NULL
                              ? policy_greedy(logprob)
                              : policy_sample(logprob, &call->generators[sequence]);
    call->sequences[sequence * length + task->prompt_length + known] = digit;
    if (call->logprob != NULL) {
      call->logprob[sequence * task->answer_length + known] = logprob[digit];
    }
  }
}

static void decode_one_block(void *context, int64_t i)
{
  const decode_call *const call = context;
  const int64_t first = parallel_split(call->count, call->self->blocks, i);
  const int64_t count = parallel_split(call->count, call->self->blocks, i + 1) - first;
  for (int64_t known = 0; known < call->self->task.answer_length; ++known) {
    decode_digit(call, &call->self->block[i], first, count, known);
  }
}

void decode(train_decoder *self, const train_policy *policy, uint8_t *sequences, int64_t count,
            train_rng *generators, float *logprob)
{
  decode_call call = {.self = self, .policy = policy, .count = count, .generators = generators};
  call.sequences = sequences;
  call.logprob = logprob;
  parallel_run(self->parallel, self->blocks, decode_one_block, &call);
}
