// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Tensor files: what is written can be read, what is damaged is refused, and nothing is ever
// half-written.

#include "rft/safetensors.h"
#include "scratch.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(safetensors, .init = scratch_begin, .fini = scratch_end);

static rft_tensor tensor_of(void *data, rft_dtype dtype, int32_t ndim, int64_t *shape)
{
  return (rft_tensor){.data = data,
                      .device = {.type = RFT_DEVICE_CPU},
                      .ndim = ndim,
                      .dtype = dtype,
                      .shape = shape};
}

// A file with this header text and `data_size` zero bytes of data.
static const char *file_with(const char *header, size_t data_size)
{
  const size_t length = strlen(header);
  unsigned char *const bytes = calloc(1, 8 + length + data_size);
  bytes[0] = (unsigned char)length;
  bytes[1] = (unsigned char)(length >> 8U);
  memcpy(bytes + 8, header, length);
  const char *const path = scratch_write("x.safetensors", bytes, 8 + length + data_size);
  free(bytes);
  return path;
}

static void expect_refused(const char *path, const char *message)
{
  rft_safetensors *file = NULL;
  rft_error error = {.struct_size = sizeof error};
  cr_expect_neq(rft_safetensors_open(path, &file, &error), RFT_OK);
  cr_expect_null(file);
  cr_expect_not_null(strstr(error.message, path), "%s", error.message);
  cr_expect_not_null(strstr(error.message, message), "%s", error.message);
}

// -------------------------------------------------------------------------------------- round trip

Test(safetensors, gives_back_what_was_written)
{
  float floats[6] = {0, 1, -2.5F, 3, 4, 5};
  unsigned char bytes[3] = {1, 0, 1};
  double number = 0.1;
  int64_t matrix[2] = {2, 3};
  int64_t vector[1] = {3};
  int64_t empty[2] = {0, 7};
  const rft_tensor a = tensor_of(bytes, (rft_dtype){RFT_DTYPE_BOOL, 8, 1}, 1, vector);
  const rft_tensor b = tensor_of(floats, (rft_dtype){RFT_DTYPE_FLOAT, 32, 1}, 2, matrix);
  const rft_tensor c = tensor_of(&number, (rft_dtype){RFT_DTYPE_FLOAT, 64, 1}, 0, NULL);
  const rft_tensor d = tensor_of(NULL, (rft_dtype){RFT_DTYPE_BFLOAT, 16, 1}, 2, empty);
  const rft_named_tensor tensors[] = {{"a", &a}, {"b", &b}, {"c", &c}, {"d", &d}};
  const char *const path = scratch_path("x.safetensors");
  rft_error error = {.struct_size = sizeof error};
  cr_assert_eq(rft_safetensors_write(path, tensors, 4, "{\"task\": \"sums\"}", &error), RFT_OK,
               "%s", error.message);
  rft_safetensors *file = NULL;
  cr_assert_eq(rft_safetensors_open(path, &file, &error), RFT_OK, "%s", error.message);
  cr_expect_eq(rft_safetensors_count(file), 4);
  cr_expect_str_eq(rft_safetensors_metadata(file, "task"), "sums");
  cr_expect_null(rft_safetensors_metadata(file, "other"));
  cr_expect_null(rft_safetensors_tensor(file, "e"));
  for (int i = 0; i < 4; ++i) {
    const rft_tensor *const expected = tensors[i].tensor;
    const rft_tensor *const found = rft_safetensors_tensor(file, tensors[i].name);
    cr_assert_not_null(found);
    cr_expect_eq(memcmp(&found->dtype, &expected->dtype, sizeof(rft_dtype)), 0);
    cr_assert_eq(found->ndim, expected->ndim);
    cr_expect_eq((uintptr_t)found->data % (found->dtype.bits / 8U), 0);
  }
  cr_expect_arr_eq(rft_safetensors_tensor(file, "b")->data, floats, sizeof floats);
  cr_expect_arr_eq(rft_safetensors_tensor(file, "b")->shape, matrix, sizeof matrix);
  cr_expect_arr_eq(rft_safetensors_tensor(file, "a")->data, bytes, sizeof bytes);
  rft_safetensors_close(file);
}

Test(safetensors, reads_a_recorded_batch)
{
  rft_safetensors *file = NULL;
  rft_error error = {.struct_size = sizeof error};
  const char *const path = RFT_TEST_DATA_DIR "/smollm2_k16.safetensors";
  cr_assert_eq(rft_safetensors_open(path, &file, &error), RFT_OK, "%s", error.message);
  const rft_tensor *const logprob = rft_safetensors_tensor(file, "logprob");
  cr_assert_not_null(logprob);
  cr_expect_eq(logprob->shape[0], 128);
  cr_expect_eq(logprob->shape[1], 32);
  rft_safetensors_close(file);
}

Test(safetensors, aligns_tensors_that_the_file_does_not)
{
  const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                        "\"b\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[1,9]}}";
  rft_safetensors *file = NULL;
  cr_assert_eq(rft_safetensors_open(file_with(header, 9), &file, NULL), RFT_OK);
  cr_expect_eq(*(const double *)rft_safetensors_tensor(file, "b")->data, 0);
  rft_safetensors_close(file);
}

// ------------------------------------------------------------------------------------------ damage

Test(safetensors, refuses_files_of_another_kind)
{
  expect_refused(scratch_path("nowhere"), "No such file");
  expect_refused(scratch_directory(), "expected a regular file");
  expect_refused(scratch_write("x", "", 0), "at least 8 bytes");
  expect_refused(scratch_write("x", "not tensors at all", 18), "is not a safetensors file");
  expect_refused(file_with("[]", 0), "begin with '{'");
  expect_refused(file_with("{\"a\":", 0), "header is not valid JSON");
}

Test(safetensors, refuses_each_fault_of_a_header)
{
#define TENSOR(dtype, shape, offsets)                                                              \
  "{\"t\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
  const struct {
    const char *header;
    const char *message;
  } cases[] = {
      {"{\"t\":1}", "tensor \"t\": expected exactly dtype, shape and data_offsets"},
      {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1]}}", "expected exactly"},
      {TENSOR("\"F4\"", "[1]", "[0,4]"), "tensor \"t\": dtype \"F4\" is not supported"},
      {TENSOR("\"F32\"", "1", "[0,4]"), "expected \"shape\" to be a list"},
      {TENSOR("\"F32\"", "[-1]", "[0,4]"), "expected \"shape\" to be a list"},
      {TENSOR("\"F32\"", "[1.0]", "[0,4]"), "expected \"shape\" to be a list"},
      {TENSOR("\"F32\"", "[4294967296,4294967296]", "[0,4]"), "more bytes than 63 bits"},
      {TENSOR("\"F32\"", "[1]", "[4,0]"), "expected \"data_offsets\""},
      {TENSOR("\"F32\"", "[1]", "[0]"), "expected \"data_offsets\""},
      {TENSOR("\"F32\"", "[1]", "[0,8]"), "take 4 bytes, its data_offsets hold 8"},
      {TENSOR("\"F32\"", "[2]", "[0,8]"), "ends at byte 8 of the data, which has 4"},
      {TENSOR("\"F16\"", "[1]", "[2,4]"), "expected its data at byte 0, found 2"},
      {TENSOR("\"F16\"", "[1]", "[0,2]"), "2 bytes after the last tensor"},
      {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
       "\"u\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[2,4]}}",
       "tensor \"u\": expected its data at byte 4, found 2"},
      {"{\"t\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]},"
       "\"t\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[2,4]}}",
       "key \"t\" is given twice"},
      {"{\"__metadata__\":{\"a\":1}}", "__metadata__ key \"a\": expected a string"},
      {"{\"__metadata__\":[]}", "expected __metadata__ to be an object"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    expect_refused(file_with(cases[i].header, 4), cases[i].message);
  }
}

Test(safetensors, refuses_a_recorded_batch_cut_anywhere)
{
  size_t size = 0;
  unsigned char *const bytes = read_file(RFT_TEST_DATA_DIR "/smollm2_k16.safetensors", &size);
  for (size_t length = 0; length < size; length += 1 + size / 97) {
    rft_safetensors *file = NULL;
    const char *const path = scratch_write("x.safetensors", bytes, length);
    cr_expect_neq(rft_safetensors_open(path, &file, NULL), RFT_OK, "%zu bytes", length);
  }
  free(bytes);
}

// ----------------------------------------------------------------------------------------- writing

static int entries_in_scratch(void)
{
  DIR *const directory = opendir(scratch_directory());
  int count = 0;
  for (const struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
    count += entry->d_name[0] != '.';
  }
  closedir(directory);
  return count;
}

static int32_t write_one(const char *path, const char *name, const rft_tensor *tensor,
                         rft_error *error)
{
  const rft_named_tensor tensors[] = {{name, tensor}};
  return rft_safetensors_write(path, tensors, 1, NULL, error);
}

Test(safetensors, replaces_a_file_and_leaves_nothing_beside_it)
{
  float value = 1;
  const rft_tensor tensor = tensor_of(&value, (rft_dtype){RFT_DTYPE_FLOAT, 32, 1}, 0, NULL);
  const char *const path = scratch_write("x.safetensors", "old", 3);
  cr_assert_eq(write_one(path, "t", &tensor, NULL), RFT_OK);
  rft_safetensors *file = NULL;
  cr_assert_eq(rft_safetensors_open(path, &file, NULL), RFT_OK);
  rft_safetensors_close(file);
  cr_expect_eq(entries_in_scratch(), 1);
}

Test(safetensors, refuses_what_it_cannot_write_and_leaves_the_old_file)
{
  float values[4] = {0};
  int64_t shape[2] = {2, 2};
  int64_t transposed[2] = {1, 2};
  const rft_dtype float32 = {RFT_DTYPE_FLOAT, 32, 1};
  rft_tensor strided = tensor_of(values, float32, 2, shape);
  strided.strides = transposed;
  rft_tensor complex_number = tensor_of(values, (rft_dtype){5, 64, 1}, 0, NULL);
  rft_tensor remote = tensor_of(values, float32, 2, shape);
  remote.device.type = RFT_DEVICE_CUDA;
  const rft_tensor good = tensor_of(values, float32, 2, shape);
  const struct {
    const char *name;
    const rft_tensor *tensor;
    const char *message;
  } cases[] = {{"t", &strided, "compact row-major"},
               {"t", &complex_number, "dtype cannot be stored"},
               {"t", &remote, "memory of the CPU"},
               {"__metadata__", &good, "not a name"},
               {"", &good, "not a name"},
               {"\xFF", &good, "not UTF-8"}};
  const char *const path = scratch_write("x.safetensors", "old", 3);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    rft_error error = {.struct_size = sizeof error};
    cr_expect_eq(write_one(path, cases[i].name, cases[i].tensor, &error), RFT_INVALID_ARGUMENT);
    cr_expect_not_null(strstr(error.message, cases[i].message), "%s", error.message);
  }
  const rft_named_tensor twice[] = {{"t", &good}, {"t", &good}};
  cr_expect_eq(rft_safetensors_write(path, twice, 2, NULL, NULL), RFT_INVALID_ARGUMENT);
  cr_expect_eq(rft_safetensors_write(path, twice, 1, "{\"a\": 1}", NULL), RFT_INVALID_ARGUMENT);
  size_t size = 0;
  unsigned char *const bytes = read_file(path, &size);
  cr_expect_eq(size, 3);
  free(bytes);
  cr_expect_eq(entries_in_scratch(), 1);
}

Test(safetensors, never_replaces_what_is_not_a_regular_file)
{
  float value = 1;
  const rft_tensor tensor = tensor_of(&value, (rft_dtype){RFT_DTYPE_FLOAT, 32, 1}, 0, NULL);
  rft_error error = {.struct_size = sizeof error};
  cr_assert_eq(mkfifo(scratch_path("pipe"), 0600), 0);
  cr_expect_eq(write_one(scratch_path("pipe"), "t", &tensor, &error), RFT_INVALID_ARGUMENT);
  cr_expect_not_null(strstr(error.message, "not a regular file"), "%s", error.message);
  cr_expect_neq(write_one(scratch_path("nowhere/x"), "t", &tensor, &error), RFT_OK);
  cr_expect_eq(entries_in_scratch(), 1);
}
