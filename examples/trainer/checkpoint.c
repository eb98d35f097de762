// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "checkpoint.h"

#include "rft/safetensors.h"
#include "support/error.h"
#include "support/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char run_format[] = "rft-train run 1";
static const char base_format[] = "rft-train base policy 1";

// ---------------------------------------------------------------------------------------- tensors

enum { MAX_ENTRIES = 3 * POLICY_TENSORS + 4, MAX_NAME = 32 };

typedef struct entry {
  char name[MAX_NAME];
  int64_t shape[3];
  rft_tensor tensor;
} entry;

// What a file holds, in one table that both writing and reading go by.
typedef struct entry_list {
  entry entries[MAX_ENTRIES];
  int64_t count;
} entry_list;

static entry *add(entry_list *list, void *data, rft_dtype dtype, int32_t ndim)
{
  entry *const added = &list->entries[list->count++];
  added->tensor = (rft_tensor){.data = data,
                               .device = {RFT_DEVICE_CPU, 0},
                               .ndim = ndim,
                               .dtype = dtype,
                               .shape = added->shape};
  return added;
}

static void add_parameters(entry_list *list, const char *prefix, const train_policy *policy,
                           float *values)
{
  for (int i = 0; i < POLICY_TENSORS; ++i) {
    int64_t shape[2];
    const int32_t ndim = policy_tensor_shape(&policy->shape, i, shape);
    entry *const added =
        add(list, values + policy->offset[i], (rft_dtype){RFT_DTYPE_FLOAT, 32, 1}, ndim);
    memcpy(added->shape, shape, sizeof shape);
    snprintf(added->name, MAX_NAME, "%s.%s", prefix, policy_tensor_name(i));
  }
}

static void add_queue_array(entry_list *list, const char *name, const stale_queue *queue,
                            void *data, rft_dtype dtype, int64_t length)
{
  entry *const added = add(list, data, dtype, length > 1 ? 3 : 2);
  added->shape[0] = queue->slots;
  added->shape[1] = rollout_sequences(&queue->sampler.shape);
  added->shape[2] = length;
  snprintf(added->name, MAX_NAME, "queue.%s", name);
}

static void add_queue(entry_list *list, const stale_queue *queue)
{
  const rft_dtype float32 = {RFT_DTYPE_FLOAT, 32, 1};
  const rollout_shape *const shape = &queue->sampler.shape;
  entry *const version = add(list, queue->version, (rft_dtype){RFT_DTYPE_INT, 64, 1}, 1);
  version->shape[0] = queue->slots;
  snprintf(version->name, MAX_NAME, "queue.version");
  add_queue_array(list, "sequences", queue, queue->sequences, (rft_dtype){RFT_DTYPE_UINT, 8, 1},
                  rollout_sequence_length(shape));
  add_queue_array(list, "logprob", queue, queue->logprob, float32, shape->task.answer_length);
  add_queue_array(list, "reward", queue, queue->reward, float32, 1);
}

static void add_state(entry_list *list, const checkpoint_state *state)
{
  add_parameters(list, "policy", state->policy, state->policy->parameters);
  add_parameters(list, "adamw.first", state->policy, state->adamw->first);
  add_parameters(list, "adamw.second", state->policy, state->adamw->second);
  if (state->queue != NULL) {
    add_queue(list, state->queue);
  }
}

static size_t entry_bytes(const entry *self)
{
  int64_t elements = 1;
  for (int32_t i = 0; i < self->tensor.ndim; ++i) {
    elements *= self->shape[i];
  }
  return (size_t)elements * (self->tensor.dtype.bits / 8U);
}

static bool fits(const entry *self, const rft_tensor *found)
{
  const rft_dtype *const dtype = &self->tensor.dtype;
  return found != NULL && found->dtype.code == dtype->code && found->dtype.bits == dtype->bits &&
         found->ndim == self->tensor.ndim &&
         memcmp(found->shape, self->shape, (size_t)found->ndim * sizeof(int64_t)) == 0;
}

static int32_t read_entries(const char *path, const rft_safetensors *file, entry_list *list,
                            rft_error *error)
{
  for (int64_t i = 0; i < list->count; ++i) {
    const entry *const wanted = &list->entries[i];
    const rft_tensor *const found = rft_safetensors_tensor(file, wanted->name);
    if (!fits(wanted, found)) {
      return rft_fail(error, RFT_DATA_LOSS, "%s: tensor %s is %s", path, wanted->name,
                      found == NULL ? "missing" : "not of the dtype and shape of this config");
    }
    memcpy(wanted->tensor.data, (const char *)found->data + found->byte_offset,
           entry_bytes(wanted));
  }
  return RFT_OK;
}

static int32_t write_entries(const char *path, const entry_list *list, const char *metadata,
                             rft_error *error)
{
  rft_named_tensor named[MAX_ENTRIES];
  for (int64_t i = 0; i < list->count; ++i) {
    named[i] = (rft_named_tensor){list->entries[i].name, &list->entries[i].tensor};
  }
  return rft_safetensors_write(path, named, list->count, metadata, error);
}

// --------------------------------------------------------------------------------------- identity

static void remove_key(json_t *document, const char *section, const char *key)
{
  json_object_del(json_object_get(document, section), key);
}

json_t *checkpoint_run_identity(const train_config *config, const json_t *preset)
{
  json_t *const identity = json_deep_copy(config->document);
  json_object_del(identity, "output");
  json_object_del(identity, "plugins_dir");
  remove_key(identity, "trainer", "updates");
  remove_key(identity, "trainer", "threads");
  remove_key(identity, "warm_start", "file");
  json_t *const algorithm = json_deep_copy(preset);
  json_object_del(algorithm, "description");
  json_object_set_new(algorithm, "algorithm_type", json_string(config->algorithm_type));
  json_object_set_new(identity, "algorithm", algorithm);
  return identity;
}

json_t *checkpoint_base_identity(const train_config *config)
{
  json_t *const identity = json_object();
  static const char *const sections[] = {"task", "model", "warm_start"};
  for (size_t i = 0; i < sizeof sections / sizeof sections[0]; ++i) {
    json_object_set_new(identity, sections[i],
                        json_deep_copy(json_object_get(config->document, sections[i])));
  }
  remove_key(identity, "warm_start", "file");
  json_object_set_new(identity, "trainer", json_pack("{s:I}", "seed", (json_int_t)config->seed));
  return identity;
}

// The dotted name of the first key in which `a` differs from `b`, with both values; false: none.
static bool first_difference(const json_t *a, const json_t *b, char path[128], const json_t **in_a,
                             const json_t **in_b)
{
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)a, key, value)
  {
    const json_t *const other = json_object_get(b, key);
    const size_t length = strlen(path);
    snprintf(path + length, 128 - length, "%s%s", length == 0 ? "" : ".", key);
    if (json_is_object(value) && json_is_object(other)) {
      if (first_difference(value, other, path, in_a, in_b)) {
        return true;
      }
    } else if (!json_equal(value, other)) {
      *in_a = value;
      *in_b = other;
      return true;
    }
    path[length] = '\0';
  }
  return false;
}

static int32_t check_identity(const char *path, const json_t *wanted, const json_t *saved,
                              rft_error *error)
{
  char key[128] = "";
  const json_t *here = NULL;
  const json_t *there = NULL;
  char brief_here[RFT_JSON_BRIEF_SIZE];
  char brief_there[RFT_JSON_BRIEF_SIZE];
  if (!first_difference(wanted, saved, key, &here, &there) &&
      !first_difference(saved, wanted, key, &there, &here)) {
    return RFT_OK;
  }
  return rft_fail(error, RFT_FAILED_PRECONDITION, "%s: made with %s = %s, the config has %s", path,
                  key, there == NULL ? "nothing" : rft_json_brief(brief_there, there),
                  here == NULL ? "nothing" : rft_json_brief(brief_here, here));
}

// -------------------------------------------------------------------------------------- metadata

static char *metadata_text(const char *format, int64_t update, const json_t *identity)
{
  char *const config = rft_json_text(identity, 0);
  char number[24];
  snprintf(number, sizeof number, "%" PRId64, update);
  json_t *const metadata =
      json_pack("{s:s, s:s, s:s}", "format", format, "update", number, "config", config);
  char *const text = metadata == NULL ? NULL : rft_json_text(metadata, 0);
  json_decref(metadata);
  free(config);
  return text;
}

static int32_t check_metadata(const char *path, const rft_safetensors *file, const char *format,
                              const json_t *identity, int64_t *update, rft_error *error)
{
  const char *const found = rft_safetensors_metadata(file, "format");
  const char *const number = rft_safetensors_metadata(file, "update");
  const char *const config = rft_safetensors_metadata(file, "config");
  if (found == NULL || strcmp(found, format) != 0 || number == NULL || config == NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected a file of format \"%s\", found \"%s\"", path, format,
                    found == NULL ? "" : found);
  }
  json_t *saved = NULL;
  int32_t code = rft_json_parse(path, config, (int64_t)strlen(config), &saved, error);
  if (code == RFT_OK) {
    code = check_identity(path, identity, saved, error);
    json_decref(saved);
  }
  if (code == RFT_OK) {
    *update = strtoll(number, NULL, 10);
  }
  return code;
}

// ------------------------------------------------------------------------------------------ files

static int32_t save(const char *path, const entry_list *list, const char *format, int64_t update,
                    const json_t *identity, rft_error *error)
{
  char *const metadata = metadata_text(format, update, identity);
  if (metadata == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", path);
  }
  const int32_t code = write_entries(path, list, metadata, error);
  free(metadata);
  return code;
}

static int32_t load(const char *path, entry_list *list, const char *format, const json_t *identity,
                    int64_t *update, rft_error *error)
{
  rft_safetensors *file = NULL;
  int32_t code = rft_safetensors_open(path, &file, error);
  if (code != RFT_OK) {
    return code;
  }
  code = check_metadata(path, file, format, identity, update, error);
  if (code == RFT_OK) {
    code = read_entries(path, file, list, error);
  }
  rft_safetensors_close(file);
  return code;
}

int32_t checkpoint_save(const char *path, const checkpoint_state *state, const json_t *identity,
                        rft_error *error)
{
  entry_list list = {.count = 0};
  add_state(&list, state);
  return save(path, &list, run_format, state->update, identity, error);
}

int32_t checkpoint_load(const char *path, const json_t *identity, checkpoint_state *state,
                        rft_error *error)
{
  entry_list list = {.count = 0};
  add_state(&list, state);
  const int32_t code = load(path, &list, run_format, identity, &state->update, error);
  if (code == RFT_OK) {
    state->adamw->step = state->update;
  }
  return code;
}

int32_t checkpoint_save_base(const char *path, const train_policy *policy, const json_t *identity,
                             rft_error *error)
{
  entry_list list = {.count = 0};
  add_parameters(&list, "policy", policy, policy->parameters);
  return save(path, &list, base_format, 0, identity, error);
}

int32_t checkpoint_load_base(const char *path, const json_t *identity, train_policy *policy,
                             rft_error *error)
{
  entry_list list = {.count = 0};
  int64_t update = 0;
  add_parameters(&list, "policy", policy, policy->parameters);
  return load(path, &list, base_format, identity, &update, error);
}
