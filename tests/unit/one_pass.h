// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// select_evaluate of the extension "rft.plugin.one_pass/1", and the separate calls that it stands
// for, as one call with the same arguments.

#ifndef TEST_ONE_PASS_H
#define TEST_ONE_PASS_H

#include "outcome.h"

const rft_one_pass *one_pass(void);

/// The arguments. `new_call` makes outputs whose every value is known.
typedef struct one_pass_call {
  const rft_instance *instance;
  const rft_batch *batch;
  const rft_collectives *collectives; ///< or NULL
  double scale;
  const rft_tensor *mask;
  rft_selection_report report;
  rft_output output;
  int32_t code; ///< of the call, once it is made
  rft_error error;
} one_pass_call;

/// A call for a compact uint8 mask and a compact gradient.
one_pass_call new_call(const rft_instance *instance, const rft_batch *batch, rft_dtype gradient);

/// The same for outputs of other layouts.
one_pass_call new_call_into(const rft_instance *instance, const rft_batch *batch,
                            const rft_tensor *mask, const rft_tensor *gradient);

void call_at_once(one_pass_call *call);
void call_separately(one_pass_call *call);

/// The largest difference between the losses, relative to the sum of the sizes of their terms.
typedef enum loss_closeness {
  LOSS_AVERAGES, ///< roundings of terms that differ average out
  LOSS_ADDS_UP   ///< they may be the same for all terms
} loss_closeness;

/// Asserts that both have succeeded, with the same bits in everything but the loss.
void check_same_call(const char *what, const one_pass_call *at_once, const one_pass_call *separate,
                     loss_closeness closeness);

/// Makes a call not ask for any.
void want_no_metrics(one_pass_call *call);

/// Makes both calls, at once with metrics and without, and compares them.
void check_call(const char *what, const rft_instance *instance, const rft_batch *batch,
                loss_closeness closeness);

/// Asserts that both have failed, alike, and that report, loss and metrics are as they were.
void check_same_failure(const char *what, const one_pass_call *at_once,
                        const one_pass_call *separate);
void check_untouched(const char *what, const one_pass_call *call);

#endif // TEST_ONE_PASS_H
