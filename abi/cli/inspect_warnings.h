// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What about a batch, or about what a loss does to it, a person should look into.

#ifndef RFT_CLI_INSPECT_WARNINGS_H
#define RFT_CLI_INSPECT_WARNINGS_H

#include "inspect_effect.h"

/// Masked tokens per valid token, above which there is a warning.
#define INSPECT_MUCH_MASKED 0.2

/// An array of {"code", "message"}: masked_much (of each effect that does), same_logprobs,
/// logprobs_disagree, mask_shifted, token_text_unused. The caller owns it.
json_t *inspect_warnings(const inspect_batch *batch, const inspect_effect *effects, int count);

#endif // RFT_CLI_INSPECT_WARNINGS_H
