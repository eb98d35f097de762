// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "recorded.h"

#include "rft/safetensors.h"

#include <stdio.h>

enum { PATH_SIZE = 512 };

static json_t *answers;
static rft_safetensors *tensors;

static json_t *load(const char *file)
{
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/%s", RFT_TEST_DATA_DIR, file);
  return json_load_file(path, 0, NULL);
}

struct criterion_test_params recorded_parameters(const char *file)
{
  json_t *const document = load(file);
  const size_t found = json_array_size(json_object_get(document, "batches"));
  const size_t count = found == 0 ? 1 : found; // one that fails, where the file can't be read
  int *const index = cr_malloc(count * sizeof *index);
  for (size_t i = 0; i < count; ++i) {
    index[i] = (int)i;
  }
  json_decref(document);
  return cr_make_param_array(int, index, count);
}

static const rft_tensor *tensor_of(const char *name)
{
  const rft_tensor *const tensor = rft_safetensors_tensor(tensors, name);
  cr_assert(tensor != NULL, "no tensor %s", name);
  return tensor;
}

static rft_batch *open_batch(const char *file)
{
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/%s", RFT_TEST_DATA_DIR, file);
  rft_error error = {.struct_size = sizeof error};
  const int32_t code = rft_safetensors_open(path, &tensors, &error);
  cr_assert_eq(code, RFT_OK, "%s", error.message);
  return batch_new(tensor_of("logprob"), tensor_of("old_logprob"), NULL, tensor_of("advantages"),
                   tensor_of("mask"), NULL);
}

recorded_case recorded_open(const char *file, int index)
{
  answers = load(file);
  cr_assert(answers != NULL, "%s can't be read", file);
  recorded_case recorded = {.entry =
                                json_array_get(json_object_get(answers, "batches"), (size_t)index)};
  recorded.batch = open_batch(json_string_value(json_object_get(recorded.entry, "file")));
  recorded.m2_threshold = recorded_number(&recorded, "m2_threshold");
  return recorded;
}

void recorded_close(void)
{
  rft_safetensors_close(tensors);
  json_decref(answers);
  tensors = NULL;
  answers = NULL;
}

double recorded_number(const recorded_case *recorded, const char *key)
{
  const json_t *const value = json_object_get(recorded->entry, key);
  cr_assert(json_is_number(value), "no number %s", key);
  return json_number_value(value);
}

bool *recorded_keep(const recorded_case *recorded)
{
  bool *const keep = test_alloc(batch_count(recorded->batch));
  for (int64_t i = 0; i < batch_count(recorded->batch); ++i) {
    keep[i] = tensor_get(recorded->batch->mask, i) != 0;
  }
  const json_t *const masked = json_object_get(recorded->entry, "masked_positions");
  for (size_t i = 0; i < json_array_size(masked); ++i) {
    keep[json_integer_value(json_array_get(masked, i))] = false;
  }
  return keep;
}

const char *recorded_label(const recorded_case *recorded)
{
  char *const text = test_alloc(PATH_SIZE);
  snprintf(text, PATH_SIZE, "%s, m2_threshold %g",
           json_string_value(json_object_get(recorded->entry, "file")), recorded->m2_threshold);
  return text;
}
