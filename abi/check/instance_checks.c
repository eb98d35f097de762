// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Instances: their memory, their host, and each other.

#include "allocations.h"
#include "batches.h"
#include "check.h"
#include "configs.h"
#include "hosts.h"
#include "selecting.h"
#include "subjects.h"
#include "verdict.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void expect_same(const char *what, const check_outcome *found, const check_outcome *expected)
{
  EXPECT(check_same_outcome(found, expected),
         "%s: expected the same bits of loss, gradient and metrics; the loss is %.17g and %.17g",
         what, found->loss, expected->loss);
}

// ---------------------------------------------------------------------------------------- configs

static const check_outcome *original;
static rft_instance *original_instance;

// Makes and uses an instance of another config, then looks at the first one again.
static void use_beside(const check_subject *subject, const char *key, const json_t *value,
                       bool allowed)
{
  char *const text = check_config_text(key, value);
  const check_created created = check_try_text(subject, text, (int64_t)strlen(text));
  if (allowed && created.code == RFT_OK) {
    rft_batch *const batch = check_ordinary_batch(subject);
    check_evaluate(subject, created.instance, batch, NULL, NULL, NULL);
    const check_outcome again = check_evaluate(subject, original_instance, batch, NULL, NULL, NULL);
    expect_same(text, &again, original);
    subject->loss->destroy(created.instance);
  }
  free(text);
}

static void instances_are_independent(const check_subject *subject)
{
  original_instance = check_create(subject);
  const check_outcome first = check_evaluate_ok("ordinary batch", subject, original_instance,
                                                check_ordinary_batch(subject), NULL, NULL, NULL);
  original = &first;
  check_probe_bounds(subject, use_beside);
  check_probe_choices(subject, use_beside);
}

// ----------------------------------------------------------------------------------------- destroy

static void null_is_ignored(const check_subject *subject)
{
  subject->loss->destroy(NULL);
  if (check_selects(subject->loss)) {
    subject->loss->selection_end(NULL);
  }
}

static void need_watching(void)
{
  if (!check_allocations_watchable()) {
    check_skip("allocations cannot be watched in this build");
  }
}

static void create_and_destroy(const check_subject *subject)
{
  rft_instance *instance = NULL;
  const int32_t code = subject->loss->create(subject->loss, subject->host, subject->config,
                                             (int64_t)strlen(subject->config), &instance, NULL);
  EXPECT(code == RFT_OK, "create returns %d", code);
  subject->loss->destroy(instance);
}

static void destroy_frees_all(const check_subject *subject)
{
  need_watching();
  create_and_destroy(subject); // what is kept for the next call is no leak
  check_allocations_watch(0);
  for (int i = 0; i < 1000; ++i) {
    create_and_destroy(subject);
  }
  const check_allocations after = check_allocations_stop();
  EXPECT(after.live == 0, "after 1000 times create and destroy, %" PRId64 " allocations are left",
         after.live);
}

static void refusal_frees_all(const check_subject *subject)
{
  need_watching();
  static const char *const configs[] = {"{", "[]", "{\"no_such_key\": 1}", "{} {}"};
  for (int round = 0; round < 2; ++round) {
    check_allocations_watch(0);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; ++i) {
      rft_instance *instance = NULL;
      const int32_t code = subject->loss->create(subject->loss, subject->host, configs[i],
                                                 (int64_t)strlen(configs[i]), &instance, NULL);
      if (code == RFT_OK) {
        subject->loss->destroy(instance);
      }
    }
    const check_allocations after = check_allocations_stop();
    EXPECT(round == 0 || after.live == 0,
           "after configs that were refused, %" PRId64 " allocations are left", after.live);
  }
}

// ----------------------------------------------------------------------------- failing allocations

enum { MOST_ALLOCATIONS = 20000 };

// What a call has to do when its n-th allocation fails.
static void judge_failure(const char *function, int64_t n, int32_t code, const rft_error *error,
                          const check_allocations *after)
{
  EXPECT(code == RFT_OK || code == RFT_RESOURCE_EXHAUSTED,
         "%s, allocation %" PRId64 " fails: expected code %d, found %d: %.300s", function, n,
         RFT_RESOURCE_EXHAUSTED, code, error->message);
  EXPECT(code == RFT_OK || error->message[0] != '\0',
         "%s, allocation %" PRId64 " fails: there is no error message", function, n);
  EXPECT(after->live == 0, "%s, allocation %" PRId64 " fails: %" PRId64 " allocations are left",
         function, n, after->live);
}

// Calls `call` with its n-th allocation failing, for every n, until one call needs fewer.
static void fail_every_allocation(const char *function, const check_subject *subject, void *context,
                                  int32_t (*call)(const check_subject *subject, void *context,
                                                  rft_error *error))
{
  check_allocations after = {.made = INT64_MAX};
  for (int64_t n = 1; n <= after.made && n < MOST_ALLOCATIONS; ++n) {
    rft_error error = {.struct_size = sizeof error};
    check_allocations_watch(n);
    const int32_t code = call(subject, context, &error);
    after = check_allocations_stop();
    EXPECT(after.made >= n || code == RFT_OK, "%s returns %d when no allocation fails: %.400s",
           function, code, error.message);
    judge_failure(function, n, code, &error, &after);
  }
}

static int32_t create_once(const check_subject *subject, void *context, rft_error *error)
{
  rft_instance *instance = NULL;
  const int32_t code = subject->loss->create(subject->loss, subject->host, context,
                                             (int64_t)strlen(context), &instance, error);
  if (code == RFT_OK) {
    subject->loss->destroy(instance);
  }
  return code;
}

static void create_without_memory(const check_subject *subject)
{
  need_watching();
  char *const config = strdup(subject->config);
  create_once(subject, config, NULL);
  fail_every_allocation("create", subject, config, create_once);
}

typedef struct evaluation {
  const rft_instance *instance;
  const rft_batch *batch;
  rft_output output;
} evaluation;

static int32_t evaluate_once(const check_subject *subject, void *context, rft_error *error)
{
  evaluation *const call = context;
  return subject->loss->evaluate(call->instance, call->batch, NULL, NULL, &call->output, error);
}

static void evaluate_without_memory(const check_subject *subject)
{
  need_watching();
  const check_layout layout = {.placement = PLAIN};
  evaluation call = {
      check_create(subject),
      check_ordinary_batch(subject),
      {.struct_size = RFT_STRUCT_SIZE(rft_output, metric_count),
       .gradient = check_tensor(NULL, 2, 4, 6, DTYPE_FLOAT32, &layout),
       .metrics = check_memory((size_t)subject->loss->metric_count * sizeof(double), PLAIN),
       .metric_count = subject->loss->metric_count}};
  evaluate_once(subject, &call, NULL);
  fail_every_allocation("evaluate", subject, &call, evaluate_once);
}

typedef struct choosing {
  const rft_instance *instance;
  rft_batch *batches[3];
  const rft_tensor *mask;
  double *metrics;
} choosing;

static int32_t select_once(const check_subject *subject, void *context, rft_error *error)
{
  const choosing *const call = context;
  const rft_policy_loss *const loss = subject->loss;
  rft_selection *selection = NULL;
  rft_selection_report report = check_report(subject, call->metrics);
  int32_t code = loss->selection_begin(call->instance, &selection, error);
  for (int i = 0; i < 3 && code == RFT_OK; ++i) {
    code = loss->selection_add(selection, call->batches[i], error);
  }
  if (code == RFT_OK) {
    code = loss->selection_finish(selection, NULL, &report, error);
  }
  if (code == RFT_OK) {
    code = loss->selection_mask(selection, 0, call->mask, error);
  }
  loss->selection_end(selection);
  return code;
}

static void select_without_memory(const check_subject *subject)
{
  need_watching();
  rng r = {subject->seed};
  const check_layout layout = {.placement = PLAIN};
  const check_form form = check_form_plain();
  choosing call = {.instance = check_create(subject)};
  for (int i = 0; i < 3; ++i) {
    const check_values values = check_values_spread(&r, 4, 6);
    call.batches[i] = check_batch(&values, &form);
  }
  call.mask = check_mask_like(call.batches[0], DTYPE_UINT8, &layout);
  call.metrics = check_memory((size_t)subject->loss->metric_count * sizeof(double), PLAIN);
  select_once(subject, &call, NULL);
  fail_every_allocation("selection", subject, &call, select_once);
}

// ---------------------------------------------------------------------------------------- services

static void expect_same_on(const check_subject *subject, const rft_host *host, const char *what)
{
  rng r = {subject->seed};
  const check_values values = check_values_real(&r, 64, 600);
  const check_form form = check_form_plain();
  rft_batch *const batch = check_batch(&values, &form);
  check_subject other = *subject;
  other.host = host;
  const rft_instance *const instances[] = {check_create(subject), check_create(&other)};
  const check_outcome bare =
      check_evaluate_ok("bare host", subject, instances[0], batch, NULL, NULL, NULL);
  const check_outcome served =
      check_evaluate_ok(what, &other, instances[1], batch, NULL, NULL, NULL);
  expect_same(what, &served, &bare);
  if (check_selects(subject->loss)) {
    const check_selected left = check_select_ok(what, subject, instances[0], &batch, 1, NULL);
    const check_selected right = check_select_ok(what, &other, instances[1], &batch, 1, NULL);
    EXPECT(memcmp(left.mask, right.mask, (size_t)left.count * sizeof(double)) == 0,
           "%s: the mask is another one", what);
  }
  EXPECT(check_host_log_fault() == NULL, "%s: a message in the log: %s", what,
         check_host_log_fault());
}

static void every_service(const check_subject *subject)
{
  expect_same_on(subject, check_host_full(), "a host with every service");
}

static void any_order_of_bodies(const check_subject *subject)
{
  expect_same_on(subject, check_host_backwards(), "parallel_for from the last index to the first");
}

static void newer_services(const check_subject *subject)
{
  expect_same_on(subject, check_host_newer(), "services with longer tables");
}

// Configs that may give rise to a warning.
static void listen(const check_subject *subject, const char *key, const json_t *value, bool allowed)
{
  check_subject heard = *subject;
  heard.host = check_host_full();
  char *const text = check_config_text(key, value);
  check_try(&heard, text, (int64_t)strlen(text), NULL);
  EXPECT(check_host_log_fault() == NULL, "%.200s: a message in the log: %s", text,
         check_host_log_fault());
  (void)allowed;
  free(text);
}

static void messages_are_text(const check_subject *subject)
{
  check_probe_bounds(subject, listen);
  check_probe_choices(subject, listen);
}

static const check CHECKS[] = {
    {441, "instances_are_independent", "P14", CHECK_LOSS, true, "evaluates",
     "An instance computes the same whatever other instances there are.",
     instances_are_independent},
    {442, "null_is_ignored", "P7", CHECK_LOSS, true, "creates",
     "destroy and selection_end ignore NULL.", null_is_ignored},
    {443, "destroy_frees_all", "P13", CHECK_CONFIG, true, "creates",
     "1000 times create and destroy leave no allocation.", destroy_frees_all},
    {444, "refusal_frees_all", "P9", CHECK_LOSS, true, "creates",
     "A config that is refused leaves no allocation.", refusal_frees_all},
    {445, "create_without_memory", "P8, P9", CHECK_CONFIG, true, "creates",
     "create copes with the n-th allocation failing, for every n.", create_without_memory},
    {446, "evaluate_without_memory", "P8, P9", CHECK_CONFIG, true, "evaluates",
     "evaluate copes with the n-th allocation failing, for every n.", evaluate_without_memory},
    {447, "select_without_memory", "P8, P9", CHECK_SELECTION, true, "selects",
     "A selection copes with the n-th allocation failing, for every n.", select_without_memory},
    {448, "every_service", "P16", CHECK_CONFIG, true, "evaluates",
     "With logs and threads of the host the results are the same bits as without.", every_service},
    {449, "any_order_of_bodies", "P15, P16", CHECK_CONFIG, true, "evaluates",
     "Bodies of parallel_for may run in any order without changing a bit.", any_order_of_bodies},
    {450, "newer_services", "P3, P4", CHECK_CONFIG, true, "evaluates",
     "Services whose tables are longer than version 1.0 are welcome.", newer_services},
    {451, "messages_are_text", "P8", CHECK_LOSS, true, "creates",
     "Messages in the log are one line of UTF-8 at a known level.", messages_are_text},
};

const check_area instance_checks = CHECK_AREA(CHECKS);
