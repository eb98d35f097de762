// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "inspect_warnings.h"

#include "cli.h"
#include "inspect_shift.h"
#include "support/phrase.h"

#include <inttypes.h>
#include <math.h>

// Root mean square of the log-ratios at staleness 0. Weights rounded to bfloat16 give 0.01; this is
// a KL divergence of about 0.001, where different policies are meant.
#define MOST_DISAGREEMENT 0.05

static void warn(json_t *warnings, const char *code, const char *format, ...) RFT_PRINTF(3, 4);

static void warn(json_t *warnings, const char *code, const char *format, ...)
{
  char message[2 * RFT_ERROR_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  json_array_append_new(warnings,
                        json_pack("{s:s, s:o}", "code", code, "message", cli_json_string(message)));
}

static void check_masked(const inspect_batch *batch, const inspect_effect *effect, json_t *warnings)
{
  const double fraction = inspect_fraction(effect->masked_tokens, batch->valid_tokens);
  if (fraction > INSPECT_MUCH_MASKED) {
    warn(warnings, "masked_much",
         "%s masks %.1f %% of the valid tokens, more than %.0f %%: the batch is too stale for this "
         "threshold, or the log-probs are not of the policies that they should be of",
         effect->name, 100 * fraction, 100 * INSPECT_MUCH_MASKED);
  }
}

static double root_mean_square(const inspect_batch *batch, const double *log_ratio)
{
  double squares = 0;
  for (int64_t i = 0; i < batch->positions; ++i) {
    squares += log_ratio[i] * log_ratio[i];
  }
  return batch->valid_tokens == 0 ? 0 : sqrt(squares / (double)batch->valid_tokens);
}

static void check_same(const inspect_batch *batch, const char *name, const double *log_ratio,
                       json_t *warnings)
{
  if (log_ratio != NULL && batch->staleness > 0 && batch->valid_tokens > 0 &&
      root_mean_square(batch, log_ratio) == 0) {
    warn(warnings, "same_logprobs",
         "%s equals old_logprob at every valid token, so m2 is exactly 0, yet the batch is said to "
         "be %" PRId64 " updates stale: both come from the same policy",
         name, batch->staleness);
  }
}

static void check_disagreement(const inspect_batch *batch, json_t *warnings)
{
  const double disagreement = root_mean_square(batch, batch->log_ratio);
  if (batch->staleness == 0 && disagreement > MOST_DISAGREEMENT) {
    warn(warnings, "logprobs_disagree",
         "at staleness 0 the log-probs of sampling and training differ by %.3g (root mean square), "
         "more than the %.2g that rounding explains: look for another temperature, other weights, "
         "or tokens that don't line up",
         disagreement, MOST_DISAGREEMENT);
  }
}

static void check_shift(const inspect_batch *batch, json_t *warnings)
{
  const inspect_shift shift = inspect_shift_find(batch);
  if (shift.by != 0) {
    warn(warnings, "mask_shifted",
         "the mask looks shifted by one: it ends one position %s, say %" PRId64 " of %" PRId64
         " %s",
         shift.by > 0 ? "late" : "early, unless end markers are left out on purpose", shift.votes,
         shift.asked, shift.evidence);
  }
}

json_t *inspect_warnings(const inspect_batch *batch, const inspect_effect *effects, int count)
{
  json_t *const warnings = json_array();
  for (int i = 0; i < count; ++i) {
    check_masked(batch, &effects[i], warnings);
  }
  check_same(batch, "logprob", batch->log_ratio, warnings);
  check_same(batch, "proximal_logprob", batch->proximal_log_ratio, warnings);
  check_disagreement(batch, warnings);
  check_shift(batch, warnings);
  if (batch->text_fault != NULL) {
    warn(warnings, "token_text_unused", "the metadata's token_text is not used: %s",
         batch->text_fault);
  }
  return warnings;
}
