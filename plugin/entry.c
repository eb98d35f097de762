// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The plugin's tables, and its one exported function.

#include "embedded.h"
#include "fused.h"
#include "instance.h"
#include "loss.h"
#include "metrics.h"
#include "select.h"
#include "support/error.h"
#include "support/structs.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

#define M2PO_VERSION "1.0.0"

static int32_t create(const rft_policy_loss *loss, const rft_host *host, const char *config,
                      int64_t config_length, rft_instance **instance, rft_error *error)
{
  (void)loss;
  rft_instance *const made = calloc(1, sizeof *made);
  if (made == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "m2po: out of memory in create");
  }
  made->parallel = host->get_service(host, RFT_HOST_PARALLEL);
  const rft_log *const log = host->get_service(host, RFT_HOST_LOG);
  int32_t code = m2po_config_parse(config, config_length, log, &made->config, error);
  if (code == RFT_OK) {
    code = m2po_choose_target(&made->kernels, error);
  }
  if (code != RFT_OK) {
    free(made);
    return code;
  }
  *instance = made;
  return RFT_OK;
}

static void destroy(rft_instance *instance)
{
  free(instance);
}

static const rft_policy_loss m2po_loss = {
    .struct_size = RFT_STRUCT_SIZE(rft_policy_loss, evaluate),
    .capabilities = RFT_LOSS_COLLECTIVES | RFT_LOSS_PROXIMAL,
    .name = "m2po",
    .description = "Second-moment trust-region policy optimization (arXiv 2510.01161): drops, per "
                   "optimizer batch, the tokens whose squared log-ratio breaks a budget.",
    .config_schema = m2po_embedded_config_schema,
    .metrics = m2po_metrics,
    .metric_count = M2PO_METRIC_COUNT,
    .create = create,
    .destroy = destroy,
    .selection_begin = m2po_selection_begin,
    .selection_add = m2po_selection_add,
    .selection_finish = m2po_selection_finish,
    .selection_mask = m2po_selection_mask,
    .selection_end = m2po_selection_end,
    .evaluate = m2po_evaluate,
};

#define PRESET(preset, text)                                                                       \
  (&(const rft_algorithm_preset){.struct_size = RFT_STRUCT_SIZE(rft_algorithm_preset, document),   \
                                 .name = #preset,                                                  \
                                 .description = (text),                                            \
                                 .document = m2po_embedded_preset_##preset})

static const rft_policy_loss *const losses[] = {&m2po_loss};

static const rft_algorithm_preset *const presets[] = {
    PRESET(m2po, "M2PO as in the paper: no critic, no reference model, no KL."),
    PRESET(m2po_areal, "The masking rule built into AReaL, to move a run without changing it."),
    PRESET(grpo, "GRPO's clipped surrogate without a selection: the baseline."),
};

static const rft_one_pass one_pass = {
    .struct_size = RFT_STRUCT_SIZE(rft_one_pass, select_evaluate),
    .evaluate = m2po_evaluate_once,
    .select_evaluate = m2po_select_evaluate,
};

static const void *get_extension(const char *id)
{
  return strcmp(id, RFT_PLUGIN_ONE_PASS) == 0 ? &one_pass : NULL;
}

static const rft_plugin plugin = {
    .struct_size = RFT_STRUCT_SIZE(rft_plugin, get_extension),
    .abi_minor = RFT_ABI_MINOR,
    .id = "org.m2po.plugin",
    .version = M2PO_VERSION,
    .description = "The M2PO policy loss and its algorithm presets.",
    .policy_losses = losses,
    .policy_loss_count = sizeof losses / sizeof losses[0],
    .algorithm_presets = presets,
    .algorithm_preset_count = sizeof presets / sizeof presets[0],
    .get_extension = get_extension,
};

int32_t rft_plugin_entry_v1(const rft_host *host, const rft_plugin **tables, rft_error *error)
{
  const int32_t code =
      rft_check_table(host, RFT_STRUCT_SIZE(rft_host, get_service), "rft_host", error);
  if (code == RFT_OK) {
    *tables = &plugin;
  }
  return code;
}
