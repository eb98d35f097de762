// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "reference_config.h"

#include "tensors.h"

#include <string.h>

static const char *const surrogates[] = {"importance_sampling", "ppo_clip", "sapo"};
static const char *const aggregations[] = {"token-mean", "seq-mean-token-sum",
                                           "seq-mean-token-mean", "seq-mean-token-sum-norm"};

reference_config reference_config_default(void)
{
  return (reference_config){.selection = {.tau = 0.04}, .objective = reference_objective_default()};
}

// 0 stands for null in the fields that may be null and are above 0 otherwise.
static json_t *number_or_null(double value)
{
  return value == 0 ? json_null() : json_real(value);
}

static json_t *write_selection(const reference_selection *selection)
{
  return json_pack(
      "{so ss ss ss sI}", "m2_threshold", selection->off ? json_null() : json_real(selection->tau),
      "selection", selection->all_tokens ? "all_tokens" : "trust_region", "m2_reference",
      selection->proximal ? "proximal" : "current", "boundary",
      selection->below ? "below" : "at_most", "min_kept_tokens", (json_int_t)selection->min_kept);
}

// The fields of the other surrogates are left out: they would be warned about.
static json_t *write_surrogate(const reference_objective *objective)
{
  const char *const name = surrogates[objective->surrogate];
  switch (objective->surrogate) {
  case REFERENCE_PPO_CLIP:
    return json_pack("{ss sf sf so}", "surrogate", name, "clip_range_low", objective->clip_low,
                     "clip_range_high", objective->clip_high, "clip_ratio_c",
                     number_or_null(objective->dual_clip));
  case REFERENCE_SAPO:
    return json_pack("{ss sf sf}", "surrogate", name, "sapo_tau_pos", objective->sapo_positive,
                     "sapo_tau_neg", objective->sapo_negative);
  default:
    return json_pack("{ss}", "surrogate", name);
  }
}

static json_t *write_objective(const reference_objective *objective)
{
  return json_pack("{ss so so ss}", "loss_agg_mode", aggregations[objective->aggregation],
                   "loss_scale_factor", number_or_null(objective->scale_factor), "log_ratio_clip",
                   number_or_null(objective->log_ratio_clip), "denominator",
                   objective->divide_by_kept ? "kept" : "valid");
}

const char *reference_config_text(const reference_config *config)
{
  json_t *const object = write_selection(&config->selection);
  json_object_update_new(object, write_surrogate(&config->objective));
  json_object_update_new(object, write_objective(&config->objective));
  char *const printed = json_dumps(object, JSON_COMPACT);
  char *const text = test_alloc((int64_t)strlen(printed) + 1);
  strcpy(text, printed);
  free(printed);
  json_decref(object);
  return text;
}

static void read_number(const json_t *object, const char *key, double *value)
{
  const json_t *const found = json_object_get(object, key);
  if (found != NULL) {
    *value = json_number_value(found); // null: 0
  }
}

static void read_flag(const json_t *object, const char *key, const char *set, bool *flag)
{
  const json_t *const found = json_object_get(object, key);
  if (found != NULL) {
    *flag = strcmp(json_string_value(found), set) == 0;
  }
}

static void read_choice(const json_t *object, const char *key, const char *const *names,
                        unsigned count, unsigned *choice)
{
  const char *const found = json_string_value(json_object_get(object, key));
  for (unsigned i = 0; found != NULL && i < count; ++i) {
    if (strcmp(names[i], found) == 0) {
      *choice = i;
    }
  }
}

static void read_selection(const json_t *object, reference_selection *selection)
{
  read_number(object, "m2_threshold", &selection->tau);
  selection->off = json_is_null(json_object_get(object, "m2_threshold"));
  read_flag(object, "selection", "all_tokens", &selection->all_tokens);
  read_flag(object, "m2_reference", "proximal", &selection->proximal);
  read_flag(object, "boundary", "below", &selection->below);
  selection->min_kept = json_integer_value(json_object_get(object, "min_kept_tokens"));
}

static void read_objective(const json_t *object, reference_objective *objective)
{
  unsigned surrogate = objective->surrogate;
  unsigned aggregation = objective->aggregation;
  read_choice(object, "surrogate", surrogates, 3, &surrogate);
  read_choice(object, "loss_agg_mode", aggregations, 4, &aggregation);
  objective->surrogate = (reference_surrogate)surrogate;
  objective->aggregation = (reference_aggregation)aggregation;
  read_number(object, "clip_range_low", &objective->clip_low);
  read_number(object, "clip_range_high", &objective->clip_high);
  read_number(object, "clip_ratio_c", &objective->dual_clip);
  read_number(object, "sapo_tau_pos", &objective->sapo_positive);
  read_number(object, "sapo_tau_neg", &objective->sapo_negative);
  read_number(object, "loss_scale_factor", &objective->scale_factor);
  read_number(object, "log_ratio_clip", &objective->log_ratio_clip);
  read_flag(object, "denominator", "kept", &objective->divide_by_kept);
}

reference_config reference_config_read(const json_t *object)
{
  reference_config config = reference_config_default();
  read_selection(object, &config.selection);
  read_objective(object, &config.objective);
  return config;
}
