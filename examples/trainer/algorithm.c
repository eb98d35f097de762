// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "algorithm.h"

#include "support/error.h"
#include "support/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// -------------------------------------------------------------------------------------- refusals

// What a preset may ask of this trainer, as JSON text. Keys that are absent ask for nothing.
typedef struct preset_offer {
  const char *key;
  const char *values; // an array of those that are fine; NULL: any
} preset_offer;

static const preset_offer offers[] = {
    {"description", NULL},
    {"policy_loss_fn", NULL},
    {"policy_loss_fn_args", NULL},
    {"rollout", NULL}, // checked by the next table
    {"use_critic", "[false]"},
    {"use_reference", "[false]"},
    {"kl_penalty_fn", "[\"none\", null]"},
    {"kl_loss_fn", "[\"none\", null]"},
    {"entropy_loss_fn", "[\"none\", null]"},
    {"advantage_fn", "[\"grpo\"]"},
};
static const preset_offer rollout_offers[] = {
    {"logprobs", "[true, false]"},
    {"proximal_logprobs", "[true, false]"},
};
enum {
  OFFERS = sizeof offers / sizeof offers[0],
  ROLLOUT_OFFERS = sizeof rollout_offers / sizeof rollout_offers[0]
};

static bool is_listed(const char *values, const json_t *value)
{
  json_t *const list = json_loads(values, 0, NULL);
  bool found = false;
  for (size_t i = 0; i < json_array_size(list); ++i) {
    found = found || json_equal(json_array_get(list, i), value);
  }
  json_decref(list);
  return found;
}

static const preset_offer *find_offer(const preset_offer *table, int count, const char *key)
{
  for (int i = 0; i < count; ++i) {
    if (strcmp(table[i].key, key) == 0) {
      return &table[i];
    }
  }
  return NULL;
}

static int32_t check_wants(const char *preset, const char *prefix, const json_t *wants,
                           const preset_offer *table, int count, rft_error *error)
{
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)wants, key, value)
  {
    const preset_offer *const offer = find_offer(table, count, key);
    char brief[RFT_JSON_BRIEF_SIZE];
    rft_json_brief(brief, value);
    if (offer == NULL) {
      return rft_fail(error, RFT_UNIMPLEMENTED,
                      "preset \"%s\" sets %s%s to %s: this trainer does not know that key", preset,
                      prefix, key, brief);
    }
    if (offer->values != NULL && !is_listed(offer->values, value)) {
      return rft_fail(error, RFT_UNIMPLEMENTED,
                      "preset \"%s\" sets %s%s to %s, which this trainer does not have: expected "
                      "one of %s",
                      preset, prefix, key, brief, offer->values);
    }
  }
  return RFT_OK;
}

int32_t algorithm_check_preset(const char *name, const json_t *document, rft_error *error)
{
  const int32_t code = check_wants(name, "", document, offers, OFFERS, error);
  return code != RFT_OK ? code
                        : check_wants(name, "rollout.", json_object_get(document, "rollout"),
                                      rollout_offers, ROLLOUT_OFFERS, error);
}

// --------------------------------------------------------------------------------------- loading

static int32_t scan(train_algorithm *self, const train_config *config, rft_error *error)
{
  if (config->plugins_dir == NULL) {
    return rft_registry_scan_default(self->registry, error);
  }
  char *const directory = realpath(config->plugins_dir, NULL);
  if (directory == NULL) {
    return rft_fail(error, RFT_NOT_FOUND, "plugins_dir %s: %s", config->plugins_dir,
                    strerror(errno));
  }
  const int32_t code = rft_registry_scan(self->registry, directory, error);
  free(directory);
  return code;
}

static void report_refusals(const train_algorithm *self,
                            void (*log)(void *log_context, int32_t level, const char *message),
                            void *log_context)
{
  for (int64_t i = 0; i < rft_registry_refusal_count(self->registry); ++i) {
    const rft_refusal *const refusal = rft_registry_refusal(self->registry, i);
    char message[RFT_ERROR_MESSAGE_SIZE + 256];
    snprintf(message, sizeof message, "not loaded: %s: %s", refusal->path, refusal->reason);
    log(log_context, RFT_LOG_WARNING, message);
  }
}

// The preset's document with the config's arguments over its own, checked by the loss's schema.
static int32_t read_preset(const train_algorithm *self, const train_config *config, json_t **preset,
                           rft_error *error)
{
  char *const args = rft_json_text(config->policy_loss_fn_args, 0);
  if (args == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory");
  }
  char *document = NULL;
  int32_t code = rft_preset_resolve(self->registry, config->algorithm_type, args, &document, error);
  free(args);
  if (code == RFT_OK) {
    code = rft_json_parse("preset", document, (int64_t)strlen(document), preset, error);
    rft_string_free(document);
  }
  return code;
}

static int32_t resolve_preset(train_algorithm *self, const train_config *config, rft_error *error)
{
  rft_error cause = {.struct_size = sizeof cause};
  const int32_t code = read_preset(self, config, &self->preset, &cause);
  return code == RFT_OK
             ? algorithm_check_preset(config->algorithm_type, self->preset, error)
             : rft_fail(error, code, "algorithm \"%s\": %s", config->algorithm_type, cause.message);
}

static int32_t make_instance(train_algorithm *self, rft_error *error)
{
  const char *const name = json_string_value(json_object_get(self->preset, "policy_loss_fn"));
  const int32_t code = rft_registry_find_policy_loss(self->registry, name, &self->loss, error);
  if (code != RFT_OK) {
    return code;
  }
  self->one_pass = rft_registry_one_pass(self->registry, self->loss);
  char *const args = rft_json_text(algorithm_args(self), 0);
  if (args == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory");
  }
  const int32_t made = rft_instance_create(self->registry, self->loss, args, (int64_t)strlen(args),
                                           &self->instance, error);
  free(args);
  return made;
}

static int32_t thread_count(const train_config *config)
{
  const int64_t threads =
      config->threads > 0 ? config->threads : (int64_t)sysconf(_SC_NPROCESSORS_ONLN);
  return threads > 0 ? (int32_t)threads : 1;
}

int32_t algorithm_open(train_algorithm *self, const train_config *config,
                       void (*log)(void *log_context, int32_t level, const char *message),
                       void *log_context, rft_error *error)
{
  const rft_registry_options options = {.struct_size = sizeof options,
                                        .threads = thread_count(config),
                                        .name = "rft-train",
                                        .log = log,
                                        .log_context = log_context};
  *self = (train_algorithm){0};
  int32_t code = rft_registry_create(&options, &self->registry, error);
  if (code == RFT_OK) {
    code = scan(self, config, error);
  }
  if (code == RFT_OK) {
    report_refusals(self, log, log_context);
    code = resolve_preset(self, config, error);
  }
  if (code == RFT_OK) {
    code = make_instance(self, error);
  }
  if (code != RFT_OK) {
    algorithm_close(self);
  }
  return code;
}

void algorithm_close(train_algorithm *self)
{
  if (self->instance != NULL) {
    self->loss->destroy(self->instance);
  }
  json_decref(self->preset);
  rft_registry_destroy(self->registry);
  *self = (train_algorithm){0};
}

const json_t *algorithm_args(const train_algorithm *self)
{
  return json_object_get(self->preset, "policy_loss_fn_args");
}

const rft_host *algorithm_host(const train_algorithm *self)
{
  return rft_registry_host(self->registry);
}

bool algorithm_wants_proximal(const train_algorithm *self)
{
  return json_is_true(
      json_object_get(json_object_get(self->preset, "rollout"), "proximal_logprobs"));
}
