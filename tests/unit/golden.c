// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "golden.h"

#include <math.h>
#include <string.h>

static const char path[] = RFT_TEST_DATA_DIR "/m2po_cases.json";

static const json_t *cases(void)
{
  static json_t *document;
  if (document == NULL) {
    json_error_t error;
    document = json_load_file(path, 0, &error);
    cr_assert(document != NULL, "%s:%d: %s", path, error.line, error.text);
  }
  return json_object_get(document, "cases");
}

static bool expects_error(const json_t *json)
{
  return json_object_get(json_object_get(json, "expect"), "error") != NULL;
}

struct criterion_test_params golden_parameters(bool error)
{
  json_t *const document = json_load_file(path, 0, NULL);
  const json_t *const all = json_object_get(document, "cases");
  int *const index = cr_malloc((json_array_size(all) + 1) * sizeof *index);
  size_t count = 0;
  for (size_t i = 0; i < json_array_size(all); ++i) {
    if (expects_error(json_array_get(all, i)) == error) {
      index[count++] = (int)i;
    }
  }
  if (count == 0) { // the file can't be read: one test that says so
    index[count++] = 0;
  }
  json_decref(document);
  return cr_make_param_array(int, index, count);
}

// JSON has no NaN and no infinity: the file writes them as strings.
static double number_of(const json_t *value)
{
  const char *const text = json_string_value(value);
  if (text == NULL) {
    return json_number_value(value);
  }
  return strcmp(text, "nan") == 0 ? (double)NAN : text[0] == '-' ? (double)-INFINITY : INFINITY;
}

static rft_tensor *tensor_of(const json_t *json, const char *key, rft_dtype dtype)
{
  const json_t *const values = json_object_get(json, key);
  const json_t *const shape = json_object_get(json, "shape");
  tensor_layout layout = {.ndim = (int32_t)json_array_size(shape), .compact = true};
  for (int32_t i = 0; i < layout.ndim; ++i) {
    layout.shape[i] = json_integer_value(json_array_get(shape, (size_t)i));
  }
  rft_tensor *const tensor = tensor_new(dtype, &layout, NULL);
  for (int64_t i = 0; i < tensor_count(tensor); ++i) {
    tensor_set(tensor, i, number_of(json_array_get(values, (size_t)i)));
  }
  return tensor;
}

static const char *text_of(const json_t *config)
{
  char *const printed = json_dumps(config, JSON_COMPACT);
  char *const text = test_alloc((int64_t)strlen(printed) + 1);
  strcpy(text, printed);
  free(printed);
  return text;
}

golden_case golden_open(int index)
{
  const json_t *const json = json_array_get(cases(), (size_t)index);
  const json_t *const config = json_object_get(json, "config");
  const rft_dtype dtype = dtype_of_name(json_string_value(json_object_get(json, "dtype")));
  const json_t *const expect = json_object_get(json, "expect");
  return (golden_case){
      .name = json_string_value(json_object_get(json, "name")),
      .config_text = text_of(config),
      .config = reference_config_read(config),
      .batch =
          batch_new(tensor_of(json, "logprob", dtype), tensor_of(json, "old_logprob", dtype), NULL,
                    tensor_of(json, "advantages", dtype), tensor_of(json, "mask", bool8), NULL),
      .token_count = json_integer_value(json_object_get(json, "token_count")),
      .scale = json_number_value(json_object_get(json, "scale")),
      .error = json_string_value(json_object_get(expect, "error")),
      .expect = expect,
      .splits = json_object_get(json, "also_as_micro_batches_of"),
  };
}

double golden_number(const golden_case *golden, const char *key)
{
  const json_t *const value = json_object_get(golden->expect, key);
  cr_assert(json_is_number(value), "%s has no number %s", golden->name, key);
  return json_number_value(value);
}

double golden_element(const golden_case *golden, const char *key, int64_t i)
{
  const json_t *const value = json_array_get(json_object_get(golden->expect, key), (size_t)i);
  cr_assert(json_is_number(value), "%s has no %s[%d]", golden->name, key, (int)i);
  return json_number_value(value);
}
