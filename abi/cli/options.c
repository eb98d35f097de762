// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "cli.h"
#include "support/json.h"
#include "support/schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail_usage(const char *command, const char *problem, const char *what)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  fprintf(stderr, "rft %s: %s %s; see rft %s --help\n", command, problem,
          rft_json_quote(quoted, what), command);
  return CLI_USAGE;
}

static int fail_unknown(const cli_grammar *grammar, const char *command, const char *argument)
{
  char quoted[RFT_JSON_BRIEF_SIZE];
  json_t *const known = json_pack("{s:n}", "--help");
  for (int i = 0; i < grammar->option_count; ++i) {
    char name[64];
    snprintf(name, sizeof name, "--%s", grammar->options[i].name);
    json_object_set_new(known, name, json_null());
  }
  const char *const nearest = rft_nearest_name(known, argument);
  fprintf(stderr, "rft %s: option %s is not known", command, rft_json_quote(quoted, argument));
  if (nearest != NULL) {
    fprintf(stderr, ": the nearest known option is %s\n", nearest);
  } else {
    fprintf(stderr, "; see rft %s --help\n", command);
  }
  json_decref(known);
  return CLI_USAGE;
}

// The option that an argument names. `value`: what follows "=", or NULL.
static const cli_option *find_option(const cli_grammar *grammar, const char *argument,
                                     const char **value)
{
  const bool is_long = argument[1] == '-';
  const size_t length = strcspn(argument, "=");
  *value = is_long && argument[length] == '=' ? argument + length + 1 : NULL;
  for (int i = 0; i < grammar->option_count; ++i) {
    const cli_option *const option = &grammar->options[i];
    if (is_long ? length - 2 == strlen(option->name) &&
                      strncmp(argument + 2, option->name, length - 2) == 0
                : argument[1] == option->letter && argument[2] == '\0') {
      return option;
    }
  }
  return NULL;
}

// Stores one option; *index moves past a value of its own.
static int store_option(const cli_grammar *grammar, int argc, char **argv, int *index)
{
  const char *value = NULL;
  const cli_option *const option = find_option(grammar, argv[*index], &value);
  if (option == NULL) {
    return fail_unknown(grammar, argv[0], argv[*index]);
  }
  if (option->flag != NULL) {
    *option->flag = true;
    return value == NULL ? CLI_OK : fail_usage(argv[0], "no value is expected in", argv[*index]);
  }
  if (value == NULL && *index + 1 == argc) {
    return fail_usage(argv[0], "a value is missing after", argv[*index]);
  }
  if (*option->value != NULL) {
    return fail_usage(argv[0], "an option is given twice:", argv[*index]);
  }
  *option->value = value != NULL ? value : argv[++*index];
  return CLI_OK;
}

int cli_parse(const cli_grammar *grammar, int argc, char **argv)
{
  int operands = 0;
  bool options_end = false;
  for (int i = 1; i < argc; ++i) {
    const char *const argument = argv[i];
    int code = CLI_OK;
    if (!options_end && strcmp(argument, "--") == 0) {
      options_end = true;
    } else if (!options_end && strcmp(argument, "--help") == 0) {
      fputs(grammar->help, stdout);
      return CLI_HELP;
    } else if (!options_end && argument[0] == '-' && argument[1] != '\0') {
      code = store_option(grammar, argc, argv, &i);
    } else if (operands == grammar->operand_count) {
      code = fail_usage(argv[0], "one argument too many:", argument);
    } else {
      grammar->operands[operands++] = argument;
    }
    if (code != CLI_OK) {
      return code;
    }
  }
  if (operands < grammar->required) {
    fprintf(stderr, "rft %s: an argument is missing; see rft %s --help\n", argv[0], argv[0]);
    return CLI_USAGE;
  }
  return CLI_OK;
}

int cli_parse_lookup(const char *help, int required, int argc, char **argv, cli_lookup *lookup)
{
  *lookup = (cli_lookup){.name = NULL};
  const cli_option options[] = {{.name = "plugins", .value = &lookup->plugins},
                                {.name = "json", .flag = &lookup->json}};
  const cli_grammar grammar = {.help = help,
                               .options = options,
                               .option_count = 2,
                               .operands = &lookup->name,
                               .operand_count = 1,
                               .required = required};
  return cli_parse(&grammar, argc, argv);
}

bool cli_whole_number(const char *option, const char *text, int64_t least, int64_t most,
                      int64_t *number)
{
  char *end = NULL;
  errno = 0;
  const long long parsed = strtoll(text, &end, 10);
  const bool digits = text[0] >= '0' && text[0] <= '9';
  if (!digits || *end != '\0' || errno != 0 || parsed < least || parsed > most) {
    char quoted[RFT_JSON_BRIEF_SIZE];
    fprintf(stderr, "rft: %s: expected a whole number from %" PRId64 " to %" PRId64 ", found %s\n",
            option, least, most, rft_json_quote(quoted, text));
    return false;
  }
  *number = parsed;
  return true;
}
