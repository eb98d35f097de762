// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A plugin of a newer minor version: each of its tables is longer (P4).

#include "../../fixtures/fixture.h"

#define LONGER(type)                                                                               \
  static struct {                                                                                  \
    type known;                                                                                    \
    uint64_t added;                                                                                \
  } longer_##type

LONGER(rft_metric);
LONGER(rft_policy_loss);
LONGER(rft_algorithm_preset);
LONGER(rft_plugin);

static const rft_metric *const metrics[] = {&longer_rft_metric.known};
static const rft_policy_loss *const losses[] = {&longer_rft_policy_loss.known};
static const rft_algorithm_preset *const presets[] = {&longer_rft_algorithm_preset.known};

// Copies a table of version 1.0 and gives it a field that no host of version 1.0 knows.
#define LENGTHEN(type, table)                                                                      \
  longer_##type.known = (table);                                                                   \
  longer_##type.known.struct_size = sizeof longer_##type;                                          \
  longer_##type.added = 1

FIXTURE(LENGTHEN(rft_metric, fixture_metric); LENGTHEN(rft_policy_loss, fixture_loss);
        LENGTHEN(rft_algorithm_preset, fixture_preset); LENGTHEN(rft_plugin, fixture_plugin);
        longer_rft_policy_loss.known.metrics = metrics;
        longer_rft_plugin.known.policy_losses = losses;
        longer_rft_plugin.known.algorithm_presets = presets;
        longer_rft_plugin.known.abi_minor = RFT_ABI_MINOR + 1; *plugin = &longer_rft_plugin.known;
        return RFT_OK;)
