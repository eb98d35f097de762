// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What must not change a bit of any output: threads, their order, the run, and junk in positions
// that are not valid.

#include "compare.h"
#include "outcome.h"
#include "plugin_fixture.h"
#include "random_batches.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <pthread.h>
#include <stdio.h>

TestSuite(invariance, .fini = plugin_fixture_end);

// ----------------------------------------------------------------------------------------- threads

static const char *const configs[] = {
    "{}",
    ("{\"m2_threshold\": 1e-6, \"selection\": \"all_tokens\", \"surrogate\": \"ppo_clip\", "
     "\"loss_agg_mode\": \"seq-mean-token-mean\"}"),
    "{\"surrogate\": \"sapo\", \"denominator\": \"kept\", \"m2_reference\": \"proximal\"}",
};
enum { CONFIGS = sizeof configs / sizeof configs[0] };

typedef struct host_case {
  host_threads threads;
  int32_t hint;
} host_case;

static const host_case hosts[] = {{HOST_REVERSED, 1}, {HOST_REVERSED, 64}, {HOST_SHUFFLED, 3},
                                  {HOST_SHUFFLED, 8}, {HOST_THREADED, 1},  {HOST_THREADED, 4},
                                  {HOST_THREADED, 16}};
enum { HOSTS = sizeof hosts / sizeof hosts[0] };

// Large enough that the plugin has something to share out.
static batch_list large_list(rft_dtype dtype)
{
  static const int64_t sizes[] = {100000, 1, 33333};
  const batch_dtypes dtypes = all_of(dtype);
  batch_list list = {3, test_alloc(3 * (int64_t)sizeof *list.batch)};
  rng r = {5};
  for (int64_t k = 0; k < list.count; ++k) {
    list.batch[k] = random_batch(&r, k == 2 ? BATCH_TIES : BATCH_PLAIN, &dtypes, sizes[k]);
  }
  return list;
}

static void check_hosts(rft_dtype dtype)
{
  for (int c = 0; c < CONFIGS; ++c) {
    const batch_list list = large_list(dtype);
    const outcome serial = outcome_of(m2po_create(configs[c]), &list, dtype);
    cr_assert_gt(metric(serial.selection.metrics, "masked_tokens"), 0, "nothing is dropped");
    for (int h = 0; h < HOSTS; ++h) {
      const rft_host *const host = host_new(hosts[h].threads, hosts[h].hint);
      const outcome other = outcome_of(m2po_create_on(host, configs[c]), &list, dtype);
      char what[64];
      snprintf(what, sizeof what, "config %d on host %d, %s", c, h, dtype_name(dtype));
      check_same_outcome(what, &serial, &other, list.count);
    }
    plugin_fixture_end();
  }
}

Test(invariance, threads_and_their_order_change_no_bit_in_float32)
{
  check_hosts(float32);
}

Test(invariance, threads_and_their_order_change_no_bit_in_float64)
{
  check_hosts(float64);
}

Test(invariance, threads_and_their_order_change_no_bit_in_bfloat16)
{
  check_hosts(bfloat16);
}

Test(invariance, a_second_run_gives_the_same_bits)
{
  const batch_list list = large_list(float32);
  rft_instance *const instance = m2po_create_on(host_new(HOST_THREADED, 4), "{}");
  const outcome first = outcome_of(instance, &list, float32);
  const outcome second = outcome_of(instance, &list, float32);
  check_same_outcome("second run", &first, &second, list.count);
}

typedef struct concurrent_call {
  const rft_instance *instance;
  const rft_batch *batch;
  rft_tensor *gradient;
  int32_t code;
  double loss;
} concurrent_call;

static void *evaluate_on_thread(void *argument)
{
  concurrent_call *const call = argument;
  rft_output output = {.struct_size = sizeof output, .gradient = call->gradient};
  call->code = m2po()->evaluate(call->instance, call->batch, NULL, NULL, &output, NULL);
  call->loss = output.loss;
  return NULL;
}

Test(invariance, one_instance_evaluates_on_many_threads_at_once)
{
  enum { CALLS = 6 };
  const batch_list list = large_list(float32);
  rft_instance *const instance = m2po_create_on(host_new(HOST_THREADED, 2), configs[1]);
  const evaluation alone = evaluate_ok(instance, list.batch[0], NULL, NULL, float32);
  concurrent_call calls[CALLS];
  pthread_t threads[CALLS];
  for (int i = 0; i < CALLS; ++i) {
    calls[i] = (concurrent_call){instance, list.batch[0],
                                 tensor_like(list.batch[0]->logprob, float32), -1, 0};
    cr_assert_eq(pthread_create(&threads[i], NULL, evaluate_on_thread, &calls[i]), 0);
  }
  for (int i = 0; i < CALLS; ++i) {
    pthread_join(threads[i], NULL);
    cr_assert_eq(calls[i].code, RFT_OK);
    cr_expect(same_bits(calls[i].loss, alone.loss));
    check_same_bytes("concurrent", calls[i].gradient, alone.gradient);
  }
}

// -------------------------------------------------------------------------------------------- junk

// A copy whose positions that are not valid hold `junk`, in all tensors but the mask.
static rft_batch *with_junk(const rft_batch *batch, double junk)
{
  const rft_tensor *const source[] = {batch->logprob, batch->old_logprob, batch->proximal_logprob,
                                      batch->advantages};
  rft_tensor *copy[4];
  for (int t = 0; t < 4; ++t) {
    copy[t] = tensor_like(source[t], source[t]->dtype);
    for (int64_t i = 0; i < batch_count(batch); ++i) {
      tensor_set(copy[t], i, tensor_get(batch->mask, i) != 0 ? tensor_get(source[t], i) : junk);
    }
  }
  return batch_new(copy[0], copy[1], copy[2], copy[3], batch->mask, NULL);
}

ParameterizedTestParameters(invariance, junk_in_masked_positions_changes_no_bit)
{
  static const double junk[] = {NAN, INFINITY, -INFINITY, 1e30, -0.0};
  double *const values = cr_malloc(sizeof junk);
  memcpy(values, junk, sizeof junk);
  return cr_make_param_array(double, values, sizeof junk / sizeof junk[0]);
}

ParameterizedTest(double *junk, invariance, junk_in_masked_positions_changes_no_bit)
{
  static const rft_dtype dtypes[] = {{RFT_DTYPE_FLOAT, 32, 1},
                                     {RFT_DTYPE_FLOAT, 64, 1},
                                     {RFT_DTYPE_FLOAT, 16, 1},
                                     {RFT_DTYPE_BFLOAT, 16, 1}};
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; ++d) {
    for (int c = 0; c < CONFIGS; ++c) {
      rng r = {d};
      const batch_dtypes all = all_of(dtypes[d]);
      const rft_batch *const clean = random_batch(&r, BATCH_PLAIN, &all, 3000);
      const batch_list a = batch_list_of(with_junk(clean, 0.0));
      const batch_list b = batch_list_of(with_junk(clean, *junk));
      rft_instance *const instance = m2po_create(configs[c]);
      const outcome left = outcome_of(instance, &a, float32);
      const outcome right = outcome_of(instance, &b, float32);
      check_same_outcome(dtype_name(dtypes[d]), &left, &right, 1);
      plugin_fixture_end();
    }
  }
}
