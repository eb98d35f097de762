// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "record.h"

#include "rft/safetensors.h"
#include "support/error.h"
#include "support/json.h"

#include <stdio.h>
#include <stdlib.h>

// The answers as digits, a row for each sequence.
static json_t *digits_of(const train_task *task, const uint8_t *sequences, int64_t count)
{
  const int64_t length = task->prompt_length + task->answer_length;
  json_t *const rows = json_array();
  for (int64_t s = 0; s < count; ++s) {
    const uint8_t *const answer = sequences + s * length + task->prompt_length;
    json_t *const row = json_array();
    for (int64_t i = 0; i < task->answer_length; ++i) {
      json_array_append_new(row, json_sprintf("%d", answer[i]));
    }
    json_array_append_new(rows, row);
  }
  return rows;
}

// NULL where there is no memory.
static json_t *prompt_of(const train_task *task, const uint8_t *sequence)
{
  char text[TASK_MAX_TEXT] = "";
  FILE *const stream = fmemopen(text, sizeof text, "w");
  if (stream == NULL) {
    return NULL;
  }
  task->kind->tell(task, sequence, stream);
  (void)fclose(stream);
  return json_string(text);
}

static json_t *prompts_of(const train_task *task, const uint8_t *sequences, int64_t count)
{
  const int64_t length = task->prompt_length + task->answer_length;
  json_t *const prompts = json_array();
  for (int64_t s = 0; s < count; ++s) {
    if (json_array_append_new(prompts, prompt_of(task, sequences + s * length)) != 0) {
      json_decref(prompts);
      return NULL;
    }
  }
  return prompts;
}

// Metadata of a safetensors file are strings. Takes `value`; false where there is no memory.
static bool set_text(json_t *metadata, const char *key, json_t *value)
{
  char *const text = value == NULL ? NULL : rft_json_text(value, 0);
  const bool set = text != NULL && json_object_set_new(metadata, key, json_string(text)) == 0;
  free(text);
  json_decref(value);
  return set;
}

static char *metadata_text(const train_learner *learner, const rollout_batch *batch, int64_t update)
{
  const train_task *const task = &learner->shape.task;
  const int64_t sequences = rollout_sequences(&learner->shape);
  json_t *const metadata = json_pack("{s:s, s:s}", "producer", "rft-train", "policy_loss_fn",
                                     learner->algorithm->loss->name);
  const bool set =
      set_text(metadata, "policy_loss_fn_args",
               json_deep_copy(algorithm_args(learner->algorithm))) &&
      set_text(metadata, "update", json_integer(update)) &&
      set_text(metadata, "staleness", json_integer(update - 1 - batch->version)) &&
      set_text(metadata, "prompt_text", prompts_of(task, batch->sequences, sequences)) &&
      set_text(metadata, "token_text", digits_of(task, batch->sequences, sequences));
  char *const text = set ? rft_json_text(metadata, 0) : NULL;
  json_decref(metadata);
  return text;
}

int32_t record_write(const char *path, const train_learner *learner, const rollout_batch *batch,
                     int64_t update, rft_error *error)
{
  int64_t tokens[2] = {rollout_sequences(&learner->shape), learner->shape.task.answer_length};
  const rft_device cpu = {RFT_DEVICE_CPU, 0};
  const rft_dtype float32 = {RFT_DTYPE_FLOAT, 32, 1};
  const rft_dtype boolean = {RFT_DTYPE_BOOL, 8, 1};
  const rft_tensor logprob = {.data = learner->teacher.logprob,
                              .device = cpu,
                              .ndim = 2,
                              .dtype = float32,
                              .shape = tokens};
  const rft_tensor old_logprob = {
      .data = batch->logprob, .device = cpu, .ndim = 2, .dtype = float32, .shape = tokens};
  const rft_tensor advantages = {
      .data = learner->advantages, .device = cpu, .ndim = 1, .dtype = float32, .shape = tokens};
  const rft_tensor mask = {
      .data = learner->mask, .device = cpu, .ndim = 2, .dtype = boolean, .shape = tokens};
  const rft_named_tensor tensors[] = {{"logprob", &logprob},
                                      {"old_logprob", &old_logprob},
                                      {"advantages", &advantages},
                                      {"mask", &mask},
                                      {"proximal_logprob", &logprob}};
  const int64_t count = algorithm_wants_proximal(learner->algorithm) ? 5 : 4;

  char *const metadata = metadata_text(learner, batch, update);
  if (metadata == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", path);
  }
  const int32_t code = rft_safetensors_write(path, tensors, count, metadata, error);
  free(metadata);
  return code;
}
