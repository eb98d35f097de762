// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft list: what was loaded, and what was refused.

#include "cli.h"
#include "support/json.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: rft list [DIR] [--plugins DIR] [--json]\n"
    "\n"
    "Loads every plugin of a directory and prints what each offers, then every file that was\n"
    "refused, with the reason, and what can't be had because an earlier plugin has the name.\n"
    "\n"
    "  --plugins DIR  the same as DIR; default: the directories of RFT_PLUGIN_PATH, and where "
    "that\n"
    "                 is not set the installed one\n"
    "  --json         an object with the lists \"plugins\", \"refused\" and \"hidden\"\n"
    "\n"
    "Exit codes: 0 all were loaded, 1 the directory can't be scanned, 2 wrong command line,\n"
    "3 a file was refused.\n";

// ---------------------------------------------------------------------------------------- hidden

// A name that an earlier plugin has.
typedef struct hidden_name {
  const char *kind;
  const char *name;
  const char *path;
} hidden_name;

// Calls `body` for each (H1).
static void each_hidden(const rft_registry *registry,
                        void (*body)(void *context, const hidden_name *hidden), void *context)
{
  for (int64_t i = 0; i < rft_registry_plugin_count(registry); ++i) {
    const rft_plugin *const plugin = rft_registry_plugin(registry, i);
    const char *const path = rft_registry_plugin_path(registry, i);
    for (int64_t j = 0; j < plugin->policy_loss_count; ++j) {
      const rft_policy_loss *first = NULL;
      rft_registry_find_policy_loss(registry, plugin->policy_losses[j]->name, &first, NULL);
      if (first != plugin->policy_losses[j]) {
        body(context, &(hidden_name){"policy loss", plugin->policy_losses[j]->name, path});
      }
    }
    for (int64_t j = 0; j < plugin->algorithm_preset_count; ++j) {
      const rft_algorithm_preset *first = NULL;
      rft_registry_find_algorithm_preset(registry, plugin->algorithm_presets[j]->name, &first,
                                         NULL);
      if (first != plugin->algorithm_presets[j]) {
        body(context, &(hidden_name){"algorithm preset", plugin->algorithm_presets[j]->name, path});
      }
    }
  }
}

// -------------------------------------------------------------------------------------------- JSON

static json_t *metric_json(const rft_metric *metric)
{
  static const char *const combine[] = {"none", "sum", "max", "min", "ratio"};
  return json_pack("{s:o, s:o, s:s, s:s}", "name", cli_json_string(metric->name), "description",
                   cli_json_string(metric->description), "phase",
                   metric->phase == RFT_METRIC_SELECTION ? "selection" : "evaluate", "combine",
                   combine[metric->combine]);
}

static json_t *loss_json(const rft_policy_loss *loss)
{
  json_t *const metrics = json_array();
  for (int64_t i = 0; i < loss->metric_count; ++i) {
    json_array_append_new(metrics, metric_json(loss->metrics[i]));
  }
  return json_pack("{s:o, s:o, s:b, s:b, s:b, s:o}", "name", cli_json_string(loss->name),
                   "description", cli_json_string(loss->description), "selects",
                   loss->selection_begin != NULL, "collectives",
                   (loss->capabilities & RFT_LOSS_COLLECTIVES) != 0, "proximal",
                   (loss->capabilities & RFT_LOSS_PROXIMAL) != 0, "metrics", metrics);
}

static json_t *preset_json(const rft_algorithm_preset *preset)
{
  return json_pack("{s:o, s:o}", "name", cli_json_string(preset->name), "description",
                   cli_json_string(preset->description));
}

static json_t *plugin_json(const rft_plugin *plugin, const char *path)
{
  json_t *const losses = json_array();
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    json_array_append_new(losses, loss_json(plugin->policy_losses[i]));
  }
  json_t *const presets = json_array();
  for (int64_t i = 0; i < plugin->algorithm_preset_count; ++i) {
    json_array_append_new(presets, preset_json(plugin->algorithm_presets[i]));
  }
  char abi[32];
  snprintf(abi, sizeof abi, "%d.%" PRIu32, RFT_ABI_MAJOR, plugin->abi_minor);
  return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "id", cli_json_string(plugin->id),
                   "version", cli_json_string(plugin->version), "abi", abi, "path",
                   cli_json_string(path), "description", cli_json_string(plugin->description),
                   "policy_losses", losses, "algorithm_presets", presets);
}

static json_t *refusal_json(const rft_refusal *refusal)
{
  return json_pack("{s:o, s:s, s:o}", "path", cli_json_string(refusal->path), "code",
                   rft_code_name(refusal->code), "reason", cli_json_string(refusal->reason));
}

static void append_hidden(void *context, const hidden_name *hidden)
{
  json_array_append_new(context, json_pack("{s:s, s:o, s:o}", "kind", hidden->kind, "name",
                                           cli_json_string(hidden->name), "path",
                                           cli_json_string(hidden->path)));
}

static int print_json(const rft_registry *registry)
{
  json_t *const plugins = json_array();
  for (int64_t i = 0; i < rft_registry_plugin_count(registry); ++i) {
    json_array_append_new(plugins, plugin_json(rft_registry_plugin(registry, i),
                                               rft_registry_plugin_path(registry, i)));
  }
  json_t *const refused = json_array();
  for (int64_t i = 0; i < rft_registry_refusal_count(registry); ++i) {
    json_array_append_new(refused, refusal_json(rft_registry_refusal(registry, i)));
  }
  json_t *const hidden = json_array();
  each_hidden(registry, append_hidden, hidden);
  return cli_print_json(
      json_pack("{s:o, s:o, s:o}", "plugins", plugins, "refused", refused, "hidden", hidden));
}

// -------------------------------------------------------------------------------------------- text

static void print_plugin(const rft_plugin *plugin, const char *path)
{
  const cli_row heading = {{"KIND", "NAME", "DESCRIPTION"}};
  const int64_t count = plugin->policy_loss_count + plugin->algorithm_preset_count;
  cli_row *const rows = cli_allocate((size_t)count, sizeof *rows);
  int used = 0;
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    const rft_policy_loss *const loss = plugin->policy_losses[i];
    rows[used++] = (cli_row){{"policy loss", loss->name, loss->description}};
  }
  for (int64_t i = 0; i < plugin->algorithm_preset_count; ++i) {
    const rft_algorithm_preset *const preset = plugin->algorithm_presets[i];
    rows[used++] = (cli_row){{"preset", preset->name, preset->description}};
  }
  printf("%s %s, ABI %d.%" PRIu32 "\n", plugin->id, plugin->version, RFT_ABI_MAJOR,
         plugin->abi_minor);
  cli_print_wrapped(plugin->description, 2);
  printf("  %s\n\n", path);
  cli_print_table(3, &heading, rows, used, 2);
  putchar('\n');
  free(rows);
}

static void print_hidden(void *context, const hidden_name *hidden)
{
  (void)context;
  printf("hidden %s %s of %s\n", hidden->kind, hidden->name, hidden->path);
  cli_print_wrapped("An earlier plugin has one of this name.", 2);
}

static int print_text(const rft_registry *registry)
{
  const int64_t plugins = rft_registry_plugin_count(registry);
  const int64_t refusals = rft_registry_refusal_count(registry);
  for (int64_t i = 0; i < plugins; ++i) {
    print_plugin(rft_registry_plugin(registry, i), rft_registry_plugin_path(registry, i));
  }
  for (int64_t i = 0; i < refusals; ++i) {
    const rft_refusal *const refusal = rft_registry_refusal(registry, i);
    printf("refused %s\n", refusal->path);
    cli_print_wrapped(refusal->reason, 2);
  }
  each_hidden(registry, print_hidden, NULL);
  printf("%s%" PRId64 " loaded, %" PRId64 " refused\n", refusals > 0 ? "\n" : "", plugins,
         refusals);
  return CLI_OK;
}

int cli_list(int argc, char **argv)
{
  cli_lookup lookup;
  int code = cli_parse_lookup(HELP, 0, argc, argv, &lookup);
  if (code != CLI_OK) {
    return code;
  }
  if (lookup.name != NULL && lookup.plugins != NULL) {
    fputs("rft list: DIR and --plugins mean the same; give one\n", stderr);
    return CLI_USAGE;
  }
  rft_error error = {.struct_size = sizeof error};
  rft_registry *registry = NULL;
  if (cli_open_registry(lookup.name != NULL ? lookup.name : lookup.plugins, 1, false, &registry,
                        &error) != RFT_OK) {
    return cli_fail(&error);
  }
  code = lookup.json ? print_json(registry) : print_text(registry);
  if (code == CLI_OK && rft_registry_refusal_count(registry) > 0) {
    code = CLI_REFUSED;
  }
  rft_registry_destroy(registry);
  return code;
}
