// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "subjects.h"

#include "hosts.h"
#include "support/json.h"
#include "verdict.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

rft_plugin_entry check_open(const char *path)
{
  void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char *const reason = dlerror(); // NOLINT(concurrency-mt-unsafe): kept per thread
    check_fail("the dynamic loader refuses it: %s", reason == NULL ? "no reason given" : reason);
  }
  void *const symbol = dlsym(handle, RFT_PLUGIN_ENTRY_SYMBOL);
  EXPECT(symbol != NULL, "there is no symbol " RFT_PLUGIN_ENTRY_SYMBOL);
  rft_plugin_entry entry;
  memcpy(&entry, &symbol, sizeof entry);
  return entry;
}

const rft_plugin *check_enter(check_subject *subject)
{
  rft_error error = {.struct_size = sizeof error};
  subject->entry = check_open(subject->path);
  subject->host = check_host_bare();
  subject->plugin = NULL;
  const int32_t code = subject->entry(subject->host, &subject->plugin, &error);
  EXPECT(code == RFT_OK, "the entry returns %d: %.400s", code, error.message);
  EXPECT(subject->plugin != NULL, "the entry returns OK and no tables");
  return subject->plugin;
}

bool check_selects(const rft_policy_loss *loss)
{
  return loss->selection_begin != NULL;
}

// ----------------------------------------------------------------------------------------- configs

// The arguments of a preset as JSON text, where it is one of this loss; else NULL.
static char *preset_config(const rft_algorithm_preset *preset, const rft_policy_loss *loss)
{
  json_t *document = NULL;
  char *text = NULL;
  if (preset->document != NULL &&
      rft_json_parse("preset", preset->document, (int64_t)strlen(preset->document), &document,
                     NULL) == RFT_OK) {
    const char *const name = json_string_value(json_object_get(document, "policy_loss_fn"));
    json_t *const args = json_object_get(document, "policy_loss_fn_args");
    if (name != NULL && strcmp(name, loss->name) == 0 && json_is_object(args)) {
      text = rft_json_text(args, 0);
    }
  }
  json_decref(document);
  return text;
}

static bool accepts(const check_subject *subject)
{
  rft_instance *instance = NULL;
  const int32_t code = subject->loss->create(subject->loss, subject->host, subject->config,
                                             (int64_t)strlen(subject->config), &instance, NULL);
  if (code == RFT_OK) {
    subject->loss->destroy(instance);
  }
  return code == RFT_OK;
}

static void run_with(const check *judged, check_subject *subject, const char *preset)
{
  char topic[160];
  snprintf(topic, sizeof topic,
           preset == NULL ? "loss \"%.48s\": " : "loss \"%.48s\", preset \"%.48s\": ",
           subject->loss->name, preset);
  check_set_topic(topic);
  judged->run(subject);
  check_set_topic("");
}

// A preset that create refuses is the affair of another check.
static void run_on_configs(const check *judged, check_subject *subject)
{
  subject->config = "{}";
  run_with(judged, subject, NULL);
  for (int64_t i = 0; i < subject->plugin->algorithm_preset_count; ++i) {
    const rft_algorithm_preset *const preset = subject->plugin->algorithm_presets[i];
    char *const config = preset_config(preset, subject->loss);
    if (config != NULL && strcmp(config, "{}") != 0) {
      subject->config = config;
      if (accepts(subject)) {
        run_with(judged, subject, preset->name);
      }
    }
    free(config);
  }
}

static bool is_in_scope(const check *judged, const rft_policy_loss *loss)
{
  switch (judged->scope) {
  case CHECK_SELECTION:
    return check_selects(loss);
  case CHECK_COLLECTIVES:
    return check_selects(loss) && (loss->capabilities & RFT_LOSS_COLLECTIVES) != 0;
  case CHECK_LOSS:
  case CHECK_CONFIG:
  case CHECK_FILE:
  case CHECK_PLUGIN:
    break;
  }
  return true;
}

static const char *why_none(const check *judged)
{
  return judged->scope == CHECK_SELECTION     ? "selects nothing"
         : judged->scope == CHECK_COLLECTIVES ? "accepts no collectives"
                                              : "the plugin has no policy loss";
}

static void run_on_losses(const check *judged, check_subject *subject)
{
  int judged_losses = 0;
  for (int64_t i = 0; i < subject->plugin->policy_loss_count; ++i) {
    subject->loss = subject->plugin->policy_losses[i];
    if (!is_in_scope(judged, subject->loss)) {
      continue;
    }
    ++judged_losses;
    subject->config = "{}";
    if (judged->scope == CHECK_LOSS) {
      run_with(judged, subject, NULL);
    } else {
      run_on_configs(judged, subject);
    }
  }
  if (judged_losses == 0) {
    check_skip("%s", why_none(judged));
  }
}

void check_run_on_all(const check *judged, const char *path, uint64_t seed)
{
  check_subject subject = {.path = path, .seed = seed};
  if (judged->scope != CHECK_FILE) {
    check_enter(&subject);
  }
  if (judged->scope == CHECK_FILE || judged->scope == CHECK_PLUGIN) {
    judged->run(&subject);
  } else {
    run_on_losses(judged, &subject);
  }
  check_pass();
}
