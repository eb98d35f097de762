// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// An instance of the m2po policy loss: its config and the host services that it uses.

#ifndef M2PO_INSTANCE_H
#define M2PO_INSTANCE_H

#include "config.h"
#include "kernel.h"

struct rft_instance {
  m2po_config config;
  const m2po_kernels *kernels;  ///< for this processor
  const rft_parallel *parallel; ///< or NULL
};

/// How many bodies may run at once.
static inline int64_t m2po_threads(const rft_instance *instance)
{
  return instance->parallel == NULL ? 1 : instance->parallel->threads;
}

/// body(context, i) for each i in [0, count), on this thread.
static inline void m2po_serial_for(int64_t count, void (*body)(void *context, int64_t i),
                                   void *context)
{
  for (int64_t i = 0; i < count; ++i) {
    body(context, i);
  }
}

/// The same on the host's threads, where it lends some.
static inline void m2po_parallel_for(const rft_instance *instance, int64_t count,
                                     void (*body)(void *context, int64_t i), void *context)
{
  if (instance->parallel != NULL && count > 1) {
    instance->parallel->parallel_for(instance->parallel, count, body, context);
  } else {
    m2po_serial_for(count, body, context);
  }
}

#endif // M2PO_INSTANCE_H
