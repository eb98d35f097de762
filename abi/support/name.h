// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What names and ids look like (plugin.h), for the host that refuses others and the check that
// looks for them.

#ifndef RFT_SUPPORT_NAME_H
#define RFT_SUPPORT_NAME_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/// [a-z][a-z0-9_]*: a policy loss, an algorithm preset, a metric. NULL is none.
bool rft_is_name(const char *text);

/// Labels of letters, digits, '-' and '_', two or more, joined by '.': a plugin. NULL is none.
bool rft_is_plugin_id(const char *text);

#ifdef __cplusplus
}
#endif

#endif // RFT_SUPPORT_NAME_H
