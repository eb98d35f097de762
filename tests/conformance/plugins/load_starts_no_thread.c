// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Starts a thread when it is loaded.
// fails: load_starts_no_thread no_constructor no_forbidden_import

#include "base.h"

#include <pthread.h>
#include <unistd.h>

static void *wait_forever(void *argument)
{
  pause();
  return argument;
}

__attribute__((constructor)) static void construct(void)
{
  pthread_t thread;
  pthread_create(&thread, NULL, wait_forever, NULL);
}

ENTRY(enter)
