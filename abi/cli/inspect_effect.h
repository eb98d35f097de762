// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a policy loss does to the tokens of a batch: which lose their gradient, and how.
//
// It is told by tensors, mask and gradient, so of any loss. A loss may report numbers, and take
// settings, by the names below; of one that doesn't, the signs of log-ratio and advantage tell what
// the trust region is.

#ifndef RFT_CLI_INSPECT_EFFECT_H
#define RFT_CLI_INSPECT_EFFECT_H

#include "evaluation.h"
#include "inspect_batch.h"
#include "subject.h"

/// Metrics.
#define INSPECT_TRUST_REGION_TOKENS "trust_region_tokens"
#define INSPECT_M2_BEFORE "m2_before"
#define INSPECT_M2_AFTER "m2_after"

/// Settings: the budget of the mean squared log-ratio, and the policy that it is of.
#define INSPECT_THRESHOLD "m2_threshold"
#define INSPECT_REFERENCE "m2_reference"
#define INSPECT_PROXIMAL "proximal"

typedef enum inspect_state {
  INSPECT_INVALID,
  INSPECT_KEPT,
  INSPECT_CLIPPED, ///< not masked, but its gradient is 0, and its advantage isn't
  INSPECT_MASKED
} inspect_state;

/// A sweep: the budgets tried, half an octave apart, the paper's in the middle.
enum { INSPECT_SWEEP_POINTS = 21, INSPECT_SWEEP_OCTAVE = 2 };

typedef struct inspect_effect {
  const char *name; ///< of the preset, or of the loss
  const char *preset;
  cli_subject subject;
  json_t *config;
  double loss;
  double *metrics;         ///< [metric_count of the loss]
  const double *log_ratio; ///< of the policy that the selection looks at; the batch's
  unsigned char *states;   ///< [positions], inspect_state
  int64_t masked_tokens;
  int64_t clipped_tokens;
  int64_t trust_region_tokens;
  double m2_before;
  double m2_after;
  double cut; ///< smallest absolute log-ratio of a masked token; NaN where none is masked
  bool swept;
  double sweep[INSPECT_SWEEP_POINTS]; ///< masked tokens per valid token
} inspect_effect;

/// The budget that a point of the sweep tries.
double inspect_sweep_threshold(int point);

/// Evaluates the batch. `loss`, `preset` and `config` are as in cli_subject_open. Free with
/// inspect_effect_free, whatever comes back, before the registry goes.
int32_t inspect_effect_run(const rft_registry *registry, const char *loss, const char *preset,
                           const char *config, const inspect_batch *batch, inspect_effect *effect,
                           rft_error *error);
void inspect_effect_free(inspect_effect *effect);

/// Part of the valid tokens; 0 where there is none.
double inspect_fraction(int64_t part, int64_t whole);

static inline bool inspect_is_lost(inspect_state state)
{
  return state == INSPECT_MASKED || state == INSPECT_CLIPPED;
}

#endif // RFT_CLI_INSPECT_EFFECT_H
