// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Starts a thread of its own.
// fails: use_starts_no_thread no_forbidden_import

#include "base.h"

#include <pthread.h>
#include <unistd.h>

static void *wait_forever(void *argument)
{
  pause();
  return argument;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  static bool done;
  if (!done) {
    done = true;
    pthread_t thread;
    pthread_create(&thread, NULL, wait_forever, NULL);
  }
  return create(CREATE_ARGUMENTS);
}

SPOIL(fixture.create = create_wrongly)
