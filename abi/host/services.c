// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What the host offers to plugins (P16).

#include "registry.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void write_log(const rft_log *log, int32_t level, const char *message)
{
  const rft_registry *const registry = log->host->host_data;
  registry->log_sink(registry->log_context, level, message);
}

static void parallel_for(const rft_parallel *parallel, int64_t count,
                         void (*body)(void *context, int64_t i), void *context)
{
  const rft_registry *const registry = parallel->host->host_data;
  rft_pool_run(registry->pool, count, body, context);
}

static const void *get_service(const rft_host *host, const char *id)
{
  const rft_registry *const registry = host->host_data;
  if (strcmp(id, RFT_HOST_LOG) == 0) {
    return registry->log_sink == NULL ? NULL : &registry->log;
  }
  if (strcmp(id, RFT_HOST_PARALLEL) == 0) {
    return registry->pool == NULL ? NULL : &registry->parallel;
  }
  return NULL;
}

void rft_services_init(rft_registry *registry, int32_t threads)
{
  registry->host = (rft_host){
      .struct_size = RFT_STRUCT_SIZE(rft_host, get_service),
      .abi_minor = RFT_ABI_MINOR,
      .name = registry->name,
      .version = registry->version,
      .host_data = registry,
      .get_service = get_service,
  };
  registry->log = (rft_log){
      .struct_size = RFT_STRUCT_SIZE(rft_log, write),
      .host = &registry->host,
      .write = write_log,
  };
  registry->parallel = (rft_parallel){
      .struct_size = RFT_STRUCT_SIZE(rft_parallel, parallel_for),
      .threads = threads,
      .host = &registry->host,
      .parallel_for = parallel_for,
  };
}

void rft_registry_log(const rft_registry *registry, int32_t level, const char *format, ...)
{
  if (registry->log_sink == NULL) {
    return;
  }
  char message[2 * RFT_ERROR_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  registry->log_sink(registry->log_context, level, message);
}
