// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Calls of evaluate that a plugin has to refuse.

#ifndef RFT_CHECK_PROVOKE_H
#define RFT_CHECK_PROVOKE_H

#include "check.h"

typedef enum provocation_group {
  NULL_STRUCTS = 1,
  SHORT_STRUCTS = 2,
  LONG_STRUCTS = 4, ///< with a tail that is set, or a reserved word
  NULL_TENSORS = 8,
  WRONG_SHAPES = 16,
  WRONG_DTYPES = 32,
  WRONG_DEVICES = 64,
  WRONG_OFFSETS = 128, ///< cu_seqlens
  ALL_PROVOCATIONS = 255
} provocation_group;

/// A call, and what came of it.
typedef struct provocation {
  const char *what; ///< "mask: 3 dimensions"
  provocation_group group;
  int32_t code;
  const rft_error *error; ///< NULL where the call had none
  bool must_fail;         ///< else it is about a tensor that evaluate doesn't read
  const char *touched;    ///< an output that the call changed, or NULL
} provocation;

/// Makes every call of the groups. `with_error`: with an rft_error.
void check_provoke(const check_subject *subject, int groups, bool with_error,
                   void (*judge)(const provocation *made));

#endif // RFT_CHECK_PROVOKE_H
