// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Checks a config against the closed JSON Schema of a policy loss. Shared by librft_host and by
// plugins that link it, so that both sides read a schema alike.
//
// The subset of JSON Schema 2020-12: an object with properties and "additionalProperties": false;
// per property type (a name or a list of names among number, integer, string, boolean, null), enum,
// minimum, maximum, exclusiveMinimum, exclusiveMaximum, default, description. The annotation
// "x-aliases" lists other names that a property is known by: they are never accepted, only
// suggested.

#ifndef RFT_SUPPORT_SCHEMA_H
#define RFT_SUPPORT_SCHEMA_H

#include "rft/plugin.h"

#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Parses `config` (JSON text, `length` bytes; 0 bytes is {}), checks every key, and gives the
/// config with the defaults of absent keys filled in, in the schema's order. The caller owns
/// *resolved. `given` (may be NULL) gets the config as it came. RFT_INVALID_ARGUMENT names the key,
/// what was expected, what came, and the nearest known key.
int32_t rft_schema_resolve(const char *schema, const char *config, int64_t length,
                           json_t **resolved, json_t **given, rft_error *error);

/// The known name nearest to `name` in spelling, whatever the case, or NULL where none is near.
/// `known`: an object whose keys are the names; an "x-aliases" list in a value counts as its key.
const char *rft_nearest_name(const json_t *known, const char *name);

#ifdef __cplusplus
}
#endif

#endif // RFT_SUPPORT_SCHEMA_H
