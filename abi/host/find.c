// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Losses and presets by name: the first plugin that has the name wins (H1).

#include "registry.h"
#include "support/json.h"
#include "support/phrase.h"
#include "support/schema.h"

// `known`: an object whose keys are the names, or NULL when out of memory.
static int32_t fail_unknown(const char *what, const char *name, const json_t *known,
                            const rft_registry *registry, rft_error *error)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  char other[RFT_JSON_BRIEF_SIZE];
  rft_json_quote(quoted, name);
  const char *const nearest = rft_nearest_name(known, name);
  if (nearest != NULL) {
    return rft_fail(error, RFT_NOT_FOUND, "%s %s is not known: the nearest known one is %s", what,
                    quoted, rft_json_quote(other, nearest));
  }
  if (json_object_size(known) == 0) {
    return rft_fail(error, RFT_NOT_FOUND, "%s %s is not known: of %d plugins loaded none has any",
                    what, quoted, (int)registry->loaded_count);
  }
  char message[RFT_ERROR_MESSAGE_SIZE];
  rft_phrase list = rft_phrase_in(message, sizeof message);
  rft_phrase_add(&list, "%s %s is not known: the known ones are ", what, quoted);
  const char *separator = "";
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)known, key, value)
  {
    rft_phrase_add(&list, "%s%s", separator, rft_json_quote(other, key));
    separator = ", ";
  }
  return rft_fail(error, RFT_NOT_FOUND, "%s", message);
}

// What is looked for in each plugin.
typedef struct kind {
  const char *text;
  int64_t (*count)(const rft_plugin *plugin);
  const char *(*name)(const rft_plugin *plugin, int64_t index);
} kind;

static int64_t loss_count(const rft_plugin *plugin)
{
  return plugin->policy_loss_count;
}

static const char *loss_name(const rft_plugin *plugin, int64_t index)
{
  return plugin->policy_losses[index]->name;
}

static int64_t preset_count(const rft_plugin *plugin)
{
  return plugin->algorithm_preset_count;
}

static const char *preset_name(const rft_plugin *plugin, int64_t index)
{
  return plugin->algorithm_presets[index]->name;
}

static const kind LOSS = {"policy loss", loss_count, loss_name};
static const kind PRESET = {"algorithm preset", preset_count, preset_name};

static int32_t find(const rft_registry *registry, const kind *wanted, const char *name,
                    const rft_plugin **plugin, int64_t *index, rft_error *error)
{
  json_t *const known = json_object();
  for (int64_t i = 0; i < registry->loaded_count; ++i) {
    const rft_plugin *const candidate = registry->loaded[i].plugin;
    for (int64_t j = 0; j < wanted->count(candidate); ++j) {
      const char *const candidate_name = wanted->name(candidate, j);
      if (strcmp(candidate_name, name) == 0) {
        json_decref(known);
        *plugin = candidate;
        *index = j;
        return RFT_OK;
      }
      json_object_set_new(known, candidate_name, json_null());
    }
  }
  const int32_t code = fail_unknown(wanted->text, name, known, registry, error);
  json_decref(known);
  return code;
}

int32_t rft_registry_find_policy_loss(const rft_registry *registry, const char *name,
                                      const rft_policy_loss **loss, rft_error *error)
{
  const rft_plugin *plugin = NULL;
  int64_t index = 0;
  const int32_t code = find(registry, &LOSS, name, &plugin, &index, error);
  if (code == RFT_OK) {
    *loss = plugin->policy_losses[index];
  }
  return code;
}

int32_t rft_registry_find_algorithm_preset(const rft_registry *registry, const char *name,
                                           const rft_algorithm_preset **preset, rft_error *error)
{
  const rft_plugin *plugin = NULL;
  int64_t index = 0;
  const int32_t code = find(registry, &PRESET, name, &plugin, &index, error);
  if (code == RFT_OK) {
    *preset = plugin->algorithm_presets[index];
  }
  return code;
}
