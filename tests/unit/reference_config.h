// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A config of the policy loss as the reference's structs, and as the JSON text that says the same.

#ifndef TEST_REFERENCE_CONFIG_H
#define TEST_REFERENCE_CONFIG_H

#include "reference.h"
#include "reference_loss.h"

#include <jansson.h>

typedef struct reference_config {
  reference_selection selection;
  reference_objective objective;
} reference_config;

/// The defaults.
reference_config reference_config_default(void);

/// JSON text with every field spelt out, alive until test_free_all.
const char *reference_config_text(const reference_config *config);

/// Reads the fields that are given; the others are the defaults.
reference_config reference_config_read(const json_t *object);

#endif // TEST_REFERENCE_CONFIG_H
