// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// usage: rft-simulate-ranks PLUGINS
//
// What a selection costs a rank, for 2 to 4096 of them: the plugin selects over simulated ranks,
// threads that meet at each reduction; bytes and reductions are counted, the time is a model's.

#include "rft/host.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The model: a message takes LATENCY, and bytes go at BANDWIDTH. An all-reduce goes up and down
// a tree. Gathering is a ring, each rank sending on what it gets: per token its squared log-ratio
// and a byte that says whether it is constrained.
static const double LATENCY = 5e-6;       // seconds
static const double BANDWIDTH = 25e9;     // bytes a second: 200 Gbit/s
static const double MODEL_TOKENS = 65536; // of a rank, where every token is gathered

enum { STACK_BYTES = 256 << 10, FLOAT_TOKEN_BYTES = 5, DOUBLE_TOKEN_BYTES = 9 };

// ------------------------------------------------------------------------------------- collectives

typedef struct meeting {
  pthread_mutex_t mutex;
  pthread_cond_t all_here;
  int64_t size;
  int64_t arrived;
  int64_t round;
  uint64_t *total;  // [CAPACITY], of the round under way
  uint64_t *result; // of the last one
  int64_t reductions;
  int64_t bytes; // of each rank
} meeting;

enum { CAPACITY = 1 << 14 }; // words; the contract's 128 KiB

static int32_t all_reduce_sum(const rft_collectives *collectives, uint64_t *values, int64_t count,
                              rft_error *error)
{
  (void)error;
  meeting *const here = collectives->data;
  if (count > CAPACITY) {
    return RFT_RESOURCE_EXHAUSTED;
  }
  pthread_mutex_lock(&here->mutex);
  const int64_t round = here->round;
  for (int64_t i = 0; i < count; ++i) {
    here->total[i] += values[i];
  }
  if (++here->arrived == here->size) {
    memcpy(here->result, here->total, (size_t)count * sizeof *values);
    memset(here->total, 0, (size_t)count * sizeof *values);
    here->arrived = 0;
    here->round += 1;
    here->reductions += 1;
    here->bytes += count * (int64_t)sizeof *values;
    pthread_cond_broadcast(&here->all_here);
  }
  while (here->round == round) {
    pthread_cond_wait(&here->all_here, &here->mutex);
  }
  memcpy(values, here->result, (size_t)count * sizeof *values);
  pthread_mutex_unlock(&here->mutex);
  return RFT_OK;
}

// ------------------------------------------------------------------------------------------- ranks

// How the log-ratios lie.
typedef enum scatter {
  SCATTERED, // every one another
  EQUAL,     // two values: the cut divides equals, which takes a reduction more
  CALM       // nothing is over the threshold
} scatter;

typedef struct rank_tokens {
  int64_t count; // of each rank
  int bits;      // of a log-probability
  scatter kind;
} rank_tokens;

typedef struct simulated_rank {
  const rft_policy_loss *loss;
  const rft_instance *instance;
  const rank_tokens *sample;
  rft_collectives collectives;
  pthread_t thread;
  int32_t code;
  int64_t kept;
} simulated_rank;

// Scattered log-ratios that every rank has some of, without a generator: the fractional parts of
// multiples of the golden ratio are spread evenly.
static double log_ratio(const rank_tokens *sample, int64_t index)
{
  const double whole = (double)index * 0.6180339887498949;
  const double spread = whole - floor(whole);
  switch (sample->kind) {
  case EQUAL:
    return index % 4 == 0 ? 0.125 : 0.5;
  case CALM:
    return spread * 0.01;
  default:
    return spread * spread * 2;
  }
}

static void fill(const rank_tokens *sample, int64_t rank, void *logprob)
{
  for (int64_t i = 0; i < sample->count; ++i) {
    const double value = log_ratio(sample, rank * sample->count + i);
    if (sample->bits == 64) {
      ((double *)logprob)[i] = value;
    } else {
      ((float *)logprob)[i] = (float)value;
    }
  }
}

static int32_t select_tokens(simulated_rank *self, void *logprob, void *zeros, void *ones,
                             unsigned char *valid)
{
  const rft_dtype type = {RFT_DTYPE_FLOAT, (uint8_t)self->sample->bits, 1};
  const rft_dtype boolean = {RFT_DTYPE_BOOL, 8, 1};
  int64_t shape[1] = {self->sample->count};
  const rft_tensor tensors[4] = {
      {.data = logprob, .device = {RFT_DEVICE_CPU, 0}, .ndim = 1, .dtype = type, .shape = shape},
      {.data = zeros, .device = {RFT_DEVICE_CPU, 0}, .ndim = 1, .dtype = type, .shape = shape},
      {.data = ones, .device = {RFT_DEVICE_CPU, 0}, .ndim = 1, .dtype = type, .shape = shape},
      {.data = valid, .device = {RFT_DEVICE_CPU, 0}, .ndim = 1, .dtype = boolean, .shape = shape}};
  const rft_batch batch = {.struct_size = sizeof batch,
                           .logprob = &tensors[0],
                           .old_logprob = &tensors[1],
                           .advantages = &tensors[2],
                           .mask = &tensors[3]};
  rft_selection_report report = {.struct_size = sizeof report};
  rft_selection *selection = NULL;
  int32_t code = self->loss->selection_begin(self->instance, &selection, NULL);
  if (code == RFT_OK) {
    code = self->loss->selection_add(selection, &batch, NULL);
    const int32_t finished =
        self->loss->selection_finish(selection, &self->collectives, &report, NULL);
    code = code == RFT_OK ? finished : code;
  }
  self->loss->selection_end(selection);
  self->kept = report.kept_tokens;
  return code;
}

static void *run_rank(void *argument)
{
  simulated_rank *const self = argument;
  const rank_tokens *const sample = self->sample;
  const size_t tokens = (size_t)sample->count;
  const size_t size = (size_t)sample->bits / 8;
  unsigned char *const memory = calloc(3 * tokens, size);
  unsigned char *const valid = malloc(tokens);
  if (memory == NULL || valid == NULL) {
    fputs("rft-simulate-ranks: out of memory\n", stderr);
    _Exit(1); // the others would wait for this rank
  }
  memset(valid, 1, tokens);
  fill(sample, self->collectives.rank, memory);
  unsigned char *const ones = memory + 2 * tokens * size;
  for (size_t i = 0; i < tokens; ++i) {
    if (size == sizeof(double)) {
      ((double *)(void *)ones)[i] = 1;
    } else {
      ((float *)(void *)ones)[i] = 1;
    }
  }
  self->code = select_tokens(self, memory, memory + tokens * size, ones, valid);
  free(memory);
  free(valid);
  return NULL;
}

static bool run_ranks(simulated_rank *ranks, int64_t size)
{
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  for (int64_t i = 0; i < size; ++i) {
    if (pthread_create(&ranks[i].thread, &attributes, run_rank, &ranks[i]) != 0) {
      fprintf(stderr, "rft-simulate-ranks: cannot start thread %" PRId64 " of %" PRId64 "\n", i + 1,
              size);
      _Exit(1); // those that have started wait for the rest
    }
  }
  bool fine = true;
  for (int64_t i = 0; i < size; ++i) {
    pthread_join(ranks[i].thread, NULL);
    fine = fine && ranks[i].code == RFT_OK && ranks[i].kept == ranks[0].kept;
  }
  pthread_attr_destroy(&attributes);
  return fine;
}

// ------------------------------------------------------------------------------------------- table

static double reduce_seconds(const meeting *met)
{
  const double steps = 2 * ceil(log2((double)met->size));
  return steps * ((double)met->reductions * LATENCY + (double)met->bytes / BANDWIDTH);
}

static double gather_bytes(int64_t size, int bits)
{
  return (double)(size - 1) * MODEL_TOKENS *
         (bits == 64 ? (double)DOUBLE_TOKEN_BYTES : (double)FLOAT_TOKEN_BYTES);
}

static void print_row(const rank_tokens *sample, const meeting *met, int64_t kept)
{
  const double gathered = gather_bytes(met->size, sample->bits);
  const double gather_seconds = (double)(met->size - 1) * LATENCY + gathered / BANDWIDTH;
  printf("| %" PRId64 " | %" PRId64 " | float%d | %.1f %% | %" PRId64 " | %.1f KiB | %.2f ms | "
         "%.1f MiB | %.2f ms |\n",
         met->size, sample->count, sample->bits,
         100 - 100 * (double)kept / (double)(met->size * sample->count), met->reductions,
         (double)met->bytes / 1024, 1e3 * reduce_seconds(met), gathered / (1024.0 * 1024),
         1e3 * gather_seconds);
}

static bool simulate(const rft_policy_loss *loss, const rft_instance *instance, int64_t size,
                     const rank_tokens *sample)
{
  meeting met = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                 .all_here = PTHREAD_COND_INITIALIZER,
                 .size = size,
                 .total = calloc(CAPACITY, sizeof(uint64_t)),
                 .result = calloc(CAPACITY, sizeof(uint64_t))};
  simulated_rank *const ranks = calloc((size_t)size, sizeof *ranks);
  bool fine = met.total != NULL && met.result != NULL && ranks != NULL;
  for (int64_t i = 0; fine && i < size; ++i) {
    ranks[i] = (simulated_rank){
        .loss = loss,
        .instance = instance,
        .sample = sample,
        .collectives = {.struct_size = RFT_STRUCT_SIZE(rft_collectives, all_reduce_sum),
                        .rank = i,
                        .size = size,
                        .data = &met,
                        .all_reduce_sum = all_reduce_sum}};
  }
  fine = fine && run_ranks(ranks, size);
  if (fine) {
    print_row(sample, &met, ranks[0].kept);
  } else {
    fprintf(stderr, "rft-simulate-ranks: a selection over %" PRId64 " ranks failed\n", size);
  }
  free(ranks);
  free(met.total);
  free(met.result);
  return fine;
}

static bool print_table(const rft_policy_loss *loss, const rft_instance *instance)
{
  puts("| ranks | tokens a rank | squares | dropped | reductions | put in by a rank | modelled | "
       "gathering every token | modelled |\n"
       "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |");
  bool fine = true;
  for (int64_t size = 2; fine && size <= 4096; size *= size < 64 ? 2 : 4) {
    fine = simulate(loss, instance, size, &(rank_tokens){.count = 64, .bits = 32});
  }
  const struct {
    int64_t size;
    rank_tokens sample;
  } others[] = {{8, {.count = 65536, .bits = 32}},
                {8, {.count = 64, .bits = 64}},
                {4096, {.count = 64, .bits = 64}},
                {4096, {.count = 64, .bits = 32, .kind = EQUAL}},
                {4096, {.count = 64, .bits = 64, .kind = EQUAL}},
                {4096, {.count = 64, .bits = 32, .kind = CALM}}};
  for (size_t i = 0; fine && i < sizeof others / sizeof others[0]; ++i) {
    fine = simulate(loss, instance, others[i].size, &others[i].sample);
  }
  return fine;
}

int main(int argc, char **argv)
{
  rft_error error = {.struct_size = sizeof error};
  rft_registry *registry = NULL;
  const rft_policy_loss *loss = NULL;
  rft_instance *instance = NULL;
  if (argc != 2) {
    fputs("usage: rft-simulate-ranks PLUGINS\n", stderr);
    return 2;
  }
  int32_t code = rft_registry_create(NULL, &registry, &error);
  if (code == RFT_OK) {
    code = rft_registry_scan(registry, argv[1], &error);
  }
  if (code == RFT_OK) {
    code = rft_registry_find_policy_loss(registry, "m2po", &loss, &error);
  }
  if (code == RFT_OK) {
    code = rft_instance_create(registry, loss, "{}", 2, &instance, &error);
  }
  bool fine = code == RFT_OK;
  if (fine) {
    fine = print_table(loss, instance);
    loss->destroy(instance);
  } else {
    fprintf(stderr, "rft-simulate-ranks: %s\n", error.message);
  }
  rft_registry_destroy(registry);
  return fine ? 0 : 1;
}
