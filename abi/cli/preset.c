// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft preset: the document of an algorithm preset.

#include "cli.h"

#include <stdio.h>

static const char HELP[] =
    "usage: rft preset NAME [--plugins DIR] [--json]\n"
    "\n"
    "Prints the document of an algorithm preset, its policy loss's config completed with every\n"
    "default. A document is JSON, with --json or without.\n"
    "\n"
    "  --plugins DIR  where the plugins are; default: the directories of RFT_PLUGIN_PATH, and\n"
    "                 where that is not set the installed one\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 wrong command line.\n";

int cli_preset(int argc, char **argv)
{
  cli_lookup lookup;
  int code = cli_parse_lookup(HELP, 1, argc, argv, &lookup);
  if (code != CLI_OK) {
    return code;
  }
  rft_error error = {.struct_size = sizeof error};
  rft_registry *registry = NULL;
  char *document = NULL;
  if (cli_open_registry(lookup.plugins, 1, true, &registry, &error) != RFT_OK) {
    return cli_fail(&error);
  }
  if (rft_preset_resolve(registry, lookup.name, NULL, &document, &error) == RFT_OK) {
    puts(document);
  } else {
    code = cli_fail(&error);
  }
  rft_string_free(document);
  rft_registry_destroy(registry);
  return code;
}
