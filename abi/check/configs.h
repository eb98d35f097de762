// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Configs that a schema allows and forbids, and what create says to them.

#ifndef RFT_CHECK_CONFIGS_H
#define RFT_CHECK_CONFIGS_H

#include "check.h"

#include <jansson.h>

/// What create said to a config.
typedef struct check_created {
  int32_t code;
  rft_error error;
  rft_instance *instance; ///< NULL where it was refused
} check_created;

/// Calls create with text of any bytes.
check_created check_try_text(const check_subject *subject, const char *text, int64_t length);

/// Calls create, frees the instance, and gives the code. Ends the check where a refusal leaves an
/// instance behind.
int32_t check_try(const check_subject *subject, const char *text, int64_t length, rft_error *error);

/// The parsed schema of the subject's loss. The caller owns it.
json_t *check_schema(const check_subject *subject);

/// A config with one key.
char *check_config_text(const char *key, const json_t *value);

/// One value of a property, and whether the schema allows it.
typedef void (*check_value_judge)(const check_subject *subject, const char *key,
                                  const json_t *value, bool allowed);

/// Values on both sides of each bound of each property.
void check_probe_bounds(const check_subject *subject, check_value_judge judge);

/// A value of each type for each property.
void check_probe_types(const check_subject *subject, check_value_judge judge);

/// Each choice of each property, and one that isn't listed.
void check_probe_choices(const check_subject *subject, check_value_judge judge);

#endif // RFT_CHECK_CONFIGS_H
