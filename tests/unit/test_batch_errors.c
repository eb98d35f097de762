// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Wrong batches, given to selection_add and to evaluate: the message names what is wrong, and no
// output is touched.

#include "bad_inputs.h"
#include "plugin_fixture.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <string.h>

TestSuite(batch_errors, .fini = plugin_fixture_end);

static struct criterion_test_params all_inputs(void)
{
  int *const index = cr_malloc((size_t)bad_input_count * sizeof *index);
  for (int i = 0; i < bad_input_count; ++i) {
    index[i] = i;
  }
  return cr_make_param_array(int, index, (size_t)bad_input_count);
}

static rft_batch *spoilt(const bad_input *bad)
{
  rft_batch *const batch = bad->packed ? good_packed_batch() : good_batch();
  bad->spoil(batch);
  return batch;
}

static void copy_without_spaces(char *copy, const char *text)
{
  for (; *text != '\0'; ++text) {
    if (*text != ' ') {
      *copy++ = *text;
    }
  }
  *copy = '\0';
}

static void check_error(const bad_input *bad, int32_t code, const rft_error *error)
{
  cr_assert_eq(code, bad->code, "%s: code %d, %s", bad->name, code, error->message);
  cr_expect_eq(error->code, code, "%s", bad->name);
  char message[RFT_ERROR_MESSAGE_SIZE];
  copy_without_spaces(message, error->message);
  for (int i = 0; i < 3 && bad->parts[i] != NULL; ++i) {
    const char *const found = strstr(message, bad->parts[i]);
    cr_expect(found != NULL, "%s: no \"%s\" in: %s", bad->name, bad->parts[i], error->message);
    // The subject comes first: a message about logprob is not one about old_logprob.
    cr_expect(i > 0 || found == message, "%s: %s does not come first in: %s", bad->name,
              bad->parts[i], error->message);
  }
}

// ---------------------------------------------------------------------------------------- evaluate

/// Outputs with known bytes, and a copy of them.
typedef struct watched_output {
  rft_output output;
  rft_tensor *gradient;
  double *metrics;
} watched_output;

static watched_output watch(int32_t ndim)
{
  const tensor_layout layout = {ndim, {ndim == 1 ? 6 : 2, 3}, {0, 0}, true, 0};
  watched_output watched = {.gradient = tensor_new(float32, &layout, NULL),
                            .metrics = metrics_new()};
  for (int64_t i = 0; i < 6; ++i) {
    tensor_set(watched.gradient, i, -777.0);
  }
  watched.output = (rft_output){.struct_size = sizeof watched.output,
                                .loss = -777.0,
                                .gradient = watched.gradient,
                                .metrics = watched.metrics,
                                .metric_count = m2po()->metric_count};
  return watched;
}

static void check_untouched(const char *what, const watched_output *watched)
{
  cr_expect_eq(watched->output.loss, -777.0, "%s: the loss is written", what);
  for (int64_t i = 0; i < 6; ++i) {
    cr_expect_eq(tensor_get(watched->gradient, i), -777.0, "%s: gradient[%d] is written", what,
                 (int)i);
  }
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    cr_expect_eq(watched->metrics[i], METRIC_UNWRITTEN, "%s: %s is written", what,
                 m2po()->metrics[i]->name);
  }
}

ParameterizedTestParameters(batch_errors, evaluate)
{
  return all_inputs();
}

ParameterizedTest(int *index, batch_errors, evaluate)
{
  const bad_input *const bad = &bad_inputs[*index];
  const rft_batch *const batch = spoilt(bad);
  watched_output watched = watch(bad->packed ? 1 : 2);
  rft_instance *const instance = m2po_create("{}");
  rft_error error = error_new();
  const int32_t code = m2po()->evaluate(instance, batch, NULL, NULL, &watched.output, &error);
  check_error(bad, code, &error);
  cr_expect_eq(m2po()->evaluate(instance, batch, NULL, NULL, &watched.output, NULL), code, "%s",
               bad->name);
  check_untouched(bad->name, &watched);
}

// ----------------------------------------------------------------------------------- selection_add

// The selection reads the policy that m2_reference names, and only that.
static const char *config_for(const bad_input *bad)
{
  return strstr(bad->name, "proximal") != NULL ? "{\"m2_reference\": \"proximal\"}" : "{}";
}

ParameterizedTestParameters(batch_errors, selection_add)
{
  return all_inputs();
}

ParameterizedTest(int *index, batch_errors, selection_add)
{
  const bad_input *const bad = &bad_inputs[*index];
  const rft_batch *const batch = spoilt(bad);
  rft_instance *const instance = m2po_create(config_for(bad));
  rft_selection *selection = NULL;
  rft_error error = error_new();
  cr_assert_eq(m2po()->selection_begin(instance, &selection, &error), RFT_OK);
  const int32_t code = m2po()->selection_add(selection, batch, &error);
  check_error(bad, code, &error);
  m2po()->selection_end(selection);
  cr_assert_eq(m2po()->selection_begin(instance, &selection, NULL), RFT_OK);
  cr_expect_eq(m2po()->selection_add(selection, batch, NULL), code, "%s", bad->name);
  m2po()->selection_end(selection);
}

Test(batch_errors, the_good_batches_are_good)
{
  const char *const configs[] = {"{}", "{\"m2_reference\": \"proximal\"}"};
  for (int c = 0; c < 2; ++c) {
    const batch_list list = batch_list_of(good_batch());
    select_ok(m2po_create(configs[c]), &list);
    evaluate_ok(m2po_create(configs[c]), good_batch(), NULL, NULL, float32);
  }
  const batch_list packed = batch_list_of(good_packed_batch());
  select_ok(m2po_create("{}"), &packed);
  evaluate_ok(m2po_create("{}"), good_packed_batch(), NULL, NULL, float32);
}

Test(batch_errors, page_locked_memory_is_read_like_any_other)
{
  rft_batch *const batch = good_batch();
  ((rft_tensor *)(uintptr_t)batch->logprob)->device.type = RFT_DEVICE_CUDA_HOST;
  ((rft_tensor *)(uintptr_t)batch->mask)->device = (rft_device){RFT_DEVICE_ROCM_HOST, 3};
  evaluate_ok(m2po_create("{}"), batch, NULL, NULL, float32);
}

// The first of several faults in token order, whatever the threads.
Test(batch_errors, of_several_faults_the_first_is_named)
{
  enum { COUNT = 100000, FIRST = 40321 };
  rft_tensor *const logprob = tensor_1d(float32, COUNT, NULL);
  rft_tensor *const ones = tensor_1d(float32, COUNT, NULL);
  for (int64_t i = 0; i < COUNT; ++i) {
    tensor_set(ones, i, 1.0);
    tensor_set(logprob, i, i >= FIRST ? NAN : 0.0);
  }
  const rft_batch *const batch =
      batch_new(logprob, tensor_1d(float32, COUNT, NULL), NULL, ones, ones, NULL);
  const batch_list list = batch_list_of(batch);
  for (int t = HOST_SERIAL; t <= HOST_THREADED; ++t) {
    rft_instance *const instance = m2po_create_on(host_new((host_threads)t, 8), "{}");
    selection_result selection;
    evaluation evaluated;
    rft_error error = error_new();
    cr_expect_eq(m2po_select(instance, &list, &selection, &error), RFT_OUT_OF_RANGE);
    cr_expect(strstr(error.message, "index 40321 ") != NULL, "%s", error.message);
    error = error_new();
    cr_expect_eq(m2po_evaluate(instance, batch, NULL, NULL, float32, &evaluated, &error),
                 RFT_OUT_OF_RANGE);
    cr_expect(strstr(error.message, "index 40321 ") != NULL, "%s", error.message);
  }
}

Test(batch_errors, a_square_that_overflows_is_named_where_the_token_is_constrained)
{
  rft_batch *const batch = good_batch();
  tensor_set(batch->logprob, 4, 2e19);
  const batch_list list = batch_list_of(batch);
  selection_result selection;
  rft_error error = error_new();
  cr_expect_eq(m2po_select(m2po_create("{}"), &list, &selection, &error), RFT_OUT_OF_RANGE);
  cr_expect(strstr(error.message, "index 4") != NULL, "%s", error.message);
  tensor_set(batch->advantages, 4, -1.0); // not in T: its square is not needed
  select_ok(m2po_create("{}"), &list);
}
