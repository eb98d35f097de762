// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The schema of a policy loss as a document: what schema.c reads a config by.

#ifndef RFT_SUPPORT_SCHEMA_DOCUMENT_H
#define RFT_SUPPORT_SCHEMA_DOCUMENT_H

#include "rft/plugin.h"

#include <jansson.h>

/// Parses a schema and checks that it stays within the subset that schema.h names, so that no
/// constraint is silently left unchecked (P11). RFT_INTERNAL: the fault is the plugin's.
int32_t rft_schema_load(const char *schema, json_t **document, rft_error *error);

/// The type names of a property, one or several.
size_t rft_schema_type_count(const json_t *property);
const char *rft_schema_type(const json_t *property, size_t index);

#endif // RFT_SUPPORT_SCHEMA_DOCUMENT_H
