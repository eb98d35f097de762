// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// YAML text into JSON values: what configs need of YAML, and nothing that surprises.
//
// Plain scalars are read by the core schema of YAML 1.2: null, true, false, decimal numbers (1e-3
// is one), and everything else is a string, "no" and "0x10" too. Refused: duplicated keys, keys
// that are not scalars, anchors, aliases, tags, a second document. JSON is read as the YAML that it
// is.

#ifndef TRAIN_YAML_READER_H
#define TRAIN_YAML_READER_H

#include "rft/plugin.h"

#include <jansson.h>

// Parses `length` bytes. `what` names the text in messages. The caller owns *value. Empty text is
// null.
int32_t yaml_parse(const char *what, const char *text, int64_t length, json_t **value,
                   rft_error *error);

#endif // TRAIN_YAML_READER_H
