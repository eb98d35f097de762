// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Algorithm presets as documents whose every setting is spelt out.

#include "registry.h"
#include "support/json.h"
#include "support/schema.h"

#include <stdlib.h>
#include <string.h>

// The preset's arguments with `args` over them.
static int32_t overlay(const json_t *document, const char *args, json_t **merged, rft_error *error)
{
  json_t *over = NULL;
  if (args != NULL) {
    const int32_t code = rft_json_parse("config", args, (int64_t)strlen(args), &over, error);
    if (code != RFT_OK) {
      return code;
    }
  }
  const json_t *const own = json_object_get(document, "policy_loss_fn_args");
  json_t *const copy = own == NULL ? json_object() : json_copy((json_t *)own);
  int32_t code = RFT_OK;
  if (over != NULL && !json_is_object(over)) {
    char found[RFT_JSON_BRIEF_SIZE];
    code = rft_fail(error, RFT_INVALID_ARGUMENT, "config: expected an object, found %s",
                    rft_json_brief(found, over));
  } else if (copy == NULL || (over != NULL && json_object_update(copy, over) != 0)) {
    code = rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for a preset");
  }
  json_decref(over);
  if (code != RFT_OK) {
    json_decref(copy);
    return code;
  }
  *merged = copy;
  return RFT_OK;
}

static int32_t complete_args(const rft_registry *registry, json_t *document, const char *args,
                             rft_error *error)
{
  const rft_policy_loss *loss = NULL;
  json_t *merged = NULL;
  char *text = NULL;
  json_t *complete = NULL;
  const char *const name = json_string_value(json_object_get(document, "policy_loss_fn"));
  int32_t code = rft_registry_find_policy_loss(registry, name, &loss, error);
  if (code == RFT_OK) {
    code = overlay(document, args, &merged, error);
  }
  if (code == RFT_OK) {
    code = rft_json_take_text(merged, 0, &text, error);
  }
  if (code == RFT_OK) {
    code = rft_schema_resolve(loss->config_schema, text, (int64_t)strlen(text), &complete, NULL,
                              error);
  }
  free(text);
  if (code == RFT_OK && json_object_set_new(document, "policy_loss_fn_args", complete) != 0) {
    code = rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for a preset");
  }
  return code;
}

int32_t rft_preset_resolve(const rft_registry *registry, const char *name, const char *args,
                           char **document, rft_error *error)
{
  const rft_algorithm_preset *preset = NULL;
  json_t *parsed = NULL;
  int32_t code = rft_registry_find_algorithm_preset(registry, name, &preset, error);
  if (code == RFT_OK) {
    code = rft_json_parse("preset", preset->document, (int64_t)strlen(preset->document), &parsed,
                          error);
  }
  if (code == RFT_OK) {
    code = complete_args(registry, parsed, args, error);
  }
  if (code != RFT_OK) {
    json_decref(parsed);
    return code;
  }
  return rft_json_take_text(parsed, 2, document, error);
}
