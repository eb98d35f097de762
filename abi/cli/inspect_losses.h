// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Which tokens, texts and sequences lost most to a policy loss.

#ifndef RFT_CLI_INSPECT_LOSSES_H
#define RFT_CLI_INSPECT_LOSSES_H

#include "inspect_effect.h"

/// Tokens of one text, or of one sequence.
typedef struct inspect_group {
  const char *text; ///< of a sequence NULL
  int64_t row;      ///< of a text: that of its first token
  int64_t valid_tokens;
  int64_t masked_tokens;
  int64_t clipped_tokens;
} inspect_group;

/// At most as many of each as asked for, those that lost most first; none that lost nothing.
typedef struct inspect_losses {
  int64_t *tokens; ///< positions, by absolute log-ratio
  int64_t token_count;
  inspect_group *texts; ///< by lost tokens; none where the batch has no text
  int64_t text_count;
  inspect_group *sequences; ///< by lost tokens
  int64_t sequence_count;
} inspect_losses;

void inspect_losses_find(const inspect_batch *batch, const inspect_effect *effect, int64_t most,
                         inspect_losses *losses);
void inspect_losses_free(inspect_losses *losses);

#endif // RFT_CLI_INSPECT_LOSSES_H
