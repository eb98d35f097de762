// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "provoke.h"

#include "batches.h"
#include "verdict.h"

#include <stdio.h>
#include <string.h>

// A good call, to be spoilt.
typedef struct scene {
  rft_batch *batch;
  const rft_tensor *keep;
  rft_reduction *reduction;
  rft_output *output;
} scene;

typedef struct provoker {
  const check_subject *subject;
  const rft_instance *instance;
  bool with_error;
  bool reads_old;
  bool reads_proximal;
  void (*judge)(const provocation *made);
} provoker;

enum { TAIL = 16 };

// --------------------------------------------------------------------------------------- one call

static scene make_scene(const provoker *p, bool packed)
{
  rng r = {p->subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  check_form form = check_form_plain();
  form.packed = packed;
  scene made = {.batch = check_batch(&values, &form)};
  made.reduction = check_memory(sizeof *made.reduction, PLAIN);
  made.reduction->struct_size = RFT_STRUCT_SIZE(rft_reduction, scale);
  made.output = check_memory(sizeof *made.output, PLAIN);
  *made.output = (rft_output){
      .struct_size = RFT_STRUCT_SIZE(rft_output, metric_count),
      .loss = UNWRITTEN,
      .gradient = packed ? check_tensor(NULL, 1, 1, 24, DTYPE_FLOAT32, &form.layout)
                         : check_tensor(NULL, 2, 4, 6, DTYPE_FLOAT32, &form.layout),
      .metrics = check_memory((size_t)p->subject->loss->metric_count * sizeof(double), PLAIN),
      .metric_count = p->subject->loss->metric_count};
  for (int64_t i = 0; i < made.output->metric_count; ++i) {
    made.output->metrics[i] = UNWRITTEN;
  }
  return made;
}

// `original`: the output before it was spoilt. Its gradient's bytes are all 0xA5.
static const char *find_touched(const rft_output *original, const rft_output *passed)
{
  if (original->loss != UNWRITTEN || (passed != NULL && passed->loss != UNWRITTEN)) {
    return "loss";
  }
  size_t size = 0;
  const unsigned char *const bytes = check_tensor_bytes(original->gradient, &size);
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != 0xA5) {
      return "gradient";
    }
  }
  for (int64_t i = 0; i < original->metric_count; ++i) {
    if (original->metrics[i] != UNWRITTEN) {
      return "metrics";
    }
  }
  return NULL;
}

static void provoke(const provoker *p, provocation_group group, const char *what, bool must_fail,
                    const scene *call, const rft_output *original)
{
  rft_error error = {.struct_size = sizeof error, .code = -1};
  rft_error *const given = p->with_error ? &error : NULL;
  const int32_t code = p->subject->loss->evaluate(p->instance, call->batch, call->keep,
                                                  call->reduction, call->output, given);
  const provocation made = {what,  group,     code,
                            given, must_fail, find_touched(original, call->output)};
  p->judge(&made);
}

// ----------------------------------------------------------------------------------------- structs

static void provoke_null_structs(const provoker *p)
{
  scene call = make_scene(p, false);
  const rft_output *const original = call.output;
  call.batch = NULL;
  provoke(p, NULL_STRUCTS, "batch: NULL", true, &call, original);
  call = make_scene(p, false);
  const rft_output *const second = call.output;
  call.output = NULL;
  provoke(p, NULL_STRUCTS, "output: NULL", true, &call, second);
}

// The struct says, and has, 8 bytes less: the last field is missing.
static void *shorter(const void *object, uint32_t size)
{
  const uint32_t smaller = size - 8;
  void *const copy = check_guarded_copy(object, smaller);
  return memcpy(copy, &smaller, sizeof smaller);
}

static void provoke_short_structs(const provoker *p)
{
  scene call = make_scene(p, false);
  const rft_output *original = call.output;
  call.batch = shorter(call.batch, RFT_STRUCT_SIZE(rft_batch, stream));
  provoke(p, SHORT_STRUCTS, "batch: struct_size too small", true, &call, original);
  call = make_scene(p, false);
  original = call.output;
  call.reduction = shorter(call.reduction, RFT_STRUCT_SIZE(rft_reduction, scale));
  provoke(p, SHORT_STRUCTS, "reduction: struct_size too small", true, &call, original);
  call = make_scene(p, false);
  original = call.output;
  call.output = shorter(call.output, RFT_STRUCT_SIZE(rft_output, metric_count));
  provoke(p, SHORT_STRUCTS, "output: struct_size too small", true, &call, original);
}

// The struct of a newer caller, that asks for what this version doesn't know.
static void *longer(const void *object, uint32_t size)
{
  unsigned char copy[256];
  const uint32_t larger = size + TAIL;
  memset(copy, 0, sizeof copy);
  memcpy(copy, object, size);
  memcpy(copy, &larger, sizeof larger);
  copy[larger - 1] = 1;
  return check_guarded_copy(copy, larger);
}

static void provoke_long_structs(const provoker *p)
{
  scene call = make_scene(p, false);
  const rft_output *original = call.output;
  call.batch = longer(call.batch, RFT_STRUCT_SIZE(rft_batch, stream));
  provoke(p, LONG_STRUCTS, "batch: a tail that is set", true, &call, original);
  call = make_scene(p, false);
  original = call.output;
  call.batch->reserved = 1;
  provoke(p, LONG_STRUCTS, "batch: reserved is 1", true, &call, original);
  call = make_scene(p, false);
  original = call.output;
  call.reduction = longer(call.reduction, RFT_STRUCT_SIZE(rft_reduction, scale));
  provoke(p, LONG_STRUCTS, "reduction: a tail that is set", true, &call, original);
  call = make_scene(p, false);
  original = call.output;
  call.output = longer(call.output, RFT_STRUCT_SIZE(rft_output, metric_count));
  provoke(p, LONG_STRUCTS, "output: a tail that is set", true, &call, original);
}

// ----------------------------------------------------------------------------------------- tensors

typedef enum slot { LOGPROB, OLD_LOGPROB, PROXIMAL, ADVANTAGES, MASK, GRADIENT, SLOTS } slot;

static const char *const SLOT_NAMES[SLOTS] = {"logprob",    "old_logprob", "proximal_logprob",
                                              "advantages", "mask",        "gradient"};

static const rft_tensor **slot_of(const scene *call, slot which)
{
  const rft_tensor **const slots[SLOTS] = {
      &call->batch->logprob,    &call->batch->old_logprob, &call->batch->proximal_logprob,
      &call->batch->advantages, &call->batch->mask,        &call->output->gradient};
  return slots[which];
}

static bool is_optional(slot which)
{
  return which == PROXIMAL || which == GRADIENT;
}

static bool must_fail(const provoker *p, slot which)
{
  return (which != OLD_LOGPROB || p->reads_old) && (which != PROXIMAL || p->reads_proximal);
}

// Spoils a copy of a good tensor; `way` counts the ways, false past the last.
typedef bool (*spoiler)(rft_tensor *tensor, slot which, int way, const char **what);

static bool spoil_shape(rft_tensor *tensor, slot which, int way, const char **what)
{
  static int64_t numbers[] = {2, 2, 6};
  static const char *const ways[] = {"a column less", "a row less", "no dimension", "3 dimensions",
                                     "a negative size"};
  if (way >= (int)(sizeof ways / sizeof ways[0])) {
    return false;
  }
  *what = ways[way];
  if (way == 0) {
    tensor->shape[1] -= which == LOGPROB ? 2 : 1;
  } else if (way == 1) {
    --tensor->shape[0];
  } else if (way == 2) {
    tensor->ndim = 0;
  } else if (way == 3) {
    tensor->ndim = 3;
    tensor->shape = numbers;
  } else {
    tensor->shape[0] = -4;
  }
  return true;
}

static bool spoil_dtype(rft_tensor *tensor, slot which, int way, const char **what)
{
  static const struct {
    rft_dtype dtype;
    const char *what;
  } ways[] = {{{5, 64, 1}, "complex64"},        {{3, 64, 1}, "an opaque handle"},
              {{10, 8, 1}, "an 8-bit float"},   {{200, 32, 1}, "type code 200"},
              {{2, 0, 1}, "a float of 0 bits"}, {{2, 48, 1}, "a float of 48 bits"},
              {{2, 32, 2}, "a vector of two"},  {{1, 16, 1}, "uint16"}};
  if (way >= (int)(sizeof ways / sizeof ways[0])) {
    return false;
  }
  (void)which;
  tensor->dtype = ways[way].dtype;
  *what = ways[way].what;
  return true;
}

// Device types that no plugin of this version computes on. CUDA and ROCm are none of these: a
// plugin may well know them, and read what isn't there.
static bool spoil_device(rft_tensor *tensor, slot which, int way, const char **what)
{
  static const struct {
    int32_t type;
    const char *what;
  } ways[] = {{7, "a Vulkan device"},
              {8, "a Metal device"},
              {999, "device type 999"},
              {0, "device type 0"},
              {-1, "device type -1"}};
  if (way >= (int)(sizeof ways / sizeof ways[0])) {
    return false;
  }
  (void)which;
  tensor->device.type = ways[way].type;
  *what = ways[way].what;
  return true;
}

static bool spoil_data(rft_tensor *tensor, slot which, int way, const char **what)
{
  (void)which;
  tensor->data = NULL;
  *what = "data is NULL";
  return way == 0;
}

static void provoke_tensors(const provoker *p, provocation_group group, spoiler spoil)
{
  for (int i = 0; i < SLOTS; ++i) {
    const char *way_text = "";
    for (int way = 0;; ++way) {
      const scene call = make_scene(p, false);
      const rft_output original = *call.output;
      const rft_tensor **const target = slot_of(&call, (slot)i);
      rft_tensor *const spoilt = check_tensor_copy(*target);
      if (!spoil(spoilt, (slot)i, way, &way_text)) {
        break;
      }
      *target = spoilt;
      char what[96];
      snprintf(what, sizeof what, "%s: %s", SLOT_NAMES[i], way_text);
      provoke(p, group, what, must_fail(p, (slot)i), &call, &original);
    }
  }
}

static void provoke_null_tensors(const provoker *p)
{
  for (int i = 0; i < SLOTS; ++i) {
    if (is_optional((slot)i)) {
      continue;
    }
    const scene call = make_scene(p, false);
    *slot_of(&call, (slot)i) = NULL;
    char what[96];
    snprintf(what, sizeof what, "%s: NULL", SLOT_NAMES[i]);
    provoke(p, NULL_TENSORS, what, must_fail(p, (slot)i), &call, call.output);
  }
  provoke_tensors(p, NULL_TENSORS, spoil_data);
}

static void provoke_offsets(const provoker *p)
{
  static const struct {
    double starts[5];
    const char *what;
  } ways[] = {{{1, 6, 12, 18, 24}, "cu_seqlens: it starts at 1"},
              {{0, 12, 6, 18, 24}, "cu_seqlens: it falls"},
              {{0, 6, 12, 18, 23}, "cu_seqlens: it ends before the last token"},
              {{0, 6, 12, 18, 25}, "cu_seqlens: it ends behind the last token"},
              {{-6, 0, 6, 12, 24}, "cu_seqlens: it starts below 0"}};
  const check_layout layout = {.placement = PLAIN};
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
    const scene call = make_scene(p, true);
    call.batch->cu_seqlens = check_tensor(ways[i].starts, 1, 1, 5, DTYPE_INT64, &layout);
    provoke(p, WRONG_OFFSETS, ways[i].what, true, &call, call.output);
  }
  const scene call = make_scene(p, true);
  call.batch->cu_seqlens = check_tensor(ways[0].starts, 1, 1, 5, DTYPE_FLOAT64, &layout);
  provoke(p, WRONG_OFFSETS, "cu_seqlens: float64", true, &call, call.output);
}

// -------------------------------------------------------------------------------------- everything

void check_provoke(const check_subject *subject, int groups, bool with_error,
                   void (*judge)(const provocation *made))
{
  provoker p = {subject, check_create(subject), with_error, false, false, judge};
  p.reads_old = check_reads(subject, p.instance, true);
  p.reads_proximal = check_reads(subject, p.instance, false);
  if ((groups & NULL_STRUCTS) != 0) {
    provoke_null_structs(&p);
  }
  if ((groups & SHORT_STRUCTS) != 0) {
    provoke_short_structs(&p);
  }
  if ((groups & LONG_STRUCTS) != 0) {
    provoke_long_structs(&p);
  }
  if ((groups & NULL_TENSORS) != 0) {
    provoke_null_tensors(&p);
  }
  if ((groups & WRONG_SHAPES) != 0) {
    provoke_tensors(&p, WRONG_SHAPES, spoil_shape);
  }
  if ((groups & WRONG_DTYPES) != 0) {
    provoke_tensors(&p, WRONG_DTYPES, spoil_dtype);
  }
  if ((groups & WRONG_DEVICES) != 0) {
    provoke_tensors(&p, WRONG_DEVICES, spoil_device);
  }
  if ((groups & WRONG_OFFSETS) != 0) {
    provoke_offsets(&p);
  }
}
