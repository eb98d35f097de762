// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// usage: mpirun -n RANKS test-mpi PLUGINS VECTORS [die]
//
// The selection over ranks against that of one process, and what happens when a rank fails. `die`:
// the last rank ends without a word.

#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What the design allows a rank to put into one selection.
enum { MOST_BYTES = 64 << 10, MOST_REDUCTIONS = 6, MOST_WIDE_BYTES = 128 << 10 };
enum { MOST_WIDE_REDUCTIONS = 10 };

static const rft_dtype float32 = {RFT_DTYPE_FLOAT, 32, 1};
static const rft_dtype float64 = {RFT_DTYPE_FLOAT, 64, 1};
static const rft_dtype bfloat16 = {RFT_DTYPE_BFLOAT, 16, 1};

// ----------------------------------------------------------------------------------------- spreads

typedef enum test_spread { EVEN, FIRST, LAST, INNER, ONE_EACH, GROWING, SPREADS } test_spread;

static const char *const spread_names[SPREADS] = {
    "evenly",           "all on the first rank", "all on the last rank", "none on the outer ranks",
    "one token a rank", "more on higher ranks"};

static int64_t start(test_spread spread, int64_t count, int64_t rank, int64_t size)
{
  const int64_t inner = size < 3 ? size : size - 2;
  const int64_t place = rank - (size < 3 ? 0 : 1);
  switch (spread) {
  case FIRST:
    return rank == 0 ? 0 : count;
  case LAST:
    return rank == size ? count : 0;
  case INNER:
    return place < 0 ? 0 : place > inner ? count : count * place / inner;
  case ONE_EACH:
    return rank == size || rank > count ? count : rank;
  case GROWING:
    return count * rank * (rank + 1) / (size * (size + 1));
  default:
    return count * rank / size;
  }
}

// Micro-batches that differ from rank to rank; an empty part is one batch without a token on some
// ranks and no batch on the others.
static test_part part_of(test_spread spread, int64_t count, int64_t rank, int64_t size)
{
  const int64_t first = start(spread, count, rank, size);
  const int64_t own = start(spread, count, rank + 1, size) - first;
  return (test_part){first, own, own == 0 ? rank % 2 : rank % 3 + 1};
}

// --------------------------------------------------------------------------------------- comparing

static double metric_of(const test_bench *bench, const double *metrics, const char *name)
{
  int64_t i = 0;
  while (strcmp(bench->loss->metrics[i]->name, name) != 0) {
    ++i;
  }
  return metrics[i];
}

static bool same_bits(double a, double b)
{
  uint64_t bits[2];
  memcpy(&bits[0], &a, sizeof a);
  memcpy(&bits[1], &b, sizeof b);
  return bits[0] == bits[1];
}

static void expect_same_counts(test_bench *bench, const char *what, const test_answer *ranks,
                               const test_answer *alone)
{
  const rft_selection_report *const a = &ranks->report;
  const rft_selection_report *const b = &alone->report;
  expect(bench, a->valid_tokens == b->valid_tokens, "%s: %" PRId64 " valid tokens, alone %" PRId64,
         what, a->valid_tokens, b->valid_tokens);
  expect(bench, a->kept_tokens == b->kept_tokens, "%s: %" PRId64 " kept tokens, alone %" PRId64,
         what, a->kept_tokens, b->kept_tokens);
  for (int64_t i = 0; i < bench->loss->metric_count; ++i) {
    const rft_metric *const metric = bench->loss->metrics[i];
    expect(bench, same_bits(ranks->metrics[i], alone->metrics[i]), "%s: %s is %a, alone %a", what,
           metric->name, ranks->metrics[i], alone->metrics[i]);
  }
}

static void expect_same_tokens(test_bench *bench, const char *what, const test_answer *ranks,
                               test_part part, const test_answer *alone)
{
  const int64_t size = alone->gradient_size;
  for (int64_t i = 0; i < part.count; ++i) {
    expect(bench, ranks->keep[i] == alone->keep[part.first + i], "%s: token %" PRId64 " is %s",
           what, part.first + i, ranks->keep[i] ? "kept" : "dropped");
  }
  expect(bench,
         memcmp(ranks->gradient, alone->gradient + part.first * size,
                (size_t)(part.count * size)) == 0,
         "%s: another gradient", what);
}

static void expect_cheap(test_bench *bench, const char *what, const test_tokens *batch,
                         const test_answer *ranks, int64_t reductions, int64_t bytes)
{
  const bool wide = batch->dtype.bits == 64;
  const bool cuts = metric_of(bench, ranks->metrics, "masked_tokens") > 0;
  const int64_t most = !cuts ? 1 : wide ? MOST_WIDE_REDUCTIONS : MOST_REDUCTIONS;
  expect(bench, reductions >= 1 && reductions <= most, "%s: %" PRId64 " reductions", what,
         reductions);
  expect(bench, bytes <= (wide ? MOST_WIDE_BYTES : MOST_BYTES), "%s: %" PRId64 " bytes", what,
         bytes);
}

// Ranks that have `batch` between them, against one process that has all of it.
static void expect_same(test_bench *bench, const char *what, const rft_instance *instance,
                        const test_tokens *batch, test_spread spread)
{
  const test_part whole = {0, batch->count, 1};
  const test_part own = part_of(spread, batch->count, bench->rank, bench->size);
  const int64_t reductions = bench->group.reductions;
  const int64_t bytes = bench->group.bytes;
  test_answer alone = answer_of(bench->loss, instance, batch, whole, NULL);
  test_answer ranks = answer_of(bench->loss, instance, batch, own, &bench->group.service);
  expect(bench, ranks.code == RFT_OK, "%s: %s", what, ranks.error.message);
  expect(bench, alone.code == RFT_OK, "%s, alone: %s", what, alone.error.message);
  const double loss = sum(bench, ranks.loss);
  if (!bench->failed) {
    expect_same_counts(bench, what, &ranks, &alone);
    expect_same_tokens(bench, what, &ranks, own, &alone);
    expect_cheap(bench, what, batch, &ranks, bench->group.reductions - reductions,
                 bench->group.bytes - bytes);
    expect(bench, fabs(loss - alone.loss) <= 1e-12 * fabs(alone.loss),
           "%s: loss %.17g, alone %.17g", what, loss, alone.loss);
  }
  answer_free(&alone);
  answer_free(&ranks);
}

// ---------------------------------------------------------------------------------------- golden

// The file has the answers, too: the selection alone is right, and so are the ranks.
static void expect_golden(test_bench *bench, const char *name, const rft_instance *instance,
                          const test_tokens *batch, const json_t *expected)
{
  const test_part whole = {0, batch->count, 1};
  test_answer alone = answer_of(bench->loss, instance, batch, whole, NULL);
  for (int64_t i = 0; i < batch->count; ++i) {
    const json_t *const keep = json_array_get(json_object_get(expected, "keep"), (size_t)i);
    expect(bench, alone.keep[i] == json_integer_value(keep), "%s, alone: token %" PRId64, name, i);
  }
  answer_free(&alone);
}

static void run_case(test_bench *bench, const json_t *json, test_spread spread)
{
  const char *const name = json_string_value(json_object_get(json, "name"));
  char *const config = json_dumps(json_object_get(json, "config"), JSON_COMPACT);
  rft_instance *const instance = bench_instance(bench, config);
  test_tokens batch = tokens_of_case(json);
  expect_golden(bench, name, instance, &batch, json_object_get(json, "expect"));
  expect_same(bench, name, instance, &batch, spread);
  tokens_free(&batch);
  bench->loss->destroy(instance);
  free(config);
}

static bool names_all(const char *message, const char *parts)
{
  char part[64];
  int length = 0;
  for (const char *at = parts; sscanf(at, "%63[^,]%n", part, &length) == 1;) {
    // The index is that of the file, not of the micro-batch.
    if (strncmp(part, "index", 5) != 0 && strstr(message, part) == NULL) {
      return false;
    }
    at += length;
    at += strspn(at, ", ");
  }
  return true;
}

// One rank has the bad token and says what it is. Where the selection finds it, all others say that
// a rank has failed; where the loss does, the selection was fine, and so are they.
static void run_error_case(test_bench *bench, const json_t *json, test_spread spread)
{
  const char *const name = json_string_value(json_object_get(json, "name"));
  const char *const parts =
      json_string_value(json_object_get(json_object_get(json, "expect"), "error"));
  char *const config = json_dumps(json_object_get(json, "config"), JSON_COMPACT);
  rft_instance *const instance = bench_instance(bench, config);
  test_tokens batch = tokens_of_case(json);
  const test_part own = part_of(spread, batch.count, bench->rank, bench->size);
  test_answer ranks = answer_of(bench->loss, instance, &batch, own, &bench->group.service);
  const bool blames = ranks.code == RFT_OUT_OF_RANGE;
  const bool selected = count(bench, blames && ranks.evaluated) > 0;
  const int blaming = count(bench, blames);
  expect(bench, blaming == 1, "%s: %d ranks have the bad token", name, blaming);
  expect(bench, !blames || names_all(ranks.error.message, parts), "%s: %s", name,
         ranks.error.message);
  if (!blames) {
    expect(bench, ranks.code == (selected ? RFT_OK : RFT_ABORTED), "%s: code %d", name, ranks.code);
    expect(bench, selected || strstr(ranks.error.message, "failed on 1 of ") != NULL, "%s: %s",
           name, ranks.error.message);
  }
  answer_free(&ranks);
  tokens_free(&batch);
  bench->loss->destroy(instance);
  free(config);
}

static void test_golden(test_bench *bench, const char *path)
{
  json_error_t error;
  json_t *const document = json_load_file(path, 0, &error);
  const json_t *const cases = json_object_get(document, "cases");
  char name[128];
  for (int spread = 0; spread < SPREADS; ++spread) {
    expect(bench, json_array_size(cases) > 0, "%s: %s", path, error.text);
    for (size_t i = 0; i < json_array_size(cases); ++i) {
      const json_t *const json = json_array_get(cases, i);
      const bool fails = json_object_get(json_object_get(json, "expect"), "error") != NULL;
      (fails ? run_error_case : run_case)(bench, json, (test_spread)spread);
    }
    snprintf(name, sizeof name, "every golden case, spread %s", spread_names[spread]);
    verdict(bench, name);
  }
  json_decref(document);
}

// ----------------------------------------------------------------------------------------- random

static void test_random(test_bench *bench)
{
  static const char *const configs[] = {
      "{}",
      "{\"m2_threshold\": 0.0001}",
      "{\"m2_threshold\": 0}",
      "{\"m2_threshold\": 1000}",
      "{\"selection\": \"all_tokens\", \"boundary\": \"below\", \"denominator\": \"kept\"}",
      "{\"m2_threshold\": 0.001, \"min_kept_tokens\": 40}",
      "{\"m2_threshold\": 0.3, \"surrogate\": \"ppo_clip\", \"clip_ratio_c\": 3}"};
  enum { CONFIGS = sizeof configs / sizeof configs[0] };
  const rft_dtype dtypes[] = {float32, float64, bfloat16};
  static const char *const names[] = {"float32", "float64", "bfloat16"};
  char what[128];
  for (int d = 0; d < 3; ++d) {
    for (uint64_t seed = 0; seed < 24; ++seed) {
      test_tokens batch = tokens_random(seed, (int64_t)(seed * seed * 5), dtypes[d]);
      rft_instance *const instance = bench_instance(bench, configs[seed % CONFIGS]);
      snprintf(what, sizeof what, "seed %d", (int)seed);
      expect_same(bench, what, instance, &batch, (test_spread)(seed / 4));
      bench->loss->destroy(instance);
      tokens_free(&batch);
    }
    snprintf(what, sizeof what, "random batches of %s, the selection and its cost", names[d]);
    verdict(bench, what);
  }
}

// Equal tokens, not all of which are affordable: the first in token order go, whoever has them.
static void test_ties(test_bench *bench)
{
  enum { COUNT = 97, EQUAL = 60 };
  rft_instance *const instance = bench_instance(bench, "{\"m2_threshold\": 0.1}");
  test_tokens batch = tokens_new(COUNT, float32);
  for (int64_t i = 0; i < COUNT; ++i) {
    tokens_set(&batch, LOGPROB, i, i < EQUAL ? 0.5 : 0.125);
    tokens_set(&batch, ADVANTAGES, i, 1);
  }
  for (int spread = 0; spread < SPREADS; ++spread) {
    const test_part own = part_of((test_spread)spread, COUNT, bench->rank, bench->size);
    test_answer ranks = answer_of(bench->loss, instance, &batch, own, &bench->group.service);
    const int64_t dropped = COUNT - ranks.report.kept_tokens;
    expect(bench, dropped > 0 && dropped < EQUAL, "%" PRId64 " dropped", dropped);
    for (int64_t i = 0; i < own.count; ++i) {
      expect(bench, ranks.keep[i] == (own.first + i >= dropped), "spread %s: token %" PRId64,
             spread_names[spread], own.first + i);
    }
    answer_free(&ranks);
    expect_same(bench, spread_names[spread], instance, &batch, (test_spread)spread);
  }
  tokens_free(&batch);
  bench->loss->destroy(instance);
  verdict(bench, "of equal tokens the first in token order go, on any rank");
}

// The last rank has tokens, but none that the selection constrains.
static void test_unconstrained_rank(test_bench *bench)
{
  enum { COUNT = 210 };
  rft_instance *const instance = bench_instance(bench, "{}");
  test_tokens batch = tokens_random(5, COUNT, float32);
  const test_part last = part_of(EVEN, COUNT, bench->size - 1, bench->size);
  for (int64_t i = last.first; i < COUNT && bench->size > 1; ++i) {
    tokens_set(&batch, ADVANTAGES, i, 0);
  }
  expect_same(bench, "no trust region", instance, &batch, EVEN);
  tokens_free(&batch);
  bench->loss->destroy(instance);
  verdict(bench, "a rank without a token in the trust region");
}

static void test_nothing(test_bench *bench)
{
  rft_instance *const instance = bench_instance(bench, "{}");
  test_tokens batch = tokens_new(0, float32);
  expect_same(bench, "no token", instance, &batch, EVEN);
  tokens_free(&batch);
  bench->loss->destroy(instance);
  verdict(bench, "no token on any rank");
}

// ---------------------------------------------------------------------------------------- failures

static void test_failed_adds(test_bench *bench)
{
  enum { COUNT = 70 };
  rft_instance *const instance = bench_instance(bench, "{}");
  for (int64_t bad = 0; bad < bench->size; ++bad) {
    test_tokens batch = tokens_random(3, COUNT, float32);
    const test_part theirs = part_of(EVEN, COUNT, bad, bench->size);
    const test_part own = part_of(EVEN, COUNT, bench->rank, bench->size);
    batch.mask[theirs.first] = 1;
    tokens_set(&batch, OLD_LOGPROB, theirs.first, (double)NAN);
    test_answer ranks = answer_of(bench->loss, instance, &batch, own, &bench->group.service);
    const char *const says = bench->rank == bad ? "old_logprob at index 0" : "failed on 1 of";
    expect(bench, ranks.code == (bench->rank == bad ? RFT_OUT_OF_RANGE : RFT_ABORTED), "code %d",
           ranks.code);
    expect(bench, strstr(ranks.error.message, says) != NULL, "%s", ranks.error.message);
    answer_free(&ranks);
    tokens_free(&batch);
  }
  bench->loss->destroy(instance);
  verdict(bench, "an add that fails on one rank is an error on all");
}

static void test_other_config(test_bench *bench)
{
  enum { COUNT = 70 };
  const bool odd = bench->rank == bench->size - 1;
  rft_instance *const instance = bench_instance(bench, odd ? "{\"m2_threshold\": 0.05}" : "{}");
  test_tokens batch = tokens_random(4, COUNT, float32);
  const test_part own = part_of(EVEN, COUNT, bench->rank, bench->size);
  test_answer ranks = answer_of(bench->loss, instance, &batch, own, &bench->group.service);
  if (bench->size > 1) {
    expect(bench, ranks.code == RFT_INVALID_ARGUMENT, "code %d", ranks.code);
    expect(bench, strstr(ranks.error.message, "expected one config on all") != NULL, "%s",
           ranks.error.message);
  }
  answer_free(&ranks);
  tokens_free(&batch);
  bench->loss->destroy(instance);
  verdict(bench, "another config on one rank is an error on all");
}

// A provider that can't reduce: a group that MPI doesn't know.
static void test_broken_group(test_bench *bench)
{
  rft_instance *const instance = bench_instance(bench, "{}");
  test_tokens batch = tokens_random(6, 10, float32);
  mpi_collectives broken = bench->group;
  broken.group = MPI_COMM_NULL;
  broken.service.data = &broken;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  test_answer ranks =
      answer_of(bench->loss, instance, &batch, (test_part){0, 10, 1}, &broken.service);
  expect(bench, ranks.code == RFT_UNAVAILABLE, "code %d", ranks.code);
  expect(bench, strstr(ranks.error.message, "MPI_Allreduce") != NULL, "%s", ranks.error.message);
  expect(bench, broken.reductions == bench->group.reductions, "a failed reduction was counted");
  answer_free(&ranks);
  tokens_free(&batch);
  bench->loss->destroy(instance);
  verdict(bench, "an error of MPI's is one of the selection's");
}

// ------------------------------------------------------------------------------------------ copies

// Two ranks each hold the same tokens, as tensor-parallel ranks do.
static void test_copies(test_bench *bench)
{
  enum { COUNT = 300 };
  rft_error error = {.struct_size = sizeof error};
  rft_instance *const instance = bench_instance(bench, "{}");
  test_tokens batch = tokens_random(7, COUNT, float32);
  const test_part own = part_of(EVEN, COUNT, bench->rank / 2, bench->size / 2);
  test_answer alone = answer_of(bench->loss, instance, &batch, (test_part){0, COUNT, 1}, NULL);
  MPI_Comm data_parallel;
  mpi_collectives right;
  MPI_Comm_split(MPI_COMM_WORLD, (int)bench->rank % 2, (int)bench->rank, &data_parallel);
  expect(bench, mpi_collectives_open(data_parallel, &right, &error) == RFT_OK, "%s", error.message);

  test_answer once = answer_of(bench->loss, instance, &batch, own, &right.service);
  test_answer twice = answer_of(bench->loss, instance, &batch, own, &bench->group.service);
  expect_same_counts(bench, "the data-parallel group", &once, &alone);
  expect_same_tokens(bench, "the data-parallel group", &once, own, &alone);
  expect(bench, twice.report.valid_tokens == 2 * alone.report.valid_tokens,
         "all ranks: %" PRId64 " valid tokens, %" PRId64 " of them copies",
         twice.report.valid_tokens, alone.report.valid_tokens);
  const double halved = sum(bench, twice.loss) / 2;
  expect(bench, fabs(halved - alone.loss) > 0.1 * fabs(alone.loss), "all ranks: the right loss");

  answer_free(&once);
  answer_free(&twice);
  answer_free(&alone);
  mpi_collectives_close(&right);
  MPI_Comm_free(&data_parallel);
  tokens_free(&batch);
  bench->loss->destroy(instance);
  verdict(bench, "copies count once in the data-parallel group, twice in that of all ranks");
}

// -------------------------------------------------------------------------------------------- main

static void die(const test_bench *bench)
{
  rft_instance *const instance = bench_instance(bench, "{}");
  test_tokens batch = tokens_random(8, 10, float32);
  if (bench->rank == bench->size - 1) {
    _Exit(3);
  }
  test_answer ranks =
      answer_of(bench->loss, instance, &batch, (test_part){0, 10, 1}, &bench->group.service);
  printf("rank %d went on: %s\n", (int)bench->rank, ranks.error.message);
}

static void run(test_bench *bench, const char *vectors)
{
  test_golden(bench, vectors);
  test_random(bench);
  test_ties(bench);
  test_unconstrained_rank(bench);
  test_nothing(bench);
  test_failed_adds(bench);
  test_other_config(bench);
  if (bench->size % 2 == 0) {
    test_copies(bench);
  }
  test_broken_group(bench);
}

int main(int argc, char **argv)
{
  test_bench bench;
  MPI_Init(&argc, &argv);
  if (argc < 3) {
    fprintf(stderr, "usage: test-mpi PLUGINS VECTORS [die]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  bench_open(&bench, argv[1]);
  if (argc > 3) {
    die(&bench);
  } else {
    run(&bench, argv[2]);
  }
  bench_close(&bench);
  MPI_Finalize();
  return 0;
}
