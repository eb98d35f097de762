// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "metrics.h"

#include "support/error.h"

#include <inttypes.h>

#define METRIC(phase_name, combine_name, metric_name, over, under, text)                           \
  (&(const rft_metric){.struct_size = RFT_STRUCT_SIZE(rft_metric, reserved),                       \
                       .phase = RFT_METRIC_##phase_name,                                           \
                       .name = (metric_name),                                                      \
                       .description = (text),                                                      \
                       .numerator = (over),                                                        \
                       .denominator = (under),                                                     \
                       .combine = RFT_COMBINE_##combine_name})
#define SELECTION(name, text) METRIC(SELECTION, NONE, name, 0, 0, text)
#define SUM(name, text) METRIC(EVALUATE, SUM, name, 0, 0, text)

const rft_metric *const m2po_metrics[M2PO_METRIC_COUNT] = {
    [M2PO_VALID_TOKENS] =
        SELECTION("valid_tokens", "Tokens of the optimizer batch whose mask is set."),
    [M2PO_TRUST_REGION_TOKENS] =
        SELECTION("trust_region_tokens", "Valid tokens that the selection constrains (T)."),
    [M2PO_MASKED_TOKENS] = SELECTION("masked_tokens", "Tokens that the selection drops."),
    [M2PO_M2_SUM_BEFORE] =
        SELECTION("m2_sum_before", "Sum of squared log-ratios over T before dropping."),
    [M2PO_M2_SUM_AFTER] = SELECTION("m2_sum_after", "The same sum over what is left of T."),
    [M2PO_M2_BEFORE] = SELECTION("m2_before", "Mean squared log-ratio over T before dropping."),
    [M2PO_M2_AFTER] = SELECTION("m2_after", "The same mean over what is left of T."),
    [M2PO_MASKED_FRACTION] = METRIC(SELECTION, RATIO, "masked_fraction", M2PO_MASKED_TOKENS,
                                    M2PO_VALID_TOKENS, "Dropped tokens per valid token."),
    [M2PO_TRUST_REGION_FRACTION] =
        METRIC(SELECTION, RATIO, "trust_region_fraction", M2PO_TRUST_REGION_TOKENS,
               M2PO_VALID_TOKENS, "Constrained tokens per valid token."),
    [M2PO_TOKENS] = SUM("tokens", "Valid tokens evaluated, dropped ones included."),
    [M2PO_RATIO_SUM] = SUM("ratio_sum", "Sum of importance ratios over the valid tokens."),
    [M2PO_K1_SUM] = SUM("k1_sum", "Sum of minus the log-ratio over the valid tokens, in nats."),
    [M2PO_K3_SUM] = SUM("k3_sum", "Sum of ratio - 1 - log-ratio over the valid tokens, in nats."),
    [M2PO_CLIPPED_TOKENS] =
        SUM("clipped_tokens", "Kept tokens whose gradient the surrogate's clip sets to 0."),
    [M2PO_LOG_RATIO_CLIPPED_TOKENS] =
        SUM("log_ratio_clipped_tokens", "Valid tokens whose log-ratio is beyond log_ratio_clip."),
    [M2PO_LOG_RATIO_ABS_MAX] = METRIC(EVALUATE, MAX, "log_ratio_abs_max", 0, 0,
                                      "Largest absolute log-ratio of a valid token, unclamped."),
    [M2PO_RATIO_MAX] =
        METRIC(EVALUATE, MAX, "ratio_max", 0, 0, "Largest importance ratio of a valid token."),
    [M2PO_RATIO_MIN] =
        METRIC(EVALUATE, MIN, "ratio_min", 0, 0, "Smallest importance ratio of a valid token."),
    [M2PO_RATIO_MEAN] = METRIC(EVALUATE, RATIO, "ratio_mean", M2PO_RATIO_SUM, M2PO_TOKENS,
                               "Mean importance ratio."),
    [M2PO_PPO_KL] = METRIC(EVALUATE, RATIO, "ppo_kl", M2PO_K1_SUM, M2PO_TOKENS,
                           "KL divergence from the behavior policy, k1 estimate, in nats."),
    [M2PO_K3_KL] = METRIC(EVALUATE, RATIO, "k3_kl", M2PO_K3_SUM, M2PO_TOKENS,
                          "The same, k3 estimate, in nats."),
    [M2PO_CLIP_FRACTION] = METRIC(EVALUATE, RATIO, "clip_fraction", M2PO_CLIPPED_TOKENS,
                                  M2PO_TOKENS, "Clipped tokens per valid token."),
};

int32_t m2po_metrics_check(const double *metrics, int64_t count, const char *name, rft_error *error)
{
  if (metrics != NULL && count < M2PO_METRIC_COUNT) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected metric_count of at least %d, found %" PRId64, name,
                    M2PO_METRIC_COUNT, count);
  }
  return RFT_OK;
}
