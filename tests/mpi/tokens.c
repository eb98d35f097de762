// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "tokens.h"

#include "support/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const rft_dtype boolean = {RFT_DTYPE_BOOL, 8, 1};

// ---------------------------------------------------------------------------------------- batches

static void *allocate(int64_t count, int64_t size)
{
  void *const memory = calloc((size_t)count + 1, (size_t)size);
  if (memory == NULL) {
    abort(); // a test that has no memory has no result
  }
  return memory;
}

test_tokens tokens_new(int64_t count, rft_dtype dtype)
{
  const int64_t size = dtype.bits / 8;
  test_tokens made = {.count = count,
                      .dtype = dtype,
                      .logprob = allocate(count, size),
                      .old_logprob = allocate(count, size),
                      .advantages = allocate(count, size),
                      .mask = allocate(count, 1)};
  memset(made.mask, 1, (size_t)count);
  return made;
}

void tokens_free(test_tokens *self)
{
  free(self->logprob);
  free(self->old_logprob);
  free(self->advantages);
  free(self->mask);
}

void tokens_set(test_tokens *self, int array, int64_t i, double value)
{
  unsigned char *const arrays[FLOAT_ARRAYS] = {self->logprob, self->old_logprob, self->advantages};
  const int64_t size = self->dtype.bits / 8;
  rft_element_store(rft_element_of(self->dtype), arrays[array] + i * size, size, 1, &value);
}

static rft_dtype dtype_of_name(const char *name)
{
  const bool brain = strcmp(name, "bfloat16") == 0;
  const int bits = strcmp(name, "float64") == 0 ? 64 : strcmp(name, "float32") == 0 ? 32 : 16;
  return (rft_dtype){brain ? RFT_DTYPE_BFLOAT : RFT_DTYPE_FLOAT, (uint8_t)bits, 1};
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

test_tokens tokens_of_case(const json_t *json)
{
  static const char *const keys[FLOAT_ARRAYS] = {"logprob", "old_logprob", "advantages"};
  const json_t *const mask = json_object_get(json, "mask");
  const char *const dtype = json_string_value(json_object_get(json, "dtype"));
  test_tokens made = tokens_new((int64_t)json_array_size(mask), dtype_of_name(dtype));
  made.token_count = json_integer_value(json_object_get(json, "token_count"));
  made.scale = json_number_value(json_object_get(json, "scale"));
  for (int64_t i = 0; i < made.count; ++i) {
    made.mask[i] = json_integer_value(json_array_get(mask, (size_t)i)) != 0;
    for (int array = 0; array < FLOAT_ARRAYS; ++array) {
      const json_t *const values = json_object_get(json, keys[array]);
      tokens_set(&made, array, i, number_of(json_array_get(values, (size_t)i)));
    }
  }
  return made;
}

// SplitMix64 (Steele, Lea, Flood 2014), in [0, 1).
static double uniform(uint64_t *state)
{
  uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return ldexp((double)((z ^ (z >> 31)) >> 11), -53);
}

test_tokens tokens_random(uint64_t seed, int64_t count, rft_dtype dtype)
{
  uint64_t state = seed;
  test_tokens made = tokens_new(count, dtype);
  for (int64_t i = 0; i < count; ++i) {
    const double size = ldexp(uniform(&state), (int)(uniform(&state) * 12) - 10);
    const double ratio = uniform(&state) < 0.3 ? ldexp(1, (int)(uniform(&state) * 4) - 3) : size;
    const double old = -3 * uniform(&state);
    tokens_set(&made, OLD_LOGPROB, i, old);
    tokens_set(&made, LOGPROB, i, uniform(&state) < 0.5 ? old + ratio : old - ratio);
    tokens_set(&made, ADVANTAGES, i, floor(5 * uniform(&state)) - 2);
    made.mask[i] = uniform(&state) < 0.9;
  }
  return made;
}

// ---------------------------------------------------------------------------------------- answers

// Views of one micro-batch.
typedef struct micro_batch {
  int64_t shape[1];
  rft_tensor logprob;
  rft_tensor old_logprob;
  rft_tensor advantages;
  rft_tensor mask;
  rft_tensor keep;
  rft_tensor gradient;
  rft_batch batch;
} micro_batch;

static rft_tensor view(unsigned char *data, rft_dtype dtype, int64_t first, int64_t *shape)
{
  return (rft_tensor){.data = data,
                      .device = {RFT_DEVICE_CPU, 0},
                      .ndim = 1,
                      .dtype = dtype,
                      .shape = shape,
                      .byte_offset = (uint64_t)(first * dtype.bits / 8)};
}

static void view_tokens(const test_tokens *batch, const test_part *part, int64_t k,
                        const test_answer *answer, micro_batch *out)
{
  const rft_dtype gradient = {RFT_DTYPE_FLOAT, (uint8_t)(answer->gradient_size * 8), 1};
  const int64_t own = part->count * k / part->micro_batches;
  const int64_t first = part->first + own;
  out->shape[0] = part->count * (k + 1) / part->micro_batches - own;
  out->logprob = view(batch->logprob, batch->dtype, first, out->shape);
  out->old_logprob = view(batch->old_logprob, batch->dtype, first, out->shape);
  out->advantages = view(batch->advantages, batch->dtype, first, out->shape);
  out->mask = view(batch->mask, boolean, first, out->shape);
  out->keep = view(answer->keep, boolean, own, out->shape);
  out->gradient = view(answer->gradient, gradient, own, out->shape);
  out->batch = (rft_batch){.struct_size = sizeof out->batch,
                           .logprob = &out->logprob,
                           .old_logprob = &out->old_logprob,
                           .advantages = &out->advantages,
                           .mask = &out->mask};
}

static void select_tokens(const rft_policy_loss *loss, const rft_instance *instance,
                          const micro_batch *batches, int64_t count, const rft_collectives *group,
                          test_answer *out)
{
  rft_selection *selection = NULL;
  rft_error error = {.struct_size = sizeof error};
  out->code = loss->selection_begin(instance, &selection, &out->error);
  for (int64_t k = 0; out->code == RFT_OK && k < count; ++k) {
    out->code = loss->selection_add(selection, &batches[k].batch, &out->error);
  }
  const int32_t finished = loss->selection_finish(selection, group, &out->report, &error);
  if (out->code == RFT_OK && finished != RFT_OK) {
    out->code = finished;
    out->error = error;
  }
  for (int64_t k = 0; out->code == RFT_OK && k < count; ++k) {
    out->code = loss->selection_mask(selection, k, &batches[k].keep, &out->error);
  }
  loss->selection_end(selection);
}

static void evaluate(const rft_policy_loss *loss, const rft_instance *instance,
                     const test_tokens *tokens, const micro_batch *batches, int64_t count,
                     test_answer *out)
{
  const int64_t valid = tokens->token_count != 0 ? tokens->token_count : out->report.valid_tokens;
  const rft_reduction reduction = {.struct_size = sizeof reduction,
                                   .valid_tokens = valid,
                                   .kept_tokens = out->report.kept_tokens,
                                   .sequences = out->report.sequences,
                                   .scale = tokens->scale};
  for (int64_t k = 0; out->code == RFT_OK && k < count; ++k) {
    rft_output output = {.struct_size = sizeof output, .gradient = &batches[k].gradient};
    out->code = loss->evaluate(instance, &batches[k].batch, &batches[k].keep, &reduction, &output,
                               &out->error);
    out->loss += output.loss;
  }
}

test_answer answer_of(const rft_policy_loss *loss, const rft_instance *instance,
                      const test_tokens *batch, test_part part, const rft_collectives *group)
{
  const int64_t size = batch->dtype.bits == 64 ? 8 : 4;
  test_answer out = {.error = {.struct_size = sizeof out.error},
                     .metrics = allocate(loss->metric_count, sizeof(double)),
                     .keep = allocate(part.count, 1),
                     .gradient = allocate(part.count, size),
                     .gradient_size = size};
  out.report = (rft_selection_report){
      .struct_size = sizeof out.report, .metrics = out.metrics, .metric_count = loss->metric_count};
  micro_batch *const batches = allocate(part.micro_batches, sizeof *batches);
  for (int64_t k = 0; k < part.micro_batches; ++k) {
    view_tokens(batch, &part, k, &out, &batches[k]);
  }
  select_tokens(loss, instance, batches, part.micro_batches, group, &out);
  out.evaluated = out.code == RFT_OK;
  evaluate(loss, instance, batch, batches, part.micro_batches, &out);
  free(batches);
  return out;
}

void answer_free(test_answer *self)
{
  free(self->metrics);
  free(self->keep);
  free(self->gradient);
}
