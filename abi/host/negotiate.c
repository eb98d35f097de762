// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a plugin hands out is checked once, here; afterwards the host trusts it.

#include "registry.h"
#include "support/json.h"
#include "support/name.h"
#include "support/schema.h"
#include "support/structs.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// `where`: "plugin", `policy loss "m2po"`.
enum { WHERE_SIZE = 160 };

static int32_t fail(rft_error *error, const char *where, const char *problem)
{
  return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: %s", where, problem);
}

// ----------------------------------------------------------------------------------------- metrics

static bool is_divisible(const rft_policy_loss *loss, int64_t index)
{
  return index >= 0 && index < loss->metric_count &&
         loss->metrics[index]->combine != RFT_COMBINE_RATIO;
}

static int32_t check_metric(const rft_policy_loss *loss, int64_t index, const char *where,
                            rft_error *error)
{
  const rft_metric *const metric = loss->metrics[index];
  if (!rft_is_name(metric->name) || metric->description == NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s, metric %" PRId64 ": expected a name of [a-z][a-z0-9_]* and a description",
                    where, index);
  }
  for (int64_t i = 0; i < index; ++i) {
    if (strcmp(loss->metrics[i]->name, metric->name) == 0) {
      return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: two metrics are named \"%.64s\"", where,
                      metric->name);
    }
  }
  if (metric->phase != RFT_METRIC_SELECTION && metric->phase != RFT_METRIC_EVALUATE) {
    return rft_fail(error, RFT_UNIMPLEMENTED, "%s, metric \"%.64s\": phase %d is not known", where,
                    metric->name, metric->phase);
  }
  if (metric->combine < RFT_COMBINE_NONE || metric->combine > RFT_COMBINE_RATIO) {
    return rft_fail(error, RFT_UNIMPLEMENTED, "%s, metric \"%.64s\": combine %d is not known",
                    where, metric->name, metric->combine);
  }
  if (metric->combine == RFT_COMBINE_RATIO &&
      !(is_divisible(loss, metric->numerator) && is_divisible(loss, metric->denominator))) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s, metric \"%.64s\": numerator and denominator must be indices of metrics "
                    "that are no ratios",
                    where, metric->name);
  }
  return RFT_OK;
}

static int32_t check_metrics(const rft_policy_loss *loss, const char *where, rft_error *error)
{
  if (loss->metric_count < 0 || (loss->metric_count > 0 && loss->metrics == NULL)) {
    return fail(error, where, "metrics and metric_count do not describe an array");
  }
  int32_t code = RFT_OK;
  for (int64_t i = 0; code == RFT_OK && i < loss->metric_count; ++i) {
    code = rft_check_table(loss->metrics[i], RFT_STRUCT_SIZE(rft_metric, reserved), "rft_metric",
                           error);
  }
  for (int64_t i = 0; code == RFT_OK && i < loss->metric_count; ++i) {
    code = check_metric(loss, i, where, error);
  }
  return code;
}

// ------------------------------------------------------------------------------------------ losses

// P7.
static int32_t check_functions(const rft_policy_loss *loss, const char *where, rft_error *error)
{
  if (loss->create == NULL || loss->destroy == NULL || loss->evaluate == NULL) {
    return fail(error, where, "create, destroy and evaluate must all be set");
  }
  const int set = (loss->selection_begin != NULL) + (loss->selection_add != NULL) +
                  (loss->selection_finish != NULL) + (loss->selection_mask != NULL) +
                  (loss->selection_end != NULL);
  if (set != 0 && set != 5) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected all of the five selection functions or none, found %d", where,
                    set);
  }
  return RFT_OK;
}

static int32_t check_schema(const rft_policy_loss *loss, const char *where, rft_error *error)
{
  json_t *defaults = NULL;
  rft_error problem = {.struct_size = sizeof problem};
  const int32_t code = rft_schema_resolve(loss->config_schema, NULL, 0, &defaults, NULL, &problem);
  json_decref(defaults);
  return code == RFT_OK ? RFT_OK : rft_fail(error, code, "%s: %s", where, problem.message);
}

static int32_t check_loss(const rft_policy_loss *loss, rft_error *error)
{
  int32_t code =
      rft_check_table(loss, RFT_STRUCT_SIZE(rft_policy_loss, evaluate), "rft_policy_loss", error);
  if (code != RFT_OK) {
    return code;
  }
  if (!rft_is_name(loss->name) || loss->description == NULL) {
    return fail(error, "plugin", "a policy loss needs a name of [a-z][a-z0-9_]* and a description");
  }
  char where[WHERE_SIZE];
  snprintf(where, sizeof where, "policy loss \"%.100s\"", loss->name);
  code = check_functions(loss, where, error);
  if (code == RFT_OK) {
    code = check_metrics(loss, where, error);
  }
  return code == RFT_OK ? check_schema(loss, where, error) : code;
}

// ----------------------------------------------------------------------------------------- presets

static int32_t check_document(const rft_algorithm_preset *preset, const char *where,
                              rft_error *error)
{
  json_t *document = NULL;
  if (preset->document == NULL) {
    return fail(error, where, "document is a null pointer");
  }
  int32_t code =
      rft_json_parse(where, preset->document, (int64_t)strlen(preset->document), &document, error);
  if (code != RFT_OK) {
    return code;
  }
  const json_t *const args = json_object_get(document, "policy_loss_fn_args");
  if (!json_is_string(json_object_get(document, "policy_loss_fn")) ||
      (args != NULL && !json_is_object(args))) {
    code = fail(error, where,
                "expected an object with a string policy_loss_fn, and policy_loss_fn_args that are "
                "an object or absent");
  }
  json_decref(document);
  return code;
}

static int32_t check_preset(const rft_algorithm_preset *preset, rft_error *error)
{
  const int32_t code = rft_check_table(preset, RFT_STRUCT_SIZE(rft_algorithm_preset, document),
                                       "rft_algorithm_preset", error);
  if (code != RFT_OK) {
    return code;
  }
  if (!rft_is_name(preset->name) || preset->description == NULL) {
    return fail(error, "plugin",
                "an algorithm preset needs a name of [a-z][a-z0-9_]* and a description");
  }
  char where[WHERE_SIZE];
  snprintf(where, sizeof where, "algorithm preset \"%.100s\"", preset->name);
  return check_document(preset, where, error);
}

// -------------------------------------------------------------------------------------- extensions

// P1 and P7, of the extension that this host hands on.
static int32_t check_one_pass(const rft_plugin *plugin, rft_error *error)
{
  const rft_one_pass *const one_pass = plugin->get_extension(RFT_PLUGIN_ONE_PASS);
  if (one_pass == NULL) {
    return RFT_OK;
  }
  const int32_t code = rft_check_table(one_pass, RFT_STRUCT_SIZE(rft_one_pass, select_evaluate),
                                       "rft_one_pass", error);
  if (code == RFT_OK && (one_pass->evaluate == NULL || one_pass->select_evaluate == NULL)) {
    return fail(error, "plugin, extension " RFT_PLUGIN_ONE_PASS,
                "evaluate and select_evaluate must both be set");
  }
  return code;
}

// ------------------------------------------------------------------------------------------ plugin

static int32_t check_head(const rft_plugin *plugin, rft_error *error)
{
  const int32_t code =
      rft_check_table(plugin, RFT_STRUCT_SIZE(rft_plugin, get_extension), "rft_plugin", error);
  if (code != RFT_OK) {
    return code;
  }
  if (!rft_is_plugin_id(plugin->id)) {
    return fail(error, "plugin", "expected an id like \"org.example.loss\"");
  }
  if (plugin->version == NULL || plugin->description == NULL || plugin->get_extension == NULL) {
    return fail(error, "plugin", "version, description and get_extension must all be set");
  }
  if (plugin->policy_loss_count < 0 || plugin->algorithm_preset_count < 0 ||
      (plugin->policy_loss_count > 0 && plugin->policy_losses == NULL) ||
      (plugin->algorithm_preset_count > 0 && plugin->algorithm_presets == NULL)) {
    return fail(error, "plugin", "its lists of losses and presets do not describe arrays");
  }
  return RFT_OK;
}

static int32_t check_unique(const rft_plugin *plugin, rft_error *error)
{
  for (int64_t i = 1; i < plugin->policy_loss_count; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      if (strcmp(plugin->policy_losses[i]->name, plugin->policy_losses[j]->name) == 0) {
        return rft_fail(error, RFT_INVALID_ARGUMENT,
                        "plugin: two policy losses are named \"%.100s\"",
                        plugin->policy_losses[i]->name);
      }
    }
  }
  for (int64_t i = 1; i < plugin->algorithm_preset_count; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      if (strcmp(plugin->algorithm_presets[i]->name, plugin->algorithm_presets[j]->name) == 0) {
        return rft_fail(error, RFT_INVALID_ARGUMENT,
                        "plugin: two algorithm presets are named \"%.100s\"",
                        plugin->algorithm_presets[i]->name);
      }
    }
  }
  return RFT_OK;
}

static int32_t check_plugin(const rft_plugin *plugin, rft_error *error)
{
  int32_t code = check_head(plugin, error);
  for (int64_t i = 0; code == RFT_OK && i < plugin->policy_loss_count; ++i) {
    code = check_loss(plugin->policy_losses[i], error);
  }
  for (int64_t i = 0; code == RFT_OK && i < plugin->algorithm_preset_count; ++i) {
    code = check_preset(plugin->algorithm_presets[i], error);
  }
  if (code == RFT_OK) {
    code = check_unique(plugin, error);
  }
  return code == RFT_OK ? check_one_pass(plugin, error) : code;
}

int32_t rft_negotiate(rft_plugin_entry entry, const rft_host *host, const rft_plugin **plugin,
                      rft_error *error)
{
  rft_error refusal = {.struct_size = sizeof refusal};
  const rft_plugin *given = NULL;
  const int32_t entered = entry(host, &given, &refusal);
  refusal.message[sizeof refusal.message - 1] = '\0';
  if (entered != RFT_OK) {
    return rft_fail(error, entered, "its entry returned %s: %s", rft_code_name(entered),
                    refusal.message[0] == '\0' ? "no message" : refusal.message);
  }
  const int32_t code = check_plugin(given, error);
  if (code == RFT_OK) {
    *plugin = given;
  }
  return code;
}
