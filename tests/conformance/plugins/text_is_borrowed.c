// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Looks into the config text when it evaluates.
// fails: text_is_borrowed

#include "base.h"

static const volatile char *kept_text;

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  kept_text = config;
  return create(CREATE_ARGUMENTS);
}

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  if (kept_text != NULL) {
    (void)*kept_text;
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly; fixture.create = create_wrongly)
