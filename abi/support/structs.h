// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reading a struct that the other side, perhaps of another minor version, filled (rules P1 to P4).

#ifndef RFT_SUPPORT_STRUCTS_H
#define RFT_SUPPORT_STRUCTS_H

#include "rft/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Checks a table of what the other side offers: it is there, and has at least the `known_size`
/// bytes that this code reads. A newer one offers more, which is none of this code's business.
int32_t rft_check_table(const void *table, uint32_t known_size, const char *name, rft_error *error);

/// Checks a request, a struct whose second word is reserved: as a table, and nothing is asked for
/// beyond what this code knows, which would be ignored.
int32_t rft_check_request(const void *request, uint32_t known_size, const char *name,
                          rft_error *error);

#ifdef __cplusplus
}
#endif

#endif // RFT_SUPPORT_STRUCTS_H
