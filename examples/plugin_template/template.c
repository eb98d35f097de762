// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A complete plugin: a policy loss with one config key and one metric, and a preset. With r =
// exp(logprob - old_logprob), c = ratio_cap and the N valid tokens of the optimizer batch:
//
//   L = -(1/N) sum of min(r, c) A       d L / d logprob = -(1/N) r A, and 0 where r > c

#include "support/error.h"
#include "support/schema.h"
#include "support/structs.h"
#include "support/token_mean.h"

#include <math.h>
#include <stdlib.h>

// ------------------------------------------------------------------------------------- the config

struct rft_instance {
  double ratio_cap;
};

static const char config_schema[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "  \"ratio_cap\": {\"type\": \"number\", \"exclusiveMinimum\": 0, \"default\": 10.0,"
    "    \"description\": \"Largest importance ratio; a token beyond it has no gradient.\"}"
    "}}";

static int32_t create(const rft_policy_loss *loss, const rft_host *host, const char *config,
                      int64_t config_length, rft_instance **instance, rft_error *error)
{
  (void)host;
  json_t *values = NULL;
  const int32_t code =
      rft_schema_resolve(loss->config_schema, config, config_length, &values, NULL, error);
  if (code != RFT_OK) {
    return code;
  }
  rft_instance *const made = malloc(sizeof *made);
  if (made == NULL) {
    json_decref(values);
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "my_loss: out of memory in create");
  }
  made->ratio_cap = json_number_value(json_object_get(values, "ratio_cap"));
  json_decref(values);
  *instance = made;
  return RFT_OK;
}

static void destroy(rft_instance *instance)
{
  free(instance);
}

// --------------------------------------------------------------------------------------- the loss

enum { CAPPED_TOKENS, METRIC_COUNT };

static const rft_metric capped_tokens = {
    .struct_size = RFT_STRUCT_SIZE(rft_metric, reserved),
    .phase = RFT_METRIC_EVALUATE,
    .name = "capped_tokens",
    .description = "Tokens whose importance ratio is beyond ratio_cap.",
    .combine = RFT_COMBINE_SUM,
};
static const rft_metric *const metrics[] = {&capped_tokens};

static rft_token_term of_token(const void *context, const rft_token *token, double *sums)
{
  const rft_instance *const instance = context;
  const double ratio = exp(token->logprob - token->old_logprob);
  const int capped = ratio > instance->ratio_cap;
  const double loss = -(capped ? instance->ratio_cap : ratio) * token->advantage;
  if (sums != NULL) {
    sums[CAPPED_TOKENS] += capped;
  }
  return (rft_token_term){.loss = loss, .slope = capped ? 0.0 : loss};
}

static int32_t evaluate(const rft_instance *instance, const rft_batch *batch,
                        const rft_tensor *mask, const rft_reduction *reduction, rft_output *output,
                        rft_error *error)
{
  return rft_evaluate_token_mean(of_token, instance, METRIC_COUNT, batch, mask, reduction, output,
                                 error);
}

static const rft_policy_loss my_loss = {
    .struct_size = RFT_STRUCT_SIZE(rft_policy_loss, evaluate),
    .name = "my_loss",
    .description = "Importance sampling with a cap on the ratio.",
    .config_schema = config_schema,
    .metrics = metrics,
    .metric_count = METRIC_COUNT,
    .create = create,
    .destroy = destroy,
    .evaluate = evaluate,
};
static const rft_policy_loss *const losses[] = {&my_loss};

// ------------------------------------------------------------------------------------- the plugin

static const rft_algorithm_preset preset = {
    .struct_size = RFT_STRUCT_SIZE(rft_algorithm_preset, document),
    .name = "my_loss",
    .description = "my_loss with a tight cap.",
    .document =
        "{\"policy_loss_fn\": \"my_loss\", \"policy_loss_fn_args\": {\"ratio_cap\": 2.0},"
        " \"use_critic\": false, \"use_reference\": false, \"kl_penalty_fn\": \"none\","
        " \"kl_loss_fn\": \"none\", \"entropy_loss_fn\": \"none\", \"advantage_fn\": \"grpo\","
        " \"rollout\": {\"logprobs\": true}}",
};
static const rft_algorithm_preset *const presets[] = {&preset};

static const void *get_extension(const char *id)
{
  (void)id;
  return NULL;
}

static const rft_plugin plugin = {
    .struct_size = RFT_STRUCT_SIZE(rft_plugin, get_extension),
    .abi_minor = RFT_ABI_MINOR,
    .id = "org.example.my_loss",
    .version = "0.1.0",
    .description = "A policy loss of my own.",
    .policy_losses = losses,
    .policy_loss_count = 1,
    .algorithm_presets = presets,
    .algorithm_preset_count = 1,
    .get_extension = get_extension,
};

int32_t rft_plugin_entry_v1(const rft_host *host, const rft_plugin **tables, rft_error *error)
{
  const int32_t code =
      rft_check_table(host, RFT_STRUCT_SIZE(rft_host, get_service), "rft_host", error);
  if (code == RFT_OK) {
    *tables = &plugin;
  }
  return code;
}
