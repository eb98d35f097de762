// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "config.h"

#include "embedded.h"
#include "support/error.h"
#include "support/schema.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Names of the choices, in the order of the enums in config.h.
static const char *const selections[] = {"trust_region", "all_tokens", NULL};
static const char *const references[] = {"current", "proximal", NULL};
static const char *const boundaries[] = {"at_most", "below", NULL};
static const char *const denominators[] = {"valid", "kept", NULL};
static const char *const surrogates[] = {"importance_sampling", "ppo_clip", "sapo", NULL};
static const char *const aggregations[] = {"token-mean", "seq-mean-token-sum",
                                           "seq-mean-token-mean", "seq-mean-token-sum-norm", NULL};

// The schema has been checked: the key is there, of its type, or null where that is allowed.
static double number(const json_t *values, const char *key, double null_value)
{
  const json_t *const value = json_object_get(values, key);
  return json_is_null(value) ? null_value : json_number_value(value) + 0.0; // no -0.0
}

// JSON Schema: 1.0 is an integer.
static int64_t integer(const json_t *values, const char *key)
{
  const json_t *const value = json_object_get(values, key);
  return json_is_integer(value) ? json_integer_value(value) : (int64_t)json_real_value(value);
}

static int choice(const json_t *values, const char *key, const char *const *names)
{
  const char *const name = json_string_value(json_object_get(values, key));
  int index = 0;
  while (names[index] != NULL && strcmp(names[index], name) != 0) {
    ++index;
  }
  return index;
}

static m2po_config read_config(const json_t *values)
{
  return (m2po_config){
      .m2_threshold = number(values, "m2_threshold", INFINITY),
      .selection = (m2po_constrained)choice(values, "selection", selections),
      .m2_reference = (m2po_reference)choice(values, "m2_reference", references),
      .boundary = (m2po_boundary)choice(values, "boundary", boundaries),
      .min_kept_tokens = integer(values, "min_kept_tokens"),
      .denominator = (m2po_denominator)choice(values, "denominator", denominators),
      .surrogate = (m2po_surrogate)choice(values, "surrogate", surrogates),
      .clip_range_low = number(values, "clip_range_low", 0),
      .clip_range_high = number(values, "clip_range_high", 0),
      .clip_ratio_c = number(values, "clip_ratio_c", INFINITY),
      .sapo_tau_pos = number(values, "sapo_tau_pos", 0),
      .sapo_tau_neg = number(values, "sapo_tau_neg", 0),
      .loss_agg_mode = (m2po_aggregation)choice(values, "loss_agg_mode", aggregations),
      .loss_scale_factor = number(values, "loss_scale_factor", 0),
      .log_ratio_clip = number(values, "log_ratio_clip", INFINITY),
  };
}

// FNV-1a. Every field counts: a rank whose loss differs is as wrong as one whose selection does.
static uint64_t digest_of(const m2po_config *config)
{
  const double fields[] = {config->m2_threshold,
                           config->selection,
                           config->m2_reference,
                           config->boundary,
                           (double)config->min_kept_tokens,
                           config->denominator,
                           config->surrogate,
                           config->clip_range_low,
                           config->clip_range_high,
                           config->clip_ratio_c,
                           config->sapo_tau_pos,
                           config->sapo_tau_neg,
                           config->loss_agg_mode,
                           config->loss_scale_factor,
                           config->log_ratio_clip};
  unsigned char bytes[sizeof fields];
  memcpy(bytes, fields, sizeof fields);
  uint64_t digest = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < sizeof bytes; ++i) {
    digest = (digest ^ bytes[i]) * UINT64_C(0x100000001B3);
  }
  return digest;
}

static void warn(const rft_log *log, const char *key, const char *needed)
{
  char message[RFT_ERROR_MESSAGE_SIZE];
  snprintf(message, sizeof message, "m2po: config key \"%s\" has no effect without %s", key,
           needed);
  log->write(log, RFT_LOG_WARNING, message);
}

static bool same_value(const json_t *left, const json_t *right)
{
  return json_is_number(left) && json_is_number(right)
             ? json_number_value(left) == json_number_value(right)
             : json_equal(left, right) != 0;
}

// Did somebody mean to set the key? A config that has every key has been completed with defaults,
// and then a default says nothing.
static bool is_meant(const json_t *given, const json_t *defaults, const char *key)
{
  const json_t *const value = json_object_get(given, key);
  const bool completed = json_object_size(given) == json_object_size(defaults);
  return value != NULL && !(completed && same_value(value, json_object_get(defaults, key)));
}

static void warn_without_effect(const json_t *given, const json_t *defaults,
                                const m2po_config *config, const rft_log *log)
{
  const bool clips = config->surrogate == M2PO_PPO_CLIP;
  const bool sapo = config->surrogate == M2PO_SAPO;
  const bool selects = !isinf(config->m2_threshold);
  const struct {
    const char *key;
    bool effective;
    const char *needed;
  } keys[] = {
      {"clip_range_low", clips, "surrogate \"ppo_clip\""},
      {"clip_range_high", clips, "surrogate \"ppo_clip\""},
      {"clip_ratio_c", clips, "surrogate \"ppo_clip\""},
      {"sapo_tau_pos", sapo, "surrogate \"sapo\""},
      {"sapo_tau_neg", sapo, "surrogate \"sapo\""},
      {"loss_scale_factor", config->loss_agg_mode == M2PO_SEQ_MEAN_TOKEN_SUM_NORM,
       "loss_agg_mode \"seq-mean-token-sum-norm\""},
      {"denominator", config->loss_agg_mode == M2PO_TOKEN_MEAN, "loss_agg_mode \"token-mean\""},
      {"boundary", selects, "an m2_threshold"},
      {"min_kept_tokens", selects, "an m2_threshold"},
  };
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i) {
    if (!keys[i].effective && is_meant(given, defaults, keys[i].key)) {
      warn(log, keys[i].key, keys[i].needed);
    }
  }
}

int32_t m2po_config_parse(const char *text, int64_t length, const rft_log *log, m2po_config *config,
                          rft_error *error)
{
  const char *const schema = m2po_embedded_config_schema;
  json_t *values = NULL;
  json_t *given = NULL;
  json_t *defaults = NULL;
  int32_t code = rft_schema_resolve(schema, text, length, &values, &given, error);
  if (code == RFT_OK) {
    code = rft_schema_resolve(schema, NULL, 0, &defaults, NULL, error);
  }
  if (code == RFT_OK) {
    *config = read_config(values);
    config->digest = digest_of(config);
  }
  if (code == RFT_OK && log != NULL) {
    warn_without_effect(given, defaults, config, log);
  }
  json_decref(values);
  json_decref(given);
  json_decref(defaults);
  return code;
}
