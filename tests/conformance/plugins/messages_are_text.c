// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Logs two lines in one message.
// fails: messages_are_text

#define _GNU_SOURCE // memmem

#include "base.h"

static bool mentions(const char *config, int64_t length, const char *text)
{
  return config != NULL && memmem(config, (size_t)length, text, strlen(text)) != NULL;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const rft_log *const log = host->get_service(host, RFT_HOST_LOG);
  if (log != NULL && mentions(config, config_length, "weight")) {
    log->write(log, RFT_LOG_INFO, "a weight\nis given");
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
