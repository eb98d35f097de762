// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "terms.h"

#include "exponential.h"
#include "surrogate.h"

#include <math.h>

// One surrogate over the block. The exponential sees 0 where a token has no term, so that nothing
// that is masked, dropped or without advantage can overflow.
#define SURROGATE(name, term_of)                                                                   \
  static void compute_##name(const m2po_inputs *inputs, m2po_terms *terms,                         \
                             const m2po_config *config)                                            \
  {                                                                                                \
    for (int64_t i = 0; i < M2PO_BLOCK; ++i) {                                                     \
      const double advantage = inputs->advantages[i];                                              \
      const double signed_kept = terms->keep[i] != 0 ? advantage : 0.0;                            \
      const double active = inputs->mask[i] != 0 ? signed_kept : 0.0;                              \
      const double clamped = m2po_clamp(inputs->log_ratio[i], config->log_ratio_clip);             \
      const double d = active != 0 ? clamped : 0.0;                                                \
      const double ratio = m2po_exp(d);                                                            \
      const m2po_term term = term_of;                                                              \
      const double loss = terms->weights[i] * term.loss;                                           \
      const double slope = terms->weights[i] * term.slope;                                         \
      terms->ratio[i] = ratio;                                                                     \
      terms->loss[i] = active != 0 ? loss : 0.0;                                                   \
      terms->slope[i] = active != 0 ? slope : 0.0;                                                 \
      terms->clipped[i] = active != 0 ? term.clipped : 0.0;                                        \
    }                                                                                              \
  }

SURROGATE(importance_sampling, m2po_importance_sampling(advantage, ratio))
SURROGATE(ppo_clip, m2po_ppo_clip(config, advantage, ratio))
SURROGATE(sapo, m2po_sapo(config, advantage, ratio))

void m2po_terms_compute(const m2po_inputs *inputs, m2po_terms *terms, const m2po_config *config)
{
  const m2po_config own = *config; // which no store to `terms` can change
  switch (own.surrogate) {
  case M2PO_IMPORTANCE_SAMPLING:
    compute_importance_sampling(inputs, terms, &own);
    break;
  case M2PO_PPO_CLIP:
    compute_ppo_clip(inputs, terms, &own);
    break;
  case M2PO_SAPO:
    compute_sapo(inputs, terms, &own);
    break;
  }
}

// The metrics see every valid token, dropped ones too, and so take an exponential of their own.
void m2po_measure_ratios(const m2po_inputs *inputs, const m2po_config *config,
                         m2po_measures *measures)
{
  const double clip = config->log_ratio_clip;
  const double limit = m2po_smaller(clip, M2PO_METRIC_CLIP);
  double tokens[M2PO_BLOCK];
  double ratio[M2PO_BLOCK];
  double k1[M2PO_BLOCK];
  double k3[M2PO_BLOCK];
  double beyond[M2PO_BLOCK];
  double size[M2PO_BLOCK];
  double inverse[M2PO_BLOCK]; // minus the ratio, whose largest is minus the smallest ratio
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double valid = inputs->mask[i];
    const double d = m2po_clamp(inputs->log_ratio[i], limit);
    const double r = m2po_exp(d);
    const double d_size = fabs(inputs->log_ratio[i]);
    tokens[i] = valid != 0 ? 1.0 : 0.0;
    ratio[i] = valid != 0 ? r : 0.0;
    inverse[i] = valid != 0 ? -r : -INFINITY;
    k1[i] = -d;
    k3[i] = r - 1.0 - d;
    beyond[i] = d_size > clip ? 1.0 : 0.0;
    size[i] = valid != 0 ? d_size : -INFINITY;
  }
  m2po_measures found = {.tokens = m2po_sum(tokens),
                         .ratio_sum = m2po_sum(ratio),
                         .k1_sum = m2po_sum(k1),
                         .k3_sum = m2po_sum(k3),
                         .log_ratio_clipped = m2po_sum(beyond),
                         .log_ratio_abs_max = m2po_largest(size),
                         .ratio_min = -m2po_largest(inverse)};
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    ratio[i] = inputs->mask[i] != 0 ? ratio[i] : -INFINITY;
  }
  found.ratio_max = m2po_largest(ratio);
  m2po_measures_add(measures, &found);
}
