// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// usage: calls PLUGIN.so
//
// Calls of the plugin on fixed batches, under callgrind: after each call a dump of what it cost,
// whose name is "REGIME CALL". The batches are the same on every machine: no libm, no clock.

#include "../unit/rng.h"
#include "rft/plugin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

enum { ROWS = 64, COLUMNS = 1024, TOKENS = ROWS * COLUMNS };

// ------------------------------------------------------------------------------------------
// batches

/// How far the policy has moved since the rollout.
typedef struct regime {
  const char *name;
  double scale;      ///< of the log-ratios
  bool heavy_tailed; ///< Student-t(3), else normal
} regime;

static const regime regimes[] = {
    {"fresh", 0.05, false}, {"stale", 0.15, true}, {"very-stale", 0.5, true}};

static float logprob[TOKENS];
static float old_logprob[TOKENS];
static float advantages[TOKENS];
static uint8_t mask[TOKENS];
static uint8_t keep[TOKENS];
static float gradient[TOKENS];

static double uniform(rng *r)
{
  return (double)(rng_bits(r) >> 11) * 0x1p-53;
}

// Nearly: the sum of twelve uniform numbers.
static double normal(rng *r)
{
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) {
    sum += uniform(r);
  }
  return sum;
}

static double student(rng *r)
{
  double squares = 0.0;
  for (int i = 0; i < 3; ++i) {
    const double x = normal(r);
    squares += x * x;
  }
  return normal(r) / __builtin_sqrt(squares / 3.0); // rounded alike by every machine
}

static void fill(const regime *kind)
{
  rng r = {UINT64_C(11)};
  for (int64_t i = 0; i < TOKENS; ++i) {
    const double d = kind->scale * (kind->heavy_tailed ? student(&r) : normal(&r));
    old_logprob[i] = (float)(-4.0 * uniform(&r));
    logprob[i] = old_logprob[i] + (float)d;
    advantages[i] = (float)normal(&r);
  }
  for (int64_t row = 0; row < ROWS; ++row) {
    const uint64_t length = COLUMNS / 2 + rng_bits(&r) % (COLUMNS / 2);
    for (uint64_t i = 0; i < COLUMNS; ++i) {
      mask[row * COLUMNS + (int64_t)i] = i < length;
    }
  }
}

// -------------------------------------------------------------------------------------------
// tables

static const void *no_service(const rft_host *host, const char *id)
{
  (void)host;
  (void)id;
  return NULL;
}

static const rft_host host = {.struct_size = RFT_STRUCT_SIZE(rft_host, get_service),
                              .abi_minor = RFT_ABI_MINOR,
                              .name = "instructions",
                              .version = "1",
                              .get_service = no_service};
static rft_error error = {.struct_size = sizeof error};

static void check(int32_t code)
{
  if (code != RFT_OK) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
}

static const rft_plugin *load(const char *path)
{
  void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *const symbol = library == NULL ? NULL : dlsym(library, "rft_plugin_entry_v1");
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  rft_plugin_entry entry;
  memcpy(&entry, &symbol, sizeof entry); // C knows no conversion
  const rft_plugin *plugin = NULL;
  check(entry(&host, &plugin, &error));
  return plugin;
}

// --------------------------------------------------------------------------------------------
// calls

static int64_t shape[] = {ROWS, COLUMNS};

static rft_tensor tensor(void *data, uint8_t code, uint8_t bits)
{
  return (rft_tensor){.data = data,
                      .device = {RFT_DEVICE_CPU, 0},
                      .ndim = 2,
                      .dtype = {code, bits, 1},
                      .shape = shape};
}

typedef struct subject {
  const rft_policy_loss *loss;
  const rft_one_pass *one_pass;
  rft_instance *instance;
  const rft_batch *batch;
  const rft_tensor *keep;
  const rft_tensor *gradient;
  rft_reduction *counts; ///< of the last selection
} subject;

static void select_tokens(const subject *self)
{
  rft_selection *selection = NULL;
  rft_selection_report report = {.struct_size = sizeof report};
  check(self->loss->selection_begin(self->instance, &selection, &error));
  check(self->loss->selection_add(selection, self->batch, &error));
  check(self->loss->selection_finish(selection, NULL, &report, &error));
  check(self->loss->selection_mask(selection, 0, self->keep, &error));
  self->loss->selection_end(selection);
  self->counts->valid_tokens = report.valid_tokens;
  self->counts->kept_tokens = report.kept_tokens;
  self->counts->sequences = report.sequences;
}

static void evaluate(const subject *self)
{
  rft_output output = {.struct_size = sizeof output, .gradient = self->gradient};
  check(
      self->loss->evaluate(self->instance, self->batch, self->keep, self->counts, &output, &error));
}

static void evaluate_once(const subject *self)
{
  rft_output output = {.struct_size = sizeof output, .gradient = self->gradient};
  check(self->one_pass->evaluate(self->instance, self->batch, self->keep, self->counts, &output,
                                 &error));
}

// What a host does that shows metrics.
static void evaluate_measured(const subject *self)
{
  enum { MOST_METRICS = 64 };
  double metrics[MOST_METRICS];
  const int64_t metric_count = self->loss->metric_count;
  if (metric_count > MOST_METRICS) {
    fprintf(stderr, "expected at most %d metrics, found %d\n", MOST_METRICS, (int)metric_count);
    exit(1);
  }
  rft_output output = {.struct_size = sizeof output,
                       .gradient = self->gradient,
                       .metrics = metrics,
                       .metric_count = metric_count};
  check(self->one_pass->evaluate(self->instance, self->batch, self->keep, self->counts, &output,
                                 &error));
}

static void select_evaluate(const subject *self)
{
  rft_output output = {.struct_size = sizeof output, .gradient = self->gradient};
  rft_selection_report report = {.struct_size = sizeof report};
  check(self->one_pass->select_evaluate(self->instance, self->batch, NULL, 1.0, self->keep, &report,
                                        &output, &error));
}

typedef struct call {
  const char *name;
  void (*run)(const subject *self);
} call;

// In this order: evaluate takes mask and counts of the selection.
static const call calls[] = {{"select", select_tokens},
                             {"evaluate", evaluate},
                             {"evaluate_once", evaluate_once},
                             {"evaluate_measured", evaluate_measured},
                             {"select_evaluate", select_evaluate}};

static void count(const regime *kind, const call *made, const subject *self)
{
  char name[64];
  snprintf(name, sizeof name, "%s %s", kind->name, made->name);
  CALLGRIND_ZERO_STATS;
  made->run(self);
  CALLGRIND_DUMP_STATS_AT(name);
}

int main(int argc, char **argv)
{
  if (argc != 2) {
    fputs("usage: calls PLUGIN.so\n", stderr);
    return 2;
  }
  const rft_plugin *const plugin = load(argv[1]);
  const rft_tensor policy = tensor(logprob, RFT_DTYPE_FLOAT, 32);
  const rft_tensor behavior = tensor(old_logprob, RFT_DTYPE_FLOAT, 32);
  const rft_tensor advantage = tensor(advantages, RFT_DTYPE_FLOAT, 32);
  const rft_tensor valid = tensor(mask, RFT_DTYPE_BOOL, 8);
  const rft_tensor kept = tensor(keep, RFT_DTYPE_BOOL, 8);
  const rft_tensor slope = tensor(gradient, RFT_DTYPE_FLOAT, 32);
  const rft_batch batch = {.struct_size = sizeof batch,
                           .logprob = &policy,
                           .old_logprob = &behavior,
                           .advantages = &advantage,
                           .mask = &valid};
  rft_reduction counts = {.struct_size = sizeof counts};
  subject self = {.loss = plugin->policy_losses[0],
                  .one_pass = plugin->get_extension(RFT_PLUGIN_ONE_PASS),
                  .batch = &batch,
                  .keep = &kept,
                  .gradient = &slope,
                  .counts = &counts};
  check(self.loss->create(self.loss, &host, "", 0, &self.instance, &error));
  for (size_t i = 0; i < sizeof regimes / sizeof regimes[0]; ++i) {
    fill(&regimes[i]);
    CALLGRIND_START_INSTRUMENTATION;
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; ++k) {
      count(&regimes[i], &calls[k], &self);
    }
    CALLGRIND_STOP_INSTRUMENTATION;
  }
  self.loss->destroy(self.instance);
  return 0;
}
