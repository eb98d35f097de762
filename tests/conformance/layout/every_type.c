// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A function whose signature reaches every type of plugin.h and host.h, so that debug information
// describes them all: an ABI checker compares it with that of the last release.

#include "rft/host.h"
#include "rft/safetensors.h"

RFT_PLUGIN_EXPORT void rft_every_type(const rft_plugin *plugin, const rft_log *log,
                                      const rft_parallel *parallel,
                                      const rft_collectives *collectives, rft_plugin_entry entry,
                                      const rft_registry_options *options,
                                      const rft_refusal *refusal, const rft_named_tensor *tensor,
                                      const rft_one_pass *one_pass);

void rft_every_type(const rft_plugin *plugin, const rft_log *log, const rft_parallel *parallel,
                    const rft_collectives *collectives, rft_plugin_entry entry,
                    const rft_registry_options *options, const rft_refusal *refusal,
                    const rft_named_tensor *tensor, const rft_one_pass *one_pass)
{
  (void)plugin;
  (void)log;
  (void)parallel;
  (void)collectives;
  (void)entry;
  (void)options;
  (void)refusal;
  (void)tensor;
  (void)one_pass;
}
