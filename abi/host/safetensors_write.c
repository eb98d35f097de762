// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "rft/safetensors.h"

#include "atomic_file.h"
#include "safetensors_dtype.h"
#include "support/error.h"
#include "support/json.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define METADATA "__metadata__"
enum { ALIGNMENT = 8 };

// A tensor in the order of the file.
typedef struct placed_tensor {
  const rft_named_tensor *source;
  int64_t bytes;
} placed_tensor;

// ------------------------------------------------------------------------------------------ checks

static bool is_on_host(const rft_tensor *tensor)
{
  return tensor->device.type == RFT_DEVICE_CPU || tensor->device.type == RFT_DEVICE_CUDA_HOST ||
         tensor->device.type == RFT_DEVICE_ROCM_HOST;
}

static bool is_compact(const rft_tensor *tensor)
{
  int64_t expected = 1;
  for (int32_t i = tensor->ndim - 1; i >= 0 && tensor->strides != NULL; --i) {
    if (tensor->shape[i] != 1 && tensor->strides[i] != expected) {
      return false;
    }
    expected *= tensor->shape[i];
  }
  return true;
}

static int32_t check_tensor(const rft_named_tensor *named, int64_t *bytes, rft_error *error)
{
  const rft_tensor *const tensor = named->tensor;
  const char *problem = NULL;
  if (named->name[0] == '\0' || strcmp(named->name, METADATA) == 0) {
    problem = "this is not a name that a tensor may have";
  } else if (!is_on_host(tensor)) {
    problem = "expected it in the memory of the CPU";
  } else if (rft_safetensors_dtype_name(tensor->dtype) == NULL) {
    problem = "its dtype cannot be stored";
  } else if (!rft_safetensors_bytes(tensor->dtype, tensor->ndim, tensor->shape, bytes)) {
    problem = "its shape has more bytes than 63 bits count";
  } else if (*bytes > 0 && tensor->data == NULL) {
    problem = "its data is a null pointer";
  } else if (*bytes > 0 && !is_compact(tensor)) {
    problem = "expected compact row-major strides";
  }
  if (problem == NULL) {
    return RFT_OK;
  }
  char quoted[RFT_JSON_BRIEF_SIZE];
  return rft_fail(error, RFT_INVALID_ARGUMENT, "cannot write tensor %s: %s",
                  rft_json_quote(quoted, named->name), problem);
}

// Widest elements first, otherwise as given: then each tensor is aligned in the file.
static void insert_item(placed_tensor *items, int64_t count, placed_tensor added)
{
  int64_t i = count;
  while (i > 0 && items[i - 1].source->tensor->dtype.bits < added.source->tensor->dtype.bits) {
    items[i] = items[i - 1];
    --i;
  }
  items[i] = added;
}

static int32_t order_tensors(const rft_named_tensor *tensors, int64_t count, placed_tensor *items,
                             rft_error *error)
{
  for (int64_t i = 0; i < count; ++i) {
    placed_tensor added = {.source = &tensors[i]};
    const int32_t code = check_tensor(&tensors[i], &added.bytes, error);
    if (code != RFT_OK) {
      return code;
    }
    insert_item(items, i, added);
  }
  return RFT_OK;
}

// ------------------------------------------------------------------------------------------ header

static int32_t add_metadata(json_t *header, const char *metadata, rft_error *error)
{
  if (metadata == NULL) {
    return RFT_OK;
  }
  json_t *parsed = NULL;
  const int32_t code =
      rft_json_parse("metadata", metadata, (int64_t)strlen(metadata), &parsed, error);
  if (code != RFT_OK) {
    return code;
  }
  bool all_strings = json_is_object(parsed);
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach(parsed, key, value)
  {
    all_strings = all_strings && json_is_string(value);
  }
  if (!all_strings) {
    json_decref(parsed);
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "metadata: expected an object whose values are strings");
  }
  return json_object_set_new(header, METADATA, parsed) == 0
             ? RFT_OK
             : rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for a tensor file");
}

static json_t *describe(const placed_tensor *item, int64_t begin)
{
  const rft_tensor *const tensor = item->source->tensor;
  const int64_t end = begin + item->bytes;
  json_t *shape = json_array();
  for (int32_t i = 0; shape != NULL && i < tensor->ndim; ++i) {
    if (json_array_append_new(shape, json_integer(tensor->shape[i])) != 0) {
      json_decref(shape);
      shape = NULL;
    }
  }
  return json_pack("{s:s, s:o, s:[I, I]}", "dtype", rft_safetensors_dtype_name(tensor->dtype),
                   "shape", shape, "data_offsets", (json_int_t)begin, (json_int_t)end);
}

static int32_t add_tensors(json_t *header, const placed_tensor *items, int64_t count,
                           rft_error *error)
{
  int64_t end = 0;
  for (int64_t i = 0; i < count; ++i) {
    const char *const name = items[i].source->name;
    char quoted[RFT_JSON_BRIEF_SIZE];
    if (json_object_get(header, name) != NULL) {
      return rft_fail(error, RFT_INVALID_ARGUMENT, "cannot write two tensors of the name %s",
                      rft_json_quote(quoted, name));
    }
    if (json_object_set_new(header, name, describe(&items[i], end)) != 0) {
      return rft_fail(error, RFT_INVALID_ARGUMENT,
                      "cannot write tensor %s: its name is not UTF-8, or memory ran out",
                      rft_json_quote(quoted, name));
    }
    end += items[i].bytes;
  }
  return RFT_OK;
}

static int32_t make_header(const placed_tensor *items, int64_t count, const char *metadata,
                           char **text, rft_error *error)
{
  json_t *const header = json_object();
  int32_t code = add_metadata(header, metadata, error);
  if (code == RFT_OK) {
    code = add_tensors(header, items, count, error);
  }
  if (code != RFT_OK) {
    json_decref(header);
    return code;
  }
  return rft_json_take_text(header, 0, text, error);
}

// -------------------------------------------------------------------------------------------- file

static int32_t write_header(rft_atomic_file *file, const char *text, rft_error *error)
{
  static const char spaces[ALIGNMENT] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};
  const size_t length = strlen(text);
  const size_t padding = (ALIGNMENT - length % ALIGNMENT) % ALIGNMENT;
  unsigned char total[8];
  for (size_t i = 0; i < sizeof total; ++i) {
    total[i] = (unsigned char)((uint64_t)(length + padding) >> (8 * i));
  }
  int32_t code = rft_atomic_write(file, total, sizeof total, error);
  if (code == RFT_OK) {
    code = rft_atomic_write(file, text, length, error);
  }
  return code == RFT_OK ? rft_atomic_write(file, spaces, padding, error) : code;
}

static int32_t write_file(const char *path, const char *header, const placed_tensor *items,
                          int64_t count, rft_error *error)
{
  rft_atomic_file file;
  int32_t code = rft_atomic_open(&file, path, error);
  if (code != RFT_OK) {
    return code;
  }
  code = write_header(&file, header, error);
  for (int64_t i = 0; code == RFT_OK && i < count; ++i) {
    const rft_tensor *const tensor = items[i].source->tensor;
    if (items[i].bytes > 0) {
      code = rft_atomic_write(&file, (const char *)tensor->data + tensor->byte_offset,
                              (size_t)items[i].bytes, error);
    }
  }
  if (code != RFT_OK) {
    rft_atomic_abandon(&file);
    return code;
  }
  return rft_atomic_commit(&file, error);
}

int32_t rft_safetensors_write(const char *path, const rft_named_tensor *tensors, int64_t count,
                              const char *metadata, rft_error *error)
{
  placed_tensor *const items = calloc((size_t)count + 1, sizeof *items);
  if (items == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for a tensor file");
  }
  char *header = NULL;
  int32_t code = order_tensors(tensors, count, items, error);
  if (code == RFT_OK) {
    code = make_header(items, count, metadata, &header, error);
  }
  if (code == RFT_OK) {
    code = write_file(path, header, items, count, error);
  }
  free(header);
  free(items);
  return code;
}
