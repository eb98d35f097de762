// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "registry.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 1024 };

// The caller's options with later fields zero (P2). A field that this version doesn't know may only
// be zero (P3).
static int32_t read_options(const rft_registry_options *given, rft_registry_options *options,
                            rft_error *error)
{
  *options = (rft_registry_options){.struct_size = sizeof *options};
  if (given == NULL) {
    return RFT_OK;
  }
  const unsigned char *const bytes = (const unsigned char *)given;
  for (size_t i = sizeof *options; i < given->struct_size; ++i) {
    if (bytes[i] != 0) {
      return rft_fail(
          error, RFT_UNIMPLEMENTED,
          "rft_registry_options: byte %zu is set, in a field that librft_host " RFT_HOST_VERSION
          " does not know",
          i);
    }
  }
  const size_t size = given->struct_size < sizeof *options ? given->struct_size : sizeof *options;
  memcpy(options, given, size);
  if (size < sizeof given->struct_size || options->threads < 0 || options->threads > MOST_THREADS) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "rft_registry_options: expected a struct_size of at least 4 and 0 to %d "
                    "threads, found a struct_size of %u and %d threads",
                    MOST_THREADS, given->struct_size, options->threads);
  }
  if (options->probe_timeout_ms < 0 || options->reserved != 0) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "rft_registry_options: expected probe_timeout_ms >= 0 and reserved 0, found "
                    "%d and %u",
                    options->probe_timeout_ms, options->reserved);
  }
  return RFT_OK;
}

static int32_t fill(rft_registry *registry, const rft_registry_options *options, rft_error *error)
{
  registry->name = strdup(options->name == NULL ? "librft_host" : options->name);
  registry->version = strdup(options->version == NULL ? RFT_HOST_VERSION : options->version);
  if (registry->name == NULL || registry->version == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for a registry");
  }
  registry->log_sink = options->log;
  registry->log_context = options->log_context;
  registry->probe_timeout_ms = options->probe_timeout_ms;
  rft_services_init(registry, options->threads);
  return options->threads < 2 ? RFT_OK
                              : rft_pool_create(options->threads - 1, &registry->pool, error);
}

int32_t rft_registry_create(const rft_registry_options *options, rft_registry **registry,
                            rft_error *error)
{
  rft_registry_options known;
  int32_t code = read_options(options, &known, error);
  if (code != RFT_OK) {
    return code;
  }
  rft_registry *const made = calloc(1, sizeof *made);
  if (made == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "out of memory for a registry");
  }
  code = fill(made, &known, error);
  if (code != RFT_OK) {
    rft_registry_destroy(made);
    return code;
  }
  *registry = made;
  return RFT_OK;
}

void rft_registry_destroy(rft_registry *registry)
{
  if (registry == NULL) {
    return;
  }
  rft_pool_destroy(registry->pool);
  for (int64_t i = 0; i < registry->loaded_count; ++i) {
    free(registry->loaded[i].path);
  }
  for (int64_t i = 0; i < registry->refusal_count; ++i) {
    free((char *)registry->refusals[i]->path);
    free((char *)registry->refusals[i]->reason);
    free(registry->refusals[i]);
  }
  free(registry->loaded);
  free(registry->refusals);
  free(registry->name);
  free(registry->version);
  free(registry);
}

int64_t rft_registry_plugin_count(const rft_registry *registry)
{
  return registry->loaded_count;
}

const rft_plugin *rft_registry_plugin(const rft_registry *registry, int64_t index)
{
  return registry->loaded[index].plugin;
}

const char *rft_registry_plugin_path(const rft_registry *registry, int64_t index)
{
  return registry->loaded[index].path;
}

int64_t rft_registry_refusal_count(const rft_registry *registry)
{
  return registry->refusal_count;
}

const rft_refusal *rft_registry_refusal(const rft_registry *registry, int64_t index)
{
  return registry->refusals[index];
}

static bool has_loss(const rft_plugin *plugin, const rft_policy_loss *loss)
{
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    if (plugin->policy_losses[i] == loss) {
      return true;
    }
  }
  return false;
}

const rft_one_pass *rft_registry_one_pass(const rft_registry *registry, const rft_policy_loss *loss)
{
  for (int64_t i = 0; i < registry->loaded_count; ++i) {
    const rft_plugin *const plugin = registry->loaded[i].plugin;
    if (has_loss(plugin, loss)) {
      return plugin->get_extension(RFT_PLUGIN_ONE_PASS);
    }
  }
  return NULL;
}

const rft_host *rft_registry_host(const rft_registry *registry)
{
  return &registry->host;
}
