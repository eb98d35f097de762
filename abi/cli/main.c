// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The `rft` command: what is installed, what it accepts, and what it computes.

#include "cli.h"
#include "support/json.h"
#include "support/schema.h"

#include <stdio.h>
#include <string.h>

static const char HELP[] =
    "usage: rft COMMAND [OPTIONS]\n"
    "\n"
    "  list [DIR]        plugins with their losses and presets, and every file refused\n"
    "  schema LOSS       what a policy loss can be configured with\n"
    "  preset NAME       the document of an algorithm preset, every setting spelt out\n"
    "  evaluate BATCH    loss, mask and gradient of a recorded batch\n"
    "  inspect BATCH     which tokens losses mask, why, and what is odd about a batch; plots\n"
    "  check PLUGIN.so   whether a plugin keeps the rules\n"
    "\n"
    "Options of every command:\n"
    "  --plugins DIR     where the plugins are; default: the directories of RFT_PLUGIN_PATH, and\n"
    "                    where that is not set the installed one\n"
    "  --json            JSON on standard output\n"
    "  --help            more about the command\n"
    "\n"
    "Options of rft itself: --help, --version.\n"
    "\n"
    "Exit codes:\n"
    "  0  done\n"
    "  1  it could not be done; standard error says why\n"
    "  2  the command line is wrong\n"
    "  3  list: done, and a file was refused\n";

typedef struct command {
  const char *name;
  int (*run)(int argc, char **argv);
} command;

static const command COMMANDS[] = {{"list", cli_list},       {"schema", cli_schema},
                                   {"preset", cli_preset},   {"evaluate", cli_evaluate},
                                   {"inspect", cli_inspect}, {"check", cli_check}};
enum { COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0] };

static int fail_unknown(const char *name)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  json_t *const known = json_pack("{s:n, s:n}", "--help", "--version");
  for (int i = 0; i < COMMAND_COUNT; ++i) {
    json_object_set_new(known, COMMANDS[i].name, json_null());
  }
  const char *const nearest = rft_nearest_name(known, name);
  fprintf(stderr, "rft: command %s is not known", rft_json_quote(quoted, name));
  if (nearest != NULL) {
    fprintf(stderr, ": the nearest known one is %s\n", nearest);
  } else {
    fputs("; see rft --help\n", stderr);
  }
  json_decref(known);
  return CLI_USAGE;
}

int main(int argc, char **argv)
{
  if (argc < 2) {
    fputs(HELP, stderr);
    return CLI_USAGE;
  }
  if (strcmp(argv[1], "--help") == 0) {
    fputs(HELP, stdout);
    return cli_finish(CLI_OK);
  }
  if (strcmp(argv[1], "--version") == 0) {
    printf("rft %s, plugin ABI %d.%d\n", RFT_HOST_VERSION, RFT_ABI_MAJOR, RFT_ABI_MINOR);
    return cli_finish(CLI_OK);
  }
  for (int i = 0; i < COMMAND_COUNT; ++i) {
    if (strcmp(argv[1], COMMANDS[i].name) == 0) {
      const int code = COMMANDS[i].run(argc - 1, argv + 1);
      return cli_finish(code == CLI_HELP ? CLI_OK : code);
    }
  }
  return fail_unknown(argv[1]);
}
