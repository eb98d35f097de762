// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reading a struct that a caller of another minor version filled (rules P1 to P3).

#ifndef RFT_SUPPORT_STRUCTS_H
#define RFT_SUPPORT_STRUCTS_H

#include "rft/plugin.h"

/// Checks that a caller's struct is there, has at least the `known_size` bytes that this code
/// reads, and sets nothing beyond them that this code would ignore. `name` is for the message.
int32_t rft_check_size(const void *object, uint32_t known_size, const char *name, rft_error *error);

/// The same, for a struct whose second word is reserved and has to be 0.
int32_t rft_check_struct(const void *object, uint32_t known_size, const char *name,
                         rft_error *error);

#endif // RFT_SUPPORT_STRUCTS_H
