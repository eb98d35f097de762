// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft schema: what a policy loss can be configured with.

#include "cli.h"
#include "support/json.h"
#include "support/schema_phrase.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: rft schema LOSS [--plugins DIR] [--json]\n"
    "\n"
    "Prints the config schema of a policy loss: a table on a terminal, otherwise the JSON Schema.\n"
    "\n"
    "  --plugins DIR  where the plugins are; default: the directories of RFT_PLUGIN_PATH, and\n"
    "                 where that is not set the installed one\n"
    "  --json         the JSON Schema on a terminal too\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 wrong command line.\n";

// The texts of a row that the schema doesn't hold as they are shown.
typedef struct row_text {
  char *value;
  char *meaning;
} row_text;

static void fill_row(const char *key, const json_t *property, row_text *text, cli_row *row)
{
  char accepts[RFT_SCHEMA_PHRASE_SIZE];
  const char *const description = json_string_value(json_object_get(property, "description"));
  const size_t size = strlen(description) + sizeof accepts + 16;
  text->value = rft_json_text(json_object_get(property, "default"), 0);
  text->meaning = cli_allocate(size, 1);
  snprintf(text->meaning, size, "%s Accepts %s.", description,
           rft_schema_phrase(accepts, property));
  *row = (cli_row){{key, text->value == NULL ? "" : text->value, text->meaning}};
}

static void print_properties(const json_t *properties)
{
  const cli_row heading = {{"KEY", "DEFAULT", "MEANING"}};
  cli_row *const rows = cli_allocate(json_object_size(properties), sizeof *rows);
  row_text *const texts = cli_allocate(json_object_size(properties), sizeof *texts);
  int used = 0;
  const char *key = NULL;
  json_t *property = NULL;
  json_object_foreach((json_t *)properties, key, property)
  {
    fill_row(key, property, &texts[used], &rows[used]);
    ++used;
  }
  cli_print_table(3, &heading, rows, used, 0);
  for (int i = 0; i < used; ++i) {
    free(texts[i].value);
    free(texts[i].meaning);
  }
  free(texts);
  free(rows);
}

static int print_table(const rft_policy_loss *loss)
{
  json_t *schema = NULL;
  rft_error error = {.struct_size = sizeof error};
  if (rft_json_parse("config schema", loss->config_schema, (int64_t)strlen(loss->config_schema),
                     &schema, &error) != RFT_OK) {
    return cli_fail(&error);
  }
  printf("%s\n", loss->name);
  cli_print_wrapped(loss->description, 2);
  putchar('\n');
  print_properties(json_object_get(schema, "properties"));
  json_decref(schema);
  return CLI_OK;
}

// The plugin's own text, which may end its last line or not.
static void print_document(const char *text)
{
  const size_t length = strlen(text);
  fputs(text, stdout);
  if (length == 0 || text[length - 1] != '\n') {
    putchar('\n');
  }
}

int cli_schema(int argc, char **argv)
{
  cli_lookup lookup;
  int code = cli_parse_lookup(HELP, 1, argc, argv, &lookup);
  if (code != CLI_OK) {
    return code;
  }
  rft_error error = {.struct_size = sizeof error};
  rft_registry *registry = NULL;
  const rft_policy_loss *loss = NULL;
  if (cli_open_registry(lookup.plugins, 1, true, &registry, &error) != RFT_OK) {
    return cli_fail(&error);
  }
  if (rft_registry_find_policy_loss(registry, lookup.name, &loss, &error) != RFT_OK) {
    code = cli_fail(&error);
  } else if (lookup.json || !cli_on_terminal()) {
    print_document(loss->config_schema);
  } else {
    code = print_table(loss);
  }
  rft_registry_destroy(registry);
  return code;
}
