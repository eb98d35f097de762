// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// JSON files that the plugin carries, NUL-terminated. embed.sh writes their definitions.

#ifndef M2PO_EMBEDDED_H
#define M2PO_EMBEDDED_H

extern const char m2po_embedded_config_schema[]; // plugin/config.schema.json
extern const char m2po_embedded_preset_m2po[];   // presets/m2po.json, and so on
extern const char m2po_embedded_preset_m2po_areal[];
extern const char m2po_embedded_preset_grpo[];

#endif // M2PO_EMBEDDED_H
