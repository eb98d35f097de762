// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Ties an instance to the thread that made it.
// fails: threads_come_and_go

#include "base.h"

#include <pthread.h>

static pthread_key_t key;
static bool has_key;

static void forget(void *instance)
{
  ((rft_instance *)instance)->weight = (double)NAN;
}

static int32_t create_wrongly(CREATE_PARAMETERS)
{
  const int32_t code = create(CREATE_ARGUMENTS);
  has_key = has_key || pthread_key_create(&key, forget) == 0;
  if (code == RFT_OK) {
    pthread_setspecific(key, *instance);
  }
  return code;
}

static void destroy_carefully(rft_instance *instance)
{
  pthread_setspecific(key, NULL);
  destroy(instance);
}

SPOIL(fixture.create = create_wrongly; fixture.destroy = destroy_carefully)
