// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft inspect: what policy losses do to the tokens of a recorded batch.

#include "cli.h"
#include "inspect_plots.h"
#include "inspect_warnings.h"
#include "support/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: rft inspect BATCH.safetensors [--loss LOSS | --preset NAME[,NAME...]]\n"
    "                   [--config JSON|@FILE] [--staleness K] [--top N] [--plots DIR]\n"
    "                   [--plugins DIR] [--json]\n"
    "\n"
    "Shows what policy losses do to a batch, side by side: which tokens are masked and clipped, "
    "m2\n"
    "(the mean squared log-ratio of the trust region) before and after, the cut (the smallest\n"
    "log-ratio that is masked), how the ratios are spread, and which tokens and sequences lost\n"
    "most, with their texts where the file's metadata holds token_text, a JSON array of rows of\n"
    "strings. The file is one that rft evaluate reads.\n"
    "\n"
    "  --loss LOSS      the policy loss; default: the only one that the plugins have\n"
    "  --preset NAMES   one to 8 algorithm presets, with commas between\n"
    "  --config JSON    the loss's config, or what replaces each preset's; @FILE reads it there\n"
    "  --staleness K    how many updates old the batch is; default: what the metadata's staleness\n"
    "                   says, where that is a whole number\n"
    "  --top N          tokens, texts and sequences to list, of each; default 5\n"
    "  --plots DIR      draws log-ratios, masked-along and threshold-sweep (.svg, .png; gnuplot\n"
    "                   draws) and tokens.html, the batch as tokens with the lost ones marked;\n"
    "                   all of them appear, each whole, or none\n"
    "  --plugins DIR    where the plugins are; default: the directories of RFT_PLUGIN_PATH, and\n"
    "                   where that is not set the installed one\n"
    "  --json           one object: batch, effects (one a preset, with the points of the plots),\n"
    "                   warnings, files\n"
    "\n"
    "Warns when\n"
    "  masked_much        more than 20 % of the valid tokens are masked\n"
    "  same_logprobs      m2 is exactly 0 in a batch said to be stale\n"
    "  logprobs_disagree  at staleness 0 the log-ratio's root mean square is above 0.05, more "
    "than\n"
    "                     rounding explains\n"
    "  mask_shifted       the mask ends one position beside the padding or the end markers\n"
    "  token_text_unused  token_text doesn't fit the batch\n"
    "\n"
    "Exit codes: 0 done, warnings or not, 1 failed, 2 wrong command line.\n";

enum { MOST_LISTED = 1000000, DEFAULT_LISTED = 5 };

typedef struct arguments {
  const char *batch;
  const char *loss;
  const char *preset_names;
  const char *config;
  const char *staleness_text;
  const char *top_text;
  const char *plots;
  const char *plugins;
  bool json;
  int64_t staleness;
  int64_t top;
  char *presets[INSPECT_MOST_EFFECTS]; // NULL in the first: none are named
  int count;                           // of effects
} arguments;

// --------------------------------------------------------------------------------------------- run

static int report_on(const arguments *given, inspect_report *report)
{
  rft_error error = {.struct_size = sizeof error};
  json_t *files = NULL;
  if (given->plots != NULL && inspect_plots_write(given->plots, report, &files, &error) != RFT_OK) {
    return cli_fail(&error);
  }
  report->files = files;
  const int code = given->json ? inspect_print_json(report) : inspect_print_text(report);
  json_decref(files);
  return code;
}

static int tell(const arguments *given, const inspect_batch *batch, const inspect_effect *effects)
{
  inspect_losses losses[INSPECT_MOST_EFFECTS];
  json_t *const warnings = inspect_warnings(batch, effects, given->count);
  inspect_report report = {.batch = batch,
                           .effects = effects,
                           .losses = losses,
                           .count = given->count,
                           .warnings = warnings};
  for (int i = 0; i < given->count; ++i) {
    inspect_losses_find(batch, &effects[i], given->top, &losses[i]);
  }
  const int code = report_on(given, &report);
  for (int i = 0; i < given->count; ++i) {
    inspect_losses_free(&losses[i]);
  }
  json_decref(warnings);
  return code;
}

static int inspect_with(const arguments *given, const rft_registry *registry,
                        const inspect_batch *batch)
{
  rft_error error = {.struct_size = sizeof error};
  inspect_effect effects[INSPECT_MOST_EFFECTS];
  int ran = 0;
  int32_t result = RFT_OK;
  while (result == RFT_OK && ran < given->count) {
    result = inspect_effect_run(registry, given->loss, given->presets[ran], given->config, batch,
                                &effects[ran], &error);
    ++ran;
  }
  const int code = result == RFT_OK ? tell(given, batch, effects) : cli_fail(&error);
  while (ran > 0) {
    inspect_effect_free(&effects[--ran]);
  }
  return code;
}

static int inspect(const arguments *given, const rft_registry *registry)
{
  rft_error error = {.struct_size = sizeof error};
  cli_batch source;
  inspect_batch batch;
  if (cli_batch_open(given->batch, &source, &error) != RFT_OK) {
    return cli_fail(&error);
  }
  const int code = inspect_batch_read(&source, given->staleness, &batch, &error) == RFT_OK
                       ? inspect_with(given, registry, &batch)
                       : cli_fail(&error);
  inspect_batch_free(&batch);
  cli_batch_close(&source);
  return code;
}

// ------------------------------------------------------------------------------------ command line

static int fail_presets(const arguments *given, const char *problem)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  fprintf(stderr,
          "rft inspect: --preset: expected one to %d names with commas between, found %s%s\n",
          INSPECT_MOST_EFFECTS, rft_json_quote(quoted, given->preset_names), problem);
  return CLI_USAGE;
}

static int split_presets(arguments *given)
{
  const char *rest = given->preset_names;
  given->count = rest == NULL;
  while (rest != NULL) {
    const size_t length = strcspn(rest, ",");
    if (length == 0) {
      return fail_presets(given, ", with an empty name");
    }
    if (given->count == INSPECT_MOST_EFFECTS) {
      return fail_presets(given, ", with more");
    }
    char *const name = cli_allocate(length + 1, 1);
    memcpy(name, rest, length);
    given->presets[given->count++] = name;
    for (int i = 0; i < given->count - 1; ++i) {
      if (strcmp(given->presets[i], name) == 0) {
        return fail_presets(given, ", with a name twice");
      }
    }
    rest = rest[length] == ',' ? rest + length + 1 : NULL;
  }
  return CLI_OK;
}

static int parse(int argc, char **argv, arguments *given)
{
  const cli_option options[] = {{.name = "loss", .value = &given->loss},
                                {.name = "preset", .value = &given->preset_names},
                                {.name = "config", .value = &given->config},
                                {.name = "staleness", .value = &given->staleness_text},
                                {.name = "top", .value = &given->top_text},
                                {.name = "plots", .value = &given->plots},
                                {.name = "plugins", .value = &given->plugins},
                                {.name = "json", .flag = &given->json}};
  const cli_grammar grammar = {.help = HELP,
                               .options = options,
                               .option_count = sizeof options / sizeof options[0],
                               .operands = &given->batch,
                               .operand_count = 1,
                               .required = 1};
  const int code = cli_parse(&grammar, argc, argv);
  if (code != CLI_OK) {
    return code;
  }
  if (given->loss != NULL && given->preset_names != NULL) {
    fputs("rft inspect: --preset names the policy loss; give it or --loss\n", stderr);
    return CLI_USAGE;
  }
  given->staleness = INSPECT_STALENESS_UNKNOWN;
  given->top = DEFAULT_LISTED;
  const bool staleness_ok =
      given->staleness_text == NULL ||
      cli_whole_number("--staleness", given->staleness_text, 0, INT32_MAX, &given->staleness);
  const bool top_ok = given->top_text == NULL ||
                      cli_whole_number("--top", given->top_text, 0, MOST_LISTED, &given->top);
  return staleness_ok && top_ok ? split_presets(given) : CLI_USAGE;
}

int cli_inspect(int argc, char **argv)
{
  arguments given = {.batch = NULL};
  int code = parse(argc, argv, &given);
  if (code == CLI_OK) {
    rft_error error = {.struct_size = sizeof error};
    rft_registry *registry = NULL;
    // One thread: batches that a person looks at are small.
    code = cli_open_registry(given.plugins, 1, true, &registry, &error) == RFT_OK
               ? inspect(&given, registry)
               : cli_fail(&error);
    rft_registry_destroy(registry);
  }
  for (int i = 0; i < INSPECT_MOST_EFFECTS; ++i) {
    free(given.presets[i]);
  }
  return code;
}
