// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin that keeps every rule. A fixture includes this file, wraps a function or two, and puts
// its own into the tables with SPOIL, whose statements run when the entry is called.
//
// Its loss is importance sampling, L = -(1/N) sum of weight r A with r = exp(logprob -
// old_logprob). Its selection keeps the tokens whose log-ratio is at most `limit` in size.

#ifndef CONFORMANCE_BASE_H
#define CONFORMANCE_BASE_H

#include "support/batch_view.h"
#include "support/error.h"
#include "support/schema.h"
#include "support/structs.h"
#include "support/token_mean.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// What wrappers take and hand on.
#define CREATE_PARAMETERS                                                                          \
  const rft_policy_loss *loss, const rft_host *host, const char *config, int64_t config_length,    \
      rft_instance **instance, rft_error *error
#define CREATE_ARGUMENTS loss, host, config, config_length, instance, error
#define EVALUATE_PARAMETERS                                                                        \
  const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,                    \
      const rft_reduction *reduction, rft_output *output, rft_error *error
#define EVALUATE_ARGUMENTS instance, batch, mask, reduction, output, error
#define FINISH_PARAMETERS                                                                          \
  rft_selection *selection, const rft_collectives *collectives, rft_selection_report *report,      \
      rft_error *error
#define FINISH_ARGUMENTS selection, collectives, report, error

// --------------------------------------------------------------------------------------- instances

struct rft_instance {
  double limit;
  double weight;
};

static int32_t create_from(const char *schema, const rft_policy_loss *loss, const char *config,
                           int64_t config_length, rft_instance **instance, rft_error *error)
{
  (void)loss;
  json_t *values = NULL;
  const int32_t code = rft_schema_resolve(schema, config, config_length, &values, NULL, error);
  if (code != RFT_OK) {
    return code;
  }
  rft_instance *const made = calloc(1, sizeof *made);
  if (made == NULL) {
    json_decref(values);
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "fixture: out of memory in create");
  }
  made->limit = json_number_value(json_object_get(values, "limit"));
  made->weight = json_number_value(json_object_get(values, "weight"));
  json_decref(values);
  *instance = made;
  return RFT_OK;
}

static int32_t create(CREATE_PARAMETERS)
{
  (void)host;
  return create_from(loss->config_schema, loss, config, config_length, instance, error);
}

static void destroy(rft_instance *instance)
{
  free(instance);
}

// ---------------------------------------------------------------------------------------- the loss

enum { TOKENS, KEPT_TOKENS, METRIC_COUNT };

static rft_token_term of_token(const void *context, const rft_token *token, double *sums)
{
  const rft_instance *const instance = context;
  const double ratio = exp(token->logprob - token->old_logprob);
  const double loss = -instance->weight * ratio * token->advantage;
  if (sums != NULL) {
    sums[TOKENS] += 1;
  }
  return (rft_token_term){.loss = loss, .slope = loss};
}

static int32_t evaluate(EVALUATE_PARAMETERS)
{
  return rft_evaluate_token_mean(of_token, instance, 1, batch, mask, reduction, output, error);
}

// ----------------------------------------------------------------------------------- the selection

typedef enum selection_state { ADDING, FAILED, FINISHED, SPENT } selection_state;

enum { MOST_BATCHES = 64 };

typedef struct selected_batch {
  int32_t ndim;
  int64_t shape[2];
  unsigned char *keep;
} selected_batch;

struct rft_selection {
  double limit;
  selection_state state;
  int32_t failure; ///< code of the add that failed
  int64_t count;
  selected_batch batches[MOST_BATCHES];
  uint64_t valid, kept, sequences;
};

static int32_t begin(const rft_instance *instance, rft_selection **selection, rft_error *error)
{
  rft_selection *const made = calloc(1, sizeof *made);
  if (made == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "fixture: out of memory in selection_begin");
  }
  made->limit = instance->limit;
  *selection = made;
  return RFT_OK;
}

static double value_at(const rft_view *view, int64_t position)
{
  double value;
  rft_view_load(view, position, 1, &value);
  return value;
}

static void choose(rft_selection *selection, const rft_batch_view *batch, unsigned char *keep)
{
  for (int64_t s = 0; s < batch->sequences; ++s) {
    const uint64_t before = selection->valid;
    const int64_t end = rft_batch_view_sequence_start(batch, s + 1);
    for (int64_t i = rft_batch_view_sequence_start(batch, s); i < end; ++i) {
      const double d = value_at(&batch->logprob, i) - value_at(&batch->old_logprob, i);
      const bool valid = value_at(&batch->mask, i) != 0;
      keep[i] = valid && fabs(d) <= selection->limit ? 1 : 0;
      selection->valid += valid;
      selection->kept += keep[i];
    }
    selection->sequences += selection->valid > before;
  }
}

static int32_t fail_add(rft_selection *selection, int32_t code)
{
  selection->state = FAILED;
  selection->failure = code;
  return code;
}

static int32_t add(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  if (selection->state != ADDING || selection->count == MOST_BATCHES) {
    return rft_fail(error, RFT_FAILED_PRECONDITION, "selection_add: expected it before finish");
  }
  rft_batch_view view;
  const int32_t code = rft_batch_view_open(batch, &view, error);
  if (code != RFT_OK) {
    return fail_add(selection, code);
  }
  selected_batch *const next = &selection->batches[selection->count];
  next->keep = malloc((size_t)view.count + 1);
  if (next->keep == NULL) {
    return fail_add(selection,
                    rft_fail(error, RFT_RESOURCE_EXHAUSTED, "fixture: out of memory in add"));
  }
  next->ndim = batch->logprob->ndim;
  memcpy(next->shape, batch->logprob->shape, (size_t)next->ndim * sizeof next->shape[0]);
  choose(selection, &view, next->keep);
  ++selection->count;
  return RFT_OK;
}

static int32_t reduce(const rft_collectives *collectives, uint64_t *sums, int64_t count,
                      rft_error *error)
{
  return collectives == NULL || collectives->size == 1
             ? RFT_OK
             : collectives->all_reduce_sum(collectives, sums, count, error);
}

static int32_t finish(FINISH_PARAMETERS)
{
  if (selection->state == FINISHED || selection->state == SPENT) {
    return rft_fail(error, RFT_FAILED_PRECONDITION, "selection_finish: expected it once");
  }
  rft_error problem = {.struct_size = sizeof problem};
  const int32_t report_code =
      rft_check_request(report, RFT_STRUCT_SIZE(rft_selection_report, metric_count),
                        "rft_selection_report", &problem);
  const bool failed = selection->state == FAILED || report_code != RFT_OK;
  uint64_t sums[] = {failed, selection->valid, selection->kept, selection->sequences};
  selection->state = SPENT;
  const int32_t code = reduce(collectives, sums, 4, error);
  if (code != RFT_OK || report_code != RFT_OK) {
    return code != RFT_OK ? code : rft_fail(error, report_code, "%s", problem.message);
  }
  if (sums[0] != 0) {
    return rft_fail(error, RFT_ABORTED, "selection_finish: selection_add failed on a rank");
  }
  report->valid_tokens = (int64_t)sums[1];
  report->kept_tokens = (int64_t)sums[2];
  report->sequences = (int64_t)sums[3];
  if (report->metrics != NULL && report->metric_count > KEPT_TOKENS) {
    report->metrics[KEPT_TOKENS] = (double)sums[2];
  }
  selection->state = FINISHED;
  return RFT_OK;
}

static int32_t give_mask(const rft_selection *selection, int64_t index, const rft_tensor *mask,
                         rft_error *error)
{
  if (selection->state != FINISHED || index < 0 || index >= selection->count) {
    return rft_fail(error, RFT_FAILED_PRECONDITION, "selection_mask: expected a batch of %lld",
                    (long long)selection->count);
  }
  const selected_batch *const batch = &selection->batches[index];
  const rft_tensor logprob = {.ndim = batch->ndim, .shape = (int64_t *)batch->shape};
  rft_view view;
  int32_t code = rft_view_like(mask, &logprob, RFT_CONTENT_NUMBERS, "mask", &view, error);
  if (code == RFT_OK && view.element != RFT_ELEMENT_BOOL && view.element != RFT_ELEMENT_UINT8) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT, "mask: expected bool or uint8");
  }
  if (code != RFT_OK) {
    return code;
  }
  for (int64_t i = 0; i < view.rows * view.columns; ++i) {
    *rft_view_at(&view, i) = batch->keep[i];
  }
  return RFT_OK;
}

static void end(rft_selection *selection)
{
  for (int64_t i = 0; selection != NULL && i < selection->count; ++i) {
    free(selection->batches[i].keep);
  }
  free(selection);
}

// -------------------------------------------------------------------------------------- the tables

// The schema in parts, for fixtures that change one.
#define LIMIT_TYPE "\"type\": \"number\", \"exclusiveMinimum\": 0"
#define MODE_CHOICES "[\"plain\", \"strict\"]"
#define SCHEMA(closed, limit, choices, description)                                                \
  "{\"type\": \"object\", \"additionalProperties\": " closed ", \"properties\": {"                 \
  "\"limit\": {" limit ", \"default\": 0.5, \"description\": \"" description "\"},"                \
  "\"weight\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 100, \"default\": 1.0,"         \
  " \"description\": \"Factor on the loss.\"},"                                                    \
  "\"mode\": {\"type\": \"string\", \"enum\": " choices ", \"default\": \"plain\","                \
  " \"description\": \"Of no effect.\"}}}"
#define GOOD_SCHEMA SCHEMA("false", LIMIT_TYPE, MODE_CHOICES, "Largest log-ratio kept.")

#define PRESET_DOCUMENT(args, more)                                                                \
  "{\"policy_loss_fn\": \"fixture\", \"policy_loss_fn_args\": " args ", \"use_reference\": false," \
  " \"kl_penalty_fn\": \"none\", \"kl_loss_fn\": \"none\", \"entropy_loss_fn\": \"none\","         \
  " \"advantage_fn\": \"grpo\", \"rollout\": {\"logprobs\": true}" more "}"

static rft_metric tokens = {.struct_size = RFT_STRUCT_SIZE(rft_metric, reserved),
                            .phase = RFT_METRIC_EVALUATE,
                            .name = "tokens",
                            .description = "Tokens in the loss.",
                            .combine = RFT_COMBINE_SUM};
static rft_metric kept_tokens = {.struct_size = RFT_STRUCT_SIZE(rft_metric, reserved),
                                 .phase = RFT_METRIC_SELECTION,
                                 .name = "kept_tokens",
                                 .description = "Tokens that the selection keeps.",
                                 .combine = RFT_COMBINE_NONE};
static const rft_metric *const metrics[] = {&tokens, &kept_tokens};

static rft_policy_loss fixture = {.struct_size = RFT_STRUCT_SIZE(rft_policy_loss, evaluate),
                                  .capabilities = RFT_LOSS_COLLECTIVES,
                                  .name = "fixture",
                                  .description = "Importance sampling with a limit.",
                                  .config_schema = GOOD_SCHEMA,
                                  .metrics = metrics,
                                  .metric_count = METRIC_COUNT,
                                  .create = create,
                                  .destroy = destroy,
                                  .selection_begin = begin,
                                  .selection_add = add,
                                  .selection_finish = finish,
                                  .selection_mask = give_mask,
                                  .selection_end = end,
                                  .evaluate = evaluate};
static const rft_policy_loss *const losses[] = {&fixture};

#define PRESET(preset_name)                                                                        \
  {                                                                                                \
    .struct_size = RFT_STRUCT_SIZE(rft_algorithm_preset, document), .name = (preset_name),         \
    .description = "A preset.",                                                                    \
    .document = PRESET_DOCUMENT("{\"limit\": 0.25}", ", \"use_critic\": false")                    \
  }
static rft_algorithm_preset tight = PRESET("tight");
static rft_algorithm_preset tighter = PRESET("tighter");
static const rft_algorithm_preset *const presets[] = {&tight, &tighter};

static const void *get_extension(const char *id)
{
  (void)id;
  return NULL;
}

static rft_plugin plugin = {.struct_size = RFT_STRUCT_SIZE(rft_plugin, get_extension),
                            .abi_minor = RFT_ABI_MINOR,
                            .id = "org.example.fixture",
                            .version = "1.0.0",
                            .description = "A plugin to test the checks with.",
                            .policy_losses = losses,
                            .policy_loss_count = 1,
                            .algorithm_presets = presets,
                            .algorithm_preset_count = 2,
                            .get_extension = get_extension};

static int32_t enter(const rft_host *host, const rft_plugin **given, rft_error *error)
{
  const int32_t code =
      rft_check_table(host, RFT_STRUCT_SIZE(rft_host, get_service), "rft_host", error);
  if (code == RFT_OK) {
    *given = &plugin;
  }
  return code;
}

#define ENTRY(function)                                                                            \
  int32_t rft_plugin_entry_v1(const rft_host *host, const rft_plugin **given, rft_error *error)    \
  {                                                                                                \
    return function(host, given, error);                                                           \
  }

#define SPOIL(...)                                                                                 \
  int32_t rft_plugin_entry_v1(const rft_host *host, const rft_plugin **given, rft_error *error)    \
  {                                                                                                \
    __VA_ARGS__;                                                                                   \
    return enter(host, given, error);                                                              \
  }

#endif // CONFORMANCE_BASE_H
