// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "subject.h"

#include "cli.h"
#include "support/error.h"
#include "support/json.h"
#include "support/system_error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_CONFIG (1 << 20)

// Takes the text of --config, or of the file that it names; free it.
static int32_t read_config(const char *argument, char **text, rft_error *error)
{
  if (argument == NULL || argument[0] != '@') {
    *text = strcpy(cli_allocate(argument == NULL ? 3 : strlen(argument) + 1, 1),
                   argument == NULL ? "{}" : argument);
    return RFT_OK;
  }
  FILE *const file = fopen(argument + 1, "rb");
  if (file == NULL) {
    char words[RFT_SYSTEM_ERROR_SIZE];
    return rft_fail(error, RFT_NOT_FOUND, "cannot open the config %s: %s", argument + 1,
                    rft_system_error(words, errno));
  }
  char *const content = cli_allocate(LARGEST_CONFIG + 1, 1);
  const size_t length = fread(content, 1, LARGEST_CONFIG, file);
  const bool at_end = feof(file) && !ferror(file);
  const bool whole = fclose(file) == 0 && at_end && strlen(content) == length;
  if (!whole) {
    free(content);
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "the config %s: expected text of less than %d bytes", argument + 1,
                    LARGEST_CONFIG);
  }
  *text = content;
  return RFT_OK;
}

static int32_t only_loss(const rft_registry *registry, const rft_policy_loss **loss,
                         rft_error *error)
{
  int64_t found = 0;
  for (int64_t i = 0; i < rft_registry_plugin_count(registry); ++i) {
    const rft_plugin *const plugin = rft_registry_plugin(registry, i);
    found += plugin->policy_loss_count;
    if (plugin->policy_loss_count > 0) {
      *loss = plugin->policy_losses[0];
    }
  }
  return found == 1 ? RFT_OK
                    : rft_fail(error, RFT_NOT_FOUND,
                               "expected --loss or --preset: the plugins have %" PRId64
                               " policy losses; see rft list",
                               found);
}

static int32_t resolve_preset(const rft_registry *registry, const char *name, const char *config,
                              cli_subject *subject, rft_error *error)
{
  char *text = NULL;
  json_t *document = NULL;
  int32_t code = rft_preset_resolve(registry, name, config, &text, error);
  if (code == RFT_OK) {
    code = rft_json_parse("preset", text, (int64_t)strlen(text), &document, error);
  }
  rft_string_free(text);
  if (code == RFT_OK) {
    code = rft_registry_find_policy_loss(
        registry, json_string_value(json_object_get(document, "policy_loss_fn")), &subject->loss,
        error);
  }
  if (code == RFT_OK) {
    const json_t *const rollout = json_object_get(document, "rollout");
    subject->never_proximal = json_is_false(json_object_get(rollout, "proximal_logprobs"));
    code = rft_json_take_text(json_incref(json_object_get(document, "policy_loss_fn_args")), 0,
                              &subject->config, error);
  }
  json_decref(document);
  return code;
}

static int32_t choose(const rft_registry *registry, const char *loss, const char *preset,
                      const char *config, cli_subject *subject, rft_error *error)
{
  if (preset != NULL) {
    return resolve_preset(registry, preset, config, subject, error);
  }
  const int32_t code = loss == NULL
                           ? only_loss(registry, &subject->loss, error)
                           : rft_registry_find_policy_loss(registry, loss, &subject->loss, error);
  return code == RFT_OK ? rft_config_resolve(subject->loss, config, (int64_t)strlen(config),
                                             &subject->config, error)
                        : code;
}

int32_t cli_subject_open(const rft_registry *registry, const char *loss, const char *preset,
                         const char *config, cli_subject *subject, rft_error *error)
{
  char *given = NULL;
  *subject = (cli_subject){.loss = NULL};
  int32_t code = read_config(config, &given, error);
  if (given == NULL) {
    return code;
  }
  code = choose(registry, loss, preset, given, subject, error);
  if (code == RFT_OK) {
    subject->one_pass = rft_registry_one_pass(registry, subject->loss);
    const char *const text = preset == NULL ? given : subject->config;
    code = rft_instance_create(registry, subject->loss, text, (int64_t)strlen(text),
                               &subject->instance, error);
  }
  free(given);
  return code;
}

void cli_subject_close(cli_subject *subject)
{
  if (subject->instance != NULL) {
    subject->loss->destroy(subject->instance);
  }
  free(subject->config);
}

cli_batch cli_subject_batch(const cli_subject *subject, const cli_batch *batch)
{
  cli_batch given = *batch;
  if (subject->never_proximal) {
    given.proximal_logprob = NULL;
  }
  return given;
}
