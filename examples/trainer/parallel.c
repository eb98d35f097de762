// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "parallel.h"

const rft_parallel *parallel_service(const rft_host *host)
{
  return host->get_service == NULL ? NULL : host->get_service(host, RFT_HOST_PARALLEL);
}

void parallel_run(const rft_parallel *service, int64_t count,
                  void (*body)(void *context, int64_t i), void *context)
{
  if (service != NULL) {
    service->parallel_for(service, count, body, context);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    body(context, i);
  }
}

int64_t parallel_split(int64_t total, int64_t blocks, int64_t i)
{
  return total * i / blocks;
}
