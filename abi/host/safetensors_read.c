// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The format: 8 bytes, little-endian, the header's length; the header, a JSON object of
// name: {"dtype", "shape", "data_offsets"}; the data, offsets counted from its start.

#include "rft/safetensors.h"

#include "safetensors_dtype.h"
#include "support/error.h"
#include "support/json.h"
#include "support/system_error.h"
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH_BYTES = 8 };
#define LONGEST_HEADER INT64_C(100000000)
#define METADATA "__metadata__"

typedef struct file_tensor {
  const char *name; // borrowed from the header
  rft_tensor tensor;
  int64_t begin; // in the data
  int64_t end;
  void *copy; // aligned, where the file's own place for the data isn't
} file_tensor;

struct rft_safetensors {
  char where[RFT_SHORT_PATH_SIZE];
  unsigned char *map;
  int64_t size;
  int64_t data_start;
  json_t *header;
  file_tensor *entries;
  int64_t count;
};

// ----------------------------------------------------------------------------------------- tensors

static int32_t fail_tensor(const rft_safetensors *file, const char *name, const char *problem,
                           rft_error *error)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: tensor %s: %s", file->where,
                  rft_json_quote(quoted, name), problem);
}

static int32_t read_shape(const rft_safetensors *file, file_tensor *entry, const json_t *list,
                          rft_error *error)
{
  const size_t ndim = json_array_size(list);
  if (!json_is_array(list) || ndim > INT32_MAX) {
    return fail_tensor(file, entry->name, "expected \"shape\" to be a list of sizes", error);
  }
  entry->tensor.shape = calloc(ndim + 1, sizeof(int64_t));
  if (entry->tensor.shape == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", file->where);
  }
  for (size_t i = 0; i < ndim; ++i) {
    const json_t *const size = json_array_get(list, i);
    if (!json_is_integer(size) || json_integer_value(size) < 0) {
      return fail_tensor(file, entry->name, "expected \"shape\" to be a list of sizes >= 0", error);
    }
    entry->tensor.shape[i] = json_integer_value(size);
  }
  entry->tensor.ndim = (int32_t)ndim;
  return RFT_OK;
}

static int32_t read_offsets(const rft_safetensors *file, file_tensor *entry, const json_t *list,
                            rft_error *error)
{
  const json_t *const begin = json_array_get(list, 0);
  const json_t *const end = json_array_get(list, 1);
  if (json_array_size(list) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
      json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin)) {
    return fail_tensor(file, entry->name,
                       "expected \"data_offsets\" to be [begin, end] with 0 <= begin <= end",
                       error);
  }
  entry->begin = json_integer_value(begin);
  entry->end = json_integer_value(end);
  return RFT_OK;
}

static int32_t check_extent(const rft_safetensors *file, const file_tensor *entry, rft_error *error)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  rft_json_quote(quoted, entry->name);
  int64_t bytes = 0;
  if (!rft_safetensors_bytes(entry->tensor.dtype, entry->tensor.ndim, entry->tensor.shape,
                             &bytes)) {
    return fail_tensor(file, entry->name, "its shape has more bytes than 63 bits count", error);
  }
  if (bytes != entry->end - entry->begin) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: tensor %s: its dtype and shape take %" PRId64
                    " bytes, its data_offsets hold %" PRId64,
                    file->where, quoted, bytes, entry->end - entry->begin);
  }
  const int64_t data_size = file->size - file->data_start;
  if (entry->end > data_size) {
    return rft_fail(error, RFT_DATA_LOSS,
                    "%s: tensor %s ends at byte %" PRId64 " of the data, which has %" PRId64
                    ": the file is cut short or damaged",
                    file->where, quoted, entry->end, data_size);
  }
  return RFT_OK;
}

static int32_t read_entry(const rft_safetensors *file, file_tensor *entry,
                          const json_t *description, rft_error *error)
{
  const char *const dtype = json_string_value(json_object_get(description, "dtype"));
  if (json_object_size(description) != 3 || dtype == NULL) {
    return fail_tensor(file, entry->name, "expected exactly dtype, shape and data_offsets", error);
  }
  if (!rft_safetensors_dtype(dtype, &entry->tensor.dtype)) {
    char quoted[RFT_JSON_BRIEF_SIZE];
    char message[2 * RFT_JSON_BRIEF_SIZE];
    snprintf(message, sizeof message, "dtype %s is not supported", rft_json_quote(quoted, dtype));
    return fail_tensor(file, entry->name, message, error);
  }
  int32_t code = read_shape(file, entry, json_object_get(description, "shape"), error);
  if (code == RFT_OK) {
    code = read_offsets(file, entry, json_object_get(description, "data_offsets"), error);
  }
  return code == RFT_OK ? check_extent(file, entry, error) : code;
}

// The data of a tensor lies wherever the header's length puts it, and may be misaligned.
static int32_t place_data(const rft_safetensors *file, file_tensor *entry, rft_error *error)
{
  unsigned char *const data = file->map + file->data_start + entry->begin;
  const size_t bytes = (size_t)(entry->end - entry->begin);
  const size_t alignment = entry->tensor.dtype.bits / 8U;
  entry->tensor.device = (rft_device){.type = RFT_DEVICE_CPU};
  entry->tensor.data = data;
  if ((uintptr_t)data % alignment == 0 || bytes == 0) {
    return RFT_OK;
  }
  entry->copy = malloc(bytes);
  if (entry->copy == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", file->where);
  }
  entry->tensor.data = memcpy(entry->copy, data, bytes);
  return RFT_OK;
}

// ------------------------------------------------------------------------------------------ layout

static int by_begin(const void *a, const void *b)
{
  const file_tensor *const left = *(const file_tensor *const *)a;
  const file_tensor *const right = *(const file_tensor *const *)b;
  if (left->begin != right->begin) {
    return left->begin < right->begin ? -1 : 1;
  }
  return (left->end > right->end) - (left->end < right->end);
}

// Every byte of the data belongs to one tensor: no place for hidden content.
static int32_t check_layout(const rft_safetensors *file, rft_error *error)
{
  const file_tensor **const order = calloc((size_t)file->count + 1, sizeof(file_tensor *));
  if (order == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", file->where);
  }
  for (int64_t i = 0; i < file->count; ++i) {
    order[i] = &file->entries[i];
  }
  qsort(order, (size_t)file->count, sizeof(file_tensor *), by_begin);
  int32_t code = RFT_OK;
  int64_t end = 0;
  for (int64_t i = 0; code == RFT_OK && i < file->count; ++i) {
    if (order[i]->begin != end) {
      char quoted[RFT_JSON_BRIEF_SIZE];
      code = rft_fail(error, RFT_INVALID_ARGUMENT,
                      "%s: tensor %s: expected its data at byte %" PRId64 ", found %" PRId64
                      ": tensors may not overlap or leave gaps",
                      file->where, rft_json_quote(quoted, order[i]->name), end, order[i]->begin);
    }
    end = order[i]->end;
  }
  free(order);
  if (code == RFT_OK && end != file->size - file->data_start) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: %" PRId64 " bytes after the last tensor belong to none", file->where,
                    file->size - file->data_start - end);
  }
  return code;
}

// ------------------------------------------------------------------------------------------ header

static int32_t check_metadata(const rft_safetensors *file, rft_error *error)
{
  const json_t *const metadata = json_object_get(file->header, METADATA);
  if (metadata != NULL && !json_is_object(metadata)) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected " METADATA " to be an object",
                    file->where);
  }
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)metadata, key, value)
  {
    if (!json_is_string(value)) {
      char quoted[RFT_JSON_BRIEF_SIZE];
      char found[RFT_JSON_BRIEF_SIZE];
      return rft_fail(error, RFT_INVALID_ARGUMENT,
                      "%s: " METADATA " key %s: expected a string, found %s", file->where,
                      rft_json_quote(quoted, key), rft_json_brief(found, value));
    }
  }
  return RFT_OK;
}

static int32_t read_entries(rft_safetensors *file, rft_error *error)
{
  file->entries = calloc(json_object_size(file->header) + 1, sizeof *file->entries);
  if (file->entries == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "%s: out of memory", file->where);
  }
  int32_t code = check_metadata(file, error);
  const char *name = NULL;
  json_t *description = NULL;
  json_object_foreach(file->header, name, description)
  {
    if (code == RFT_OK && strcmp(name, METADATA) != 0) {
      file_tensor *const entry = &file->entries[file->count++];
      entry->name = name;
      code = read_entry(file, entry, description, error);
    }
  }
  if (code == RFT_OK) {
    code = check_layout(file, error);
  }
  for (int64_t i = 0; code == RFT_OK && i < file->count; ++i) {
    code = place_data(file, &file->entries[i], error);
  }
  return code;
}

static int32_t read_header(rft_safetensors *file, rft_error *error)
{
  int64_t length = 0;
  for (int i = LENGTH_BYTES - 1; i >= 0; --i) {
    length = (int64_t)((uint64_t)length << 8U | file->map[i]);
  }
  if (length < 2 || length > LONGEST_HEADER || length > file->size - LENGTH_BYTES) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s is not a safetensors file: its first 8 bytes give a header of %" PRIu64
                    " bytes, the file has %" PRId64,
                    file->where, (uint64_t)length, file->size);
  }
  if (file->map[LENGTH_BYTES] != '{') {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s is not a safetensors file: expected its header to begin with '{'",
                    file->where);
  }
  file->data_start = LENGTH_BYTES + length;
  char what[RFT_SHORT_PATH_SIZE + 16];
  snprintf(what, sizeof what, "%s: header", file->where);
  const int32_t code =
      rft_json_parse(what, (const char *)file->map + LENGTH_BYTES, length, &file->header, error);
  return code == RFT_OK ? read_entries(file, error) : code;
}

// -------------------------------------------------------------------------------------------- file

static int32_t map_file(const char *path, rft_safetensors *file, rft_error *error)
{
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status) != 0) {
    const int problem = errno;
    if (descriptor >= 0) {
      close(descriptor);
    }
    char words[RFT_SYSTEM_ERROR_SIZE];
    return rft_fail(error, problem == EACCES ? RFT_PERMISSION_DENIED : RFT_NOT_FOUND,
                    "cannot open %s: %s", file->where, rft_system_error(words, problem));
  }
  int32_t code = RFT_OK;
  if (!S_ISREG(status.st_mode) || status.st_size < LENGTH_BYTES) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s is not a safetensors file: expected a regular file of at least 8 bytes",
                    file->where);
  } else {
    void *const map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (map == MAP_FAILED) {
      char words[RFT_SYSTEM_ERROR_SIZE];
      code = rft_fail(error, RFT_RESOURCE_EXHAUSTED, "cannot map %s: %s", file->where,
                      rft_system_error(words, errno));
    } else {
      file->map = map;
      file->size = status.st_size;
    }
  }
  close(descriptor);
  return code;
}

int32_t rft_safetensors_open(const char *path, rft_safetensors **file, rft_error *error)
{
  rft_safetensors *const opened = calloc(1, sizeof *opened);
  if (opened == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for a tensor file");
  }
  rft_short_path(opened->where, path);
  int32_t code = map_file(path, opened, error);
  if (code == RFT_OK) {
    code = read_header(opened, error);
  }
  if (code != RFT_OK) {
    rft_safetensors_close(opened);
    return code;
  }
  *file = opened;
  return RFT_OK;
}

void rft_safetensors_close(rft_safetensors *file)
{
  if (file == NULL) {
    return;
  }
  for (int64_t i = 0; i < file->count; ++i) {
    free(file->entries[i].tensor.shape);
    free(file->entries[i].copy);
  }
  free(file->entries);
  json_decref(file->header);
  if (file->map != NULL) {
    munmap(file->map, (size_t)file->size);
  }
  free(file);
}

int64_t rft_safetensors_count(const rft_safetensors *file)
{
  return file->count;
}

const char *rft_safetensors_name(const rft_safetensors *file, int64_t index)
{
  return file->entries[index].name;
}

const rft_tensor *rft_safetensors_tensor(const rft_safetensors *file, const char *name)
{
  for (int64_t i = 0; i < file->count; ++i) {
    if (strcmp(file->entries[i].name, name) == 0) {
      return &file->entries[i].tensor;
    }
  }
  return NULL;
}

const char *rft_safetensors_metadata(const rft_safetensors *file, const char *key)
{
  return json_string_value(json_object_get(json_object_get(file->header, METADATA), key));
}
