// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The loss of one token, before it is weighted, and its slope by the token's log-prob.

#ifndef M2PO_SURROGATE_H
#define M2PO_SURROGATE_H

#include "config.h"
#include "exponential.h"

typedef struct m2po_term {
  double loss;
  double slope;   ///< d loss / d logprob
  double clipped; ///< 1 where the surrogate's clip holds and the slope is 0, else 0
} m2po_term;

/// L = -r A, the gradient of r being r (paper, the objective below Algorithm 1).
static inline m2po_term m2po_importance_sampling(double advantage, double ratio)
{
  return (m2po_term){-advantage * ratio, -advantage * ratio, 0.0};
}

/// max(-A r, -A clamp(r, 1 - low, 1 + high)), and for A < 0 at most -A c (arXiv 1707.06347,
/// 1912.09729). On equality the unclipped branch's slope.
static inline m2po_term m2po_ppo_clip(const m2po_config *config, double advantage, double ratio)
{
  const double low = 1.0 - config->clip_range_low;
  const double high = 1.0 + config->clip_range_high;
  const double above = ratio > high ? high : ratio;
  const double unclipped = -advantage * ratio;
  const double clamped = -advantage * (above < low ? low : above);
  const double larger = clamped > unclipped ? clamped : unclipped;
  const double dual = -advantage * config->clip_ratio_c;
  const double cap = advantage < 0 ? dual : INFINITY;
  const double loss = cap < larger ? cap : larger;
  return (m2po_term){loss, loss == unclipped ? unclipped : 0.0, loss == unclipped ? 0.0 : 1.0};
}

/// -A f(r), f(r) = 4/t sigmoid(t (r - 1)), t by the sign of A (arXiv 2511.20347).
static inline m2po_term m2po_sapo(const m2po_config *config, double advantage, double ratio)
{
  const double temperature = advantage > 0 ? config->sapo_tau_pos : config->sapo_tau_neg;
  const double gate = 1.0 / (1.0 + m2po_exp(-temperature * (ratio - 1.0)));
  return (m2po_term){-advantage * (4.0 / temperature) * gate,
                     -advantage * 4.0 * gate * (1.0 - gate) * ratio, 0.0};
}

#endif // M2PO_SURROGATE_H
