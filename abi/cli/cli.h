// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What the subcommands of `rft` share.

#ifndef RFT_CLI_H
#define RFT_CLI_H

#include "rft/host.h"

#include <jansson.h>
#include <stdbool.h>

/// Exit codes.
enum {
  CLI_OK = 0,
  CLI_FAILED = 1,  ///< what was asked for could not be done
  CLI_USAGE = 2,   ///< the command line is wrong
  CLI_REFUSED = 3, ///< `list` refused a file
  CLI_HELP = -1    ///< not an exit code: help was asked for and printed
};

/// The subcommands; argv[0] is the command's name.
int cli_list(int argc, char **argv);
int cli_schema(int argc, char **argv);
int cli_preset(int argc, char **argv);
int cli_evaluate(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_check(int argc, char **argv);

/// cli_evaluate on every rank of a group (or NULL), with the same arguments. Rank 0 reads, writes
/// and speaks for all, but for the rows of each rank. [collective]
struct cli_group;
int cli_evaluate_together(int argc, char **argv, const struct cli_group *group);

// ------------------------------------------------------------------------------------ command line

/// An option: exactly one of `value` and `flag` is set, and says where it is stored.
typedef struct cli_option {
  const char *name; ///< without "--"
  char letter;      ///< 0: it has none
  const char **value;
  bool *flag;
} cli_option;

/// A command line's grammar. `help`: its whole help text.
typedef struct cli_grammar {
  const char *help;
  const cli_option *options;
  int option_count;
  const char **operands; ///< [operand_count], NULL where absent
  int operand_count;     ///< at most
  int required;          ///< of these
} cli_grammar;

/// CLI_OK, CLI_USAGE with a message on standard error, or CLI_HELP.
int cli_parse(const cli_grammar *grammar, int argc, char **argv);

/// The command line of a command that looks at plugins: [NAME] [--plugins DIR] [--json].
typedef struct cli_lookup {
  const char *name;    ///< NULL where absent
  const char *plugins; ///< likewise
  bool json;
} cli_lookup;

/// cli_parse of such a command line. `required`: 1 where NAME is.
int cli_parse_lookup(const char *help, int required, int argc, char **argv, cli_lookup *lookup);

/// Reads a whole number in [least, most]; on failure says so and gives false.
bool cli_whole_number(const char *option, const char *text, int64_t least, int64_t most,
                      int64_t *number);

// ---------------------------------------------------------------------------------------- messages

/// Prints "rft: " and the message, and gives CLI_FAILED.
int cli_fail(const rft_error *error);

/// Flushes standard output; CLI_FAILED with a message when what was printed didn't get out.
int cli_finish(int code);

/// Prints JSON on standard output, and frees `value`.
int cli_print_json(json_t *value);

/// A JSON number, or null where `value` is not finite.
json_t *cli_json_number(double value);

/// A JSON string; bytes above ASCII become '?' where the text is not UTF-8, as file names may be.
json_t *cli_json_string(const char *text);

/// Zeroed memory. Ends the program with CLI_FAILED when there is none.
void *cli_allocate(size_t count, size_t size);

// ---------------------------------------------------------------------------------------- registry

/// Makes a registry with `threads` threads and scans `directory`, or where that is NULL the default
/// ones. `warn`: warnings, refused files among them, go to standard error.
int32_t cli_open_registry(const char *directory, int32_t threads, bool warn,
                          rft_registry **registry, rft_error *error);

#endif // RFT_CLI_H
