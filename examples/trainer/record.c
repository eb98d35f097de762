// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "record.h"

#include "rft/safetensors.h"
#include "support/error.h"
#include "support/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static char *metadata_text(const train_learner *learner, int64_t update)
{
  char number[24];
  snprintf(number, sizeof number, "%" PRId64, update);
  char *const args = rft_json_text(algorithm_args(learner->algorithm), 0);
  json_t *const metadata =
      json_pack("{s:s, s:s, s:s, s:s}", "producer", "rft-train", "update", number, "policy_loss_fn",
                learner->algorithm->loss->name, "policy_loss_fn_args", args);
  char *const text = metadata == NULL ? NULL : rft_json_text(metadata, 0);
  json_decref(metadata);
  free(args);
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
                                      {"mask", &mask}};

  char *const metadata = metadata_text(learner, update);
  if (metadata == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", path);
  }
  const int32_t code = rft_safetensors_write(path, tensors, 4, metadata, error);
  free(metadata);
  return code;
}
