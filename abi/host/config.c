// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Configs of policy losses, checked before a plugin sees them (H7).

#include "registry.h"
#include "support/json.h"
#include "support/schema.h"

#include <stdlib.h>

int32_t rft_config_resolve(const rft_policy_loss *loss, const char *config, int64_t length,
                           char **resolved, rft_error *error)
{
  json_t *complete = NULL;
  const int32_t code =
      rft_schema_resolve(loss->config_schema, config, length, &complete, NULL, error);
  return code == RFT_OK ? rft_json_take_text(complete, 0, resolved, error) : code;
}

// The plugin gets the config as it was given: only so can it tell a key that was set from one that
// was left alone.
int32_t rft_instance_create(const rft_registry *registry, const rft_policy_loss *loss,
                            const char *config, int64_t length, rft_instance **instance,
                            rft_error *error)
{
  json_t *complete = NULL;
  int32_t code = rft_schema_resolve(loss->config_schema, config, length, &complete, NULL, error);
  json_decref(complete);
  if (code != RFT_OK) {
    return code;
  }
  rft_instance *made = NULL;
  code = loss->create(loss, &registry->host, config, length, &made, error);
  if (code == RFT_OK && made == NULL) {
    return rft_fail(error, RFT_INTERNAL, "policy loss \"%s\": create returned OK and no instance",
                    loss->name);
  }
  if (code == RFT_OK) {
    *instance = made;
  }
  return code;
}

void rft_string_free(char *text)
{
  free(text);
}
