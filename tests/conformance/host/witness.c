// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin that keeps every rule and writes down what its host does: a line a call, into the file
// that RFT_WITNESS_TRACE names. Its counts and metrics are made up, so that a host which computes
// its own shows.

#include "../../fixtures/fixture.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { VALID_TOKENS = 1000, KEPT_TOKENS = 900, SEQUENCES = 7 };

struct rft_instance {
  const rft_host *host;
  int evaluations;
};

struct rft_selection {
  int unused;
};

__attribute__((format(printf, 1, 2))) static void trace(const char *format, ...)
{
  const char *const path = getenv("RFT_WITNESS_TRACE");
  FILE *const file = path == NULL ? NULL : fopen(path, "a");
  if (file != NULL) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    (void)fclose(file);
  }
}

static int64_t positions(const rft_batch *batch)
{
  int64_t count = 1;
  for (int32_t i = 0; i < batch->logprob->ndim; ++i) {
    count *= batch->logprob->shape[i];
  }
  return count;
}

static int32_t witness_create(const rft_policy_loss *loss, const rft_host *host, const char *config,
                              int64_t config_length, rft_instance **instance, rft_error *error)
{
  (void)loss;
  (void)error;
  trace("create %.*s\n", (int)config_length, config);
  *instance = calloc(1, sizeof **instance);
  (*instance)->host = host;
  return RFT_OK;
}

static void witness_destroy(rft_instance *instance)
{
  if (instance != NULL) {
    const rft_host *const host = instance->host;
    host->get_service(host, RFT_HOST_LOG);
    trace("destroy %s\n", host->name);
  }
  free(instance);
}

static int32_t begin(const rft_instance *instance, rft_selection **selection, rft_error *error)
{
  (void)instance;
  (void)error;
  trace("begin\n");
  *selection = calloc(1, sizeof **selection);
  return RFT_OK;
}

static int32_t add(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  (void)selection;
  (void)error;
  trace("add %" PRId64 "\n", positions(batch));
  return RFT_OK;
}

static int32_t finish(rft_selection *selection, const rft_collectives *collectives,
                      rft_selection_report *report, rft_error *error)
{
  (void)selection;
  (void)collectives;
  (void)error;
  trace("finish\n");
  report->valid_tokens = VALID_TOKENS;
  report->kept_tokens = KEPT_TOKENS;
  report->sequences = SEQUENCES;
  if (report->metrics != NULL) {
    report->metrics[0] = 42;
  }
  return RFT_OK;
}

static int32_t mask(const rft_selection *selection, int64_t batch_index, const rft_tensor *tensor,
                    rft_error *error)
{
  (void)selection;
  (void)error;
  trace("mask %" PRId64 "\n", batch_index);
  unsigned char *const kept = tensor->data;
  memset(kept + tensor->byte_offset, 1, (size_t)(tensor->shape[0] * tensor->shape[1]));
  return RFT_OK;
}

static void end(rft_selection *selection)
{
  trace("end\n");
  free(selection);
}

// The k-th call of an instance, counted from 1, adds k of 10.
static int32_t witness_evaluate(const rft_instance *instance, const rft_batch *batch,
                                const rft_tensor *kept, const rft_reduction *reduction,
                                rft_output *output, rft_error *error)
{
  (void)error;
  const double k = ++((rft_instance *)instance)->evaluations;
  trace("evaluate %" PRId64 " %s %" PRId64 " %" PRId64 " %" PRId64 "\n", positions(batch),
        kept == NULL ? "whole" : "masked", reduction->valid_tokens, reduction->kept_tokens,
        reduction->sequences);
  output->loss = k;
  if (output->metrics != NULL) {
    output->metrics[1] = k;
    output->metrics[2] = 10;
    output->metrics[4] = k;
    output->metrics[5] = k;
    output->metrics[6] = -INFINITY;
  }
  return RFT_OK;
}

#define METRIC(metric_name, metric_phase, metric_combine, ...)                                     \
  {                                                                                                \
    .struct_size = RFT_STRUCT_SIZE(rft_metric, reserved), .phase = (metric_phase),                 \
    .name = (metric_name), .description = "Made up.", .combine = (metric_combine), __VA_ARGS__     \
  }

static const rft_metric witnessed[] = {
    METRIC("final", RFT_METRIC_SELECTION, RFT_COMBINE_NONE, .reserved = 0),
    METRIC("sum", RFT_METRIC_EVALUATE, RFT_COMBINE_SUM, .reserved = 0),
    METRIC("weight", RFT_METRIC_EVALUATE, RFT_COMBINE_SUM, .reserved = 0),
    METRIC("ratio", RFT_METRIC_EVALUATE, RFT_COMBINE_RATIO, .numerator = 1, .denominator = 2),
    METRIC("largest", RFT_METRIC_EVALUATE, RFT_COMBINE_MAX, .reserved = 0),
    METRIC("smallest", RFT_METRIC_EVALUATE, RFT_COMBINE_MIN, .reserved = 0),
    METRIC("none", RFT_METRIC_EVALUATE, RFT_COMBINE_MAX, .reserved = 0),
};
enum { METRICS = sizeof witnessed / sizeof witnessed[0] };
static const rft_metric *const listed[METRICS] = {&witnessed[0], &witnessed[1], &witnessed[2],
                                                  &witnessed[3], &witnessed[4], &witnessed[5],
                                                  &witnessed[6]};

FIXTURE(fixture_plugin.id = "org.example.witness"; fixture_loss.name = "witness";
        fixture_loss.metrics = listed; fixture_loss.metric_count = METRICS;
        fixture_loss.create = witness_create; fixture_loss.destroy = witness_destroy;
        fixture_loss.selection_begin = begin; fixture_loss.selection_add = add;
        fixture_loss.selection_finish = finish; fixture_loss.selection_mask = mask;
        fixture_loss.selection_end = end; fixture_loss.evaluate = witness_evaluate;)
