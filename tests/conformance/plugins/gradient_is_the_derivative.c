// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a gradient that is a thousandth too large.
// fails: gradient_is_the_derivative

#include "base.h"

static rft_token_term of_token_wrongly(const void *context, const rft_token *token, double *sums)
{
  rft_token_term term = of_token(context, token, sums);
  term.slope *= 1.001;
  return term;
}

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  return rft_evaluate_token_mean(of_token_wrongly, instance, 1, batch, mask, reduction, output,
                                 error);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
