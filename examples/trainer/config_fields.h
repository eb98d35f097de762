// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Every key of a trainer config, once: where it stands, what it may hold, where it goes.

#ifndef TRAIN_CONFIG_FIELDS_H
#define TRAIN_CONFIG_FIELDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

typedef enum field_kind {
  FIELD_COUNT,        // integer >= 1
  FIELD_INTEGER,      // integer >= 0
  FIELD_POSITIVE,     // number > 0
  FIELD_NOT_NEGATIVE, // number >= 0
  FIELD_FRACTION,     // number in [0, 1)
  FIELD_NAME,         // string
  FIELD_PATH,         // string, or null, which is the default
  FIELD_MODE,         // "stale" or "async"
  FIELD_TASK,         // the name of a task_kind
  FIELD_OBJECT        // taken out and checked elsewhere: here it is only a known name
} field_kind;

typedef struct config_field {
  const char *section; // "" for none
  const char *key;
  field_kind kind;
  double maximum;       // of an integer
  double number;        // default of an integer or a number
  const char *text;     // default of a string
  const char *describe; // for a reader
  size_t offset;        // in train_config
} config_field;

// In sections; the last is "".
extern const config_field config_fields[];
extern const int64_t config_field_count;

// The closed JSON Schema of a section, in the form that policy losses describe their configs in;
// NULL where there is no memory.
json_t *config_section_schema(const char *section);

#endif // TRAIN_CONFIG_FIELDS_H
