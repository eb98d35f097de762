// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft check: judges a plugin file by the rules of abi/README.md.

#include "cli.h"

#include "check/runner.h"
#include "support/error.h"
#include "support/system_error.h"

#include <errno.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char HELP[] =
    "usage: rft check PLUGIN.so [--only REGEX] [--seed N] [--timeout SECONDS] [--json]\n"
    "       rft check PLUGIN.so --in-process CHECK [--seed N]\n"
    "       rft check --list [--json]\n"
    "\n"
    "Judges a plugin by the rules of abi/README.md. Each check runs in a process of its own, so\n"
    "that a crash, a hang or an exit of the plugin is a verdict.\n"
    "\n"
    "  --only REGEX        the checks whose number and name, \"601 evaluates\", match (extended\n"
    "                      regular expression)\n"
    "  --list              what is checked, and by which rules; nothing is loaded\n"
    "  --in-process CHECK  one check, by number or name, in this process, for a debugger\n"
    "  --seed N            of random values; printed, so that a run can be repeated\n"
    "  --timeout SECONDS   for one check (10)\n"
    "  --json              an object with the list \"checks\"\n"
    "\n"
    "Exit codes: 0 every required check has passed, 1 one has not, 2 wrong command line.\n";

enum { LONGEST_TIMEOUT = 3600 };

typedef struct request {
  const char *path;
  const char *only;
  const char *seed;
  const char *timeout;
  const char *in_process;
  bool list;
  bool json;
} request;

// ---------------------------------------------------------------------------------------- the list

static void print_list(void)
{
  for (int i = 0; i < check_count(); ++i) {
    const check *const one = check_at(i);
    printf("%d %-33s %-16s %s%s\n", one->number, one->name, one->rules,
           one->required ? "" : "(advice) ", one->description);
  }
}

static json_t *describe(const check *one)
{
  return json_pack("{s:i, s:s, s:s, s:b, s:s}", "number", one->number, "name", one->name, "rules",
                   one->rules, "required", one->required, "description", one->description);
}

static int list_checks(bool json)
{
  if (!json) {
    print_list();
    return CLI_OK;
  }
  json_t *const checks = json_array();
  for (int i = 0; i < check_count(); ++i) {
    json_array_append_new(checks, describe(check_at(i)));
  }
  return cli_print_json(json_pack("{s:o}", "checks", checks));
}

// -------------------------------------------------------------------------------------- the report

typedef struct tally {
  int passed;
  int failed;  ///< required ones
  int advised; ///< failed, not required
  int skipped;
} tally;

static void count_result(const check *one, const check_result *result, tally *counts)
{
  counts->passed += result->status == CHECK_PASSED;
  counts->skipped += result->status == CHECK_SKIPPED;
  counts->failed += result->status == CHECK_FAILED && one->required;
  counts->advised += result->status == CHECK_FAILED && !one->required;
}

static const char *status_text(const check *one, const check_result *result)
{
  return result->status == CHECK_PASSED    ? "passed"
         : result->status == CHECK_SKIPPED ? "skipped"
         : one->required                   ? "FAILED"
                                           : "advice";
}

static const char *color_of(const check *one, const check_result *result)
{
  return result->status == CHECK_PASSED    ? "\033[32m"
         : result->status == CHECK_SKIPPED ? "\033[2m"
         : one->required                   ? "\033[1;31m"
                                           : "\033[33m";
}

static void print_result(const check *one, const check_result *result, bool color)
{
  printf("%d %-33s %s%s%s", one->number, one->name, color ? color_of(one, result) : "",
         status_text(one, result), color ? "\033[0m" : "");
  if (result->message[0] != '\0') {
    printf(": %s", result->message);
  }
  if (result->status == CHECK_FAILED) {
    printf(" [%s]", one->rules);
  }
  putchar('\n');
  (void)fflush(stdout);
}

static json_t *result_json(const check *one, const check_result *result)
{
  json_t *const object = describe(one);
  json_object_set_new(object, "status",
                      json_string(result->status == CHECK_PASSED    ? "passed"
                                  : result->status == CHECK_SKIPPED ? "skipped"
                                                                    : "failed"));
  json_object_set_new(object, "message", cli_json_string(result->message));
  json_object_set_new(object, "seconds", json_real(result->seconds));
  return object;
}

static int print_summary(const request *asked, const tally *counts)
{
  if (asked->json) {
    return CLI_OK;
  }
  printf("%d passed, %d failed, %d skipped", counts->passed, counts->failed, counts->skipped);
  if (counts->advised > 0) {
    printf(", %d advised", counts->advised);
  }
  putchar('\n');
  return CLI_OK;
}

// ----------------------------------------------------------------------------------------- the run

static bool is_chosen(const check *one, const regex_t *only)
{
  char label[128];
  snprintf(label, sizeof label, "%d %s", one->number, one->name);
  return only == NULL || regexec(only, label, 0, NULL, 0) == 0;
}

// What any check of the run has printed is the fault of prints_nothing.
static void judge_printing(check_runner *runner, check_result *result)
{
  for (int i = 0; i < check_count(); ++i) {
    if (runner->results[i].printed) {
      result->status = CHECK_FAILED;
      snprintf(result->message, sizeof result->message, "something was printed in check %d %s: %s",
               check_at(i)->number, check_at(i)->name, runner->results[i].line);
      return;
    }
  }
}

static int run_checks(const request *asked, check_runner *runner, const regex_t *only)
{
  tally counts = {0};
  json_t *const list = json_array();
  const bool color = isatty(STDOUT_FILENO) != 0;
  if (!asked->json) {
    printf("%s, seed %" PRIu64 "\n", runner->path, runner->seed);
  }
  for (int i = 0; i < check_count(); ++i) {
    const check *const one = check_at(i);
    if (!is_chosen(one, only)) {
      continue;
    }
    check_result *const result = &runner->results[i];
    check_runner_run(runner, i);
    if (strcmp(one->name, "prints_nothing") == 0 && result->status != CHECK_SKIPPED) {
      judge_printing(runner, result);
    }
    count_result(one, result, &counts);
    if (asked->json) {
      json_array_append_new(list, result_json(one, result));
    } else {
      print_result(one, result, color);
    }
  }
  if (asked->json) {
    cli_print_json(json_pack("{s:s, s:I, s:i, s:i, s:i, s:i, s:O}", "path", runner->path, "seed",
                             (json_int_t)runner->seed, "passed", counts.passed, "failed",
                             counts.failed, "skipped", counts.skipped, "advised", counts.advised,
                             "checks", list));
  } else {
    print_summary(asked, &counts);
  }
  json_decref(list);
  return counts.failed == 0 ? CLI_OK : CLI_FAILED;
}

static int run_chosen(const request *asked, check_runner *runner)
{
  regex_t only;
  if (asked->only == NULL) {
    return run_checks(asked, runner, NULL);
  }
  const int code = regcomp(&only, asked->only, REG_EXTENDED | REG_NOSUB);
  if (code != 0) {
    char why[128];
    regerror(code, &only, why, sizeof why);
    fprintf(stderr,
            "rft check: --only: expected an extended regular expression, found \"%s\": %s\n",
            asked->only, why);
    return CLI_USAGE;
  }
  const int result = run_checks(asked, runner, &only);
  regfree(&only);
  return result;
}

static int run_here(const request *asked, const check_runner *runner)
{
  for (int i = 0; i < check_count(); ++i) {
    if (check_at(i) == check_find(asked->in_process)) {
      check_runner_run_here(runner, i);
    }
  }
  fprintf(stderr, "rft check: no check is called \"%s\"; see rft check --list\n",
          asked->in_process);
  return CLI_USAGE;
}

static int check_plugin(const request *asked)
{
  int64_t seed = 0;
  int64_t timeout = 10;
  uint32_t drawn = 0;
  if (asked->seed == NULL) {
    const ssize_t got = getrandom(&drawn, sizeof drawn, 0);
    seed = got == (ssize_t)sizeof drawn ? drawn : 1;
  } else if (!cli_whole_number("--seed", asked->seed, 0, INT64_MAX, &seed)) {
    return CLI_USAGE;
  }
  if (asked->timeout != NULL &&
      !cli_whole_number("--timeout", asked->timeout, 1, LONGEST_TIMEOUT, &timeout)) {
    return CLI_USAGE;
  }
  char *const path = realpath(asked->path, NULL);
  if (path == NULL) {
    char words[RFT_SYSTEM_ERROR_SIZE];
    fprintf(stderr, "rft check: %s: %s\n", asked->path, rft_system_error(words, errno));
    return CLI_FAILED;
  }
  check_runner runner = {.path = path,
                         .seed = (uint64_t)seed,
                         .timeout_seconds = (int)timeout,
                         .results = cli_allocate((size_t)check_count(), sizeof(check_result))};
  const int code =
      asked->in_process != NULL ? run_here(asked, &runner) : run_chosen(asked, &runner);
  free(runner.results);
  free(path);
  return code;
}

int cli_check(int argc, char **argv)
{
  request asked = {.path = NULL};
  const cli_option options[] = {{.name = "only", .value = &asked.only},
                                {.name = "seed", .value = &asked.seed},
                                {.name = "timeout", .value = &asked.timeout},
                                {.name = "in-process", .value = &asked.in_process},
                                {.name = "list", .flag = &asked.list},
                                {.name = "json", .flag = &asked.json}};
  const cli_grammar grammar = {.help = HELP,
                               .options = options,
                               .option_count = sizeof options / sizeof options[0],
                               .operands = &asked.path,
                               .operand_count = 1};
  const int code = cli_parse(&grammar, argc, argv);
  if (code != CLI_OK) {
    return code;
  }
  if (asked.list) {
    return list_checks(asked.json);
  }
  if (asked.path == NULL) {
    fputs("rft check: expected a PLUGIN.so or --list; see rft check --help\n", stderr);
    return CLI_USAGE;
  }
  return check_plugin(&asked);
}
