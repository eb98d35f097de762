// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft evaluate: a recorded batch through a policy loss.

#include "batch.h"
#include "cli.h"
#include "evaluation.h"
#include "group.h"
#include "subject.h"
#include "support/error.h"
#include "support/json.h"
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char HELP[] =
    "usage: rft evaluate BATCH.safetensors [--loss LOSS | --preset NAME] [--config JSON|@FILE]\n"
    "                    [--micro-batches K] [--threads T] [-o OUT.safetensors]\n"
    "                    [--plugins DIR] [--json]\n"
    "\n"
    "Treats a file as one optimizer batch: selects tokens over all of it, then prints loss, "
    "counts\n"
    "and metrics. The file holds the tensors logprob, old_logprob, advantages and mask, and may\n"
    "hold proximal_logprob and cu_seqlens; shapes and dtypes are those of rft/plugin.h.\n"
    "\n"
    "  --loss LOSS        the policy loss; default: the only one that the plugins have\n"
    "  --preset NAME      an algorithm preset: its policy loss and config, and proximal_logprob\n"
    "                     only where its rollouts have it\n"
    "  --config JSON      the loss's config, or what replaces the preset's; @FILE reads it there\n"
    "  --micro-batches K  splits the rows, or the packed sequences, into K parts; default 1.\n"
    "                     The mask does not depend on it\n"
    "  --threads T        default: the processors; no result depends on it\n"
    "  -o, --output FILE  writes mask (uint8, 1: kept) and gradient (float32, or float64 when\n"
    "                     logprob is), both of the shape of logprob; the file appears whole or\n"
    "                     not at all\n"
    "  --plugins DIR      where the plugins are; default: the directories of RFT_PLUGIN_PATH, and\n"
    "                     where that is not set the installed one\n"
    "  --json             one object: loss, metrics, config, policy_loss, preset, micro_batches,\n"
    "                     valid_tokens, kept_tokens, sequences\n"
    "\n"
    "Exit codes: 0 done, 1 failed, 2 wrong command line.\n";

enum { MOST_THREADS = 1024 };

typedef struct arguments {
  const char *batch;
  const char *loss;
  const char *preset;
  const char *config;
  const char *micro_batches_text;
  const char *threads_text;
  const char *output;
  const char *plugins;
  bool json;
  int64_t micro_batches;
  int64_t threads;
} arguments;

// ------------------------------------------------------------------------------------------ output

static int32_t write_output(const char *path, const cli_batch *batch,
                            const cli_evaluation *evaluation, rft_error *error)
{
  rft_tensor mask = *batch->logprob;
  mask.data = evaluation->mask;
  mask.dtype = (rft_dtype){RFT_DTYPE_UINT, 8, 1};
  rft_tensor gradient = *batch->logprob;
  gradient.data = evaluation->gradient;
  gradient.dtype = evaluation->gradient_dtype;
  const rft_named_tensor tensors[] = {{"mask", &mask}, {"gradient", &gradient}};
  return rft_safetensors_write(path, tensors, 2, NULL, error);
}

static json_t *ranks_json(const cli_evaluation *evaluation, const cli_group *group)
{
  json_t *const ranks = json_array();
  for (int64_t i = 0; i < cli_group_size(group); ++i) {
    const cli_traffic *const traffic = &evaluation->traffic[i];
    json_array_append_new(ranks,
                          json_pack("{s:I, s:I}", "reductions", (json_int_t)traffic->reductions,
                                    "bytes", (json_int_t)traffic->bytes));
  }
  return ranks;
}

static int print_json(const arguments *given, const cli_subject *subject,
                      const cli_evaluation *evaluation, const cli_group *group)
{
  json_t *config = NULL;
  rft_error error = {.struct_size = sizeof error};
  if (rft_json_parse("config", subject->config, (int64_t)strlen(subject->config), &config,
                     &error) != RFT_OK) {
    return cli_fail(&error);
  }
  json_t *const metrics = json_object();
  for (int64_t i = 0; i < subject->loss->metric_count; ++i) {
    json_object_set_new(metrics, subject->loss->metrics[i]->name,
                        cli_json_number(evaluation->metrics[i]));
  }
  json_t *const result = json_pack(
      "{s:o, s:I, s:I, s:I, s:o, s:o, s:s, s:s?, s:I}", "loss", cli_json_number(evaluation->loss),
      "valid_tokens", (json_int_t)evaluation->counts.valid_tokens, "kept_tokens",
      (json_int_t)evaluation->counts.kept_tokens, "sequences",
      (json_int_t)evaluation->counts.sequences, "metrics", metrics, "config", config, "policy_loss",
      subject->loss->name, "preset", given->preset, "micro_batches",
      (json_int_t)given->micro_batches);
  if (group != NULL) {
    json_object_set_new(result, "ranks", ranks_json(evaluation, group));
  }
  return cli_print_json(result);
}

static void print_counts(const cli_evaluation *evaluation)
{
  char number[RFT_NUMBER_TEXT_SIZE];
  printf("loss          %s\n", rft_number_text(number, evaluation->loss));
  printf("valid tokens  %" PRId64 "\n", evaluation->counts.valid_tokens);
  printf("kept tokens   %" PRId64 "\n", evaluation->counts.kept_tokens);
  printf("sequences     %" PRId64 "\n\n", evaluation->counts.sequences);
}

typedef struct number_text {
  char text[RFT_NUMBER_TEXT_SIZE];
} number_text;

static void print_ranks(const cli_evaluation *evaluation, const cli_group *group)
{
  for (int64_t i = 0; i < cli_group_size(group); ++i) {
    const cli_traffic *const traffic = &evaluation->traffic[i];
    printf("rank %-4" PRId64 " %2" PRId64 " reductions, %6" PRId64 " bytes\n", i,
           traffic->reductions, traffic->bytes);
  }
  putchar('\n');
}

static int print_text(const cli_subject *subject, const cli_evaluation *evaluation,
                      const cli_group *group)
{
  const cli_row heading = {{"METRIC", "VALUE", "MEANING"}};
  const rft_policy_loss *const loss = subject->loss;
  const size_t count = (size_t)loss->metric_count;
  cli_row *const rows = cli_allocate(count, sizeof *rows);
  number_text *const numbers = cli_allocate(count, sizeof *numbers);
  for (size_t i = 0; i < count; ++i) {
    rows[i] =
        (cli_row){{loss->metrics[i]->name, rft_number_text(numbers[i].text, evaluation->metrics[i]),
                   loss->metrics[i]->description}};
  }
  printf("%s\n", loss->name);
  cli_print_wrapped(subject->config, 2);
  putchar('\n');
  print_counts(evaluation);
  if (group != NULL) {
    print_ranks(evaluation, group);
  }
  cli_print_table(3, &heading, rows, (int)count, 0);
  free(numbers);
  free(rows);
  return CLI_OK;
}

// --------------------------------------------------------------------------------------------- run

static int report(const arguments *given, const cli_subject *subject, const cli_batch *batch,
                  const cli_evaluation *evaluation, const cli_group *group)
{
  rft_error error = {.struct_size = sizeof error};
  if (given->output != NULL && write_output(given->output, batch, evaluation, &error) != RFT_OK) {
    return cli_fail(&error);
  }
  return given->json ? print_json(given, subject, evaluation, group)
                     : print_text(subject, evaluation, group);
}

// What all ranks have failed at is told once.
static int fail(const cli_group *group, const rft_error *error)
{
  return cli_group_leads(group) ? cli_fail(error) : CLI_FAILED;
}

static int evaluate_batch(const arguments *given, const cli_subject *subject,
                          const cli_batch *batch, const cli_group *group)
{
  rft_error error = {.struct_size = sizeof error};
  cli_evaluation evaluation;
  const int32_t result =
      cli_evaluation_run(subject->loss, subject->one_pass, subject->instance, batch,
                         given->micro_batches, group, &evaluation, &error);
  if (result != RFT_OK) {
    return fail(group, &error);
  }
  const int code =
      cli_group_leads(group) ? report(given, subject, batch, &evaluation, group) : CLI_OK;
  cli_evaluation_free(&evaluation);
  return cli_group_agree(group, code, NULL);
}

static int evaluate(const arguments *given, const rft_registry *registry, const cli_group *group)
{
  rft_error error = {.struct_size = sizeof error};
  cli_subject subject = {.loss = NULL};
  cli_batch batch = {.path = NULL};
  int32_t result =
      cli_subject_open(registry, given->loss, given->preset, given->config, &subject, &error);
  if (result == RFT_OK) {
    result = cli_batch_open(given->batch, &batch, &error);
  }
  result = cli_group_agree(group, result, &error);
  const cli_batch of_preset = cli_subject_batch(&subject, &batch);
  const int code =
      result == RFT_OK ? evaluate_batch(given, &subject, &of_preset, group) : fail(group, &error);
  cli_batch_close(&batch);
  cli_subject_close(&subject);
  return code;
}

// The ranks share the processors.
static int64_t default_threads(const cli_group *group)
{
  const int64_t processors = sysconf(_SC_NPROCESSORS_ONLN) / cli_group_size(group);
  return processors < 1 ? 1 : processors > MOST_THREADS ? MOST_THREADS : processors;
}

static int parse(int argc, char **argv, const cli_group *group, arguments *given)
{
  const cli_option options[] = {{.name = "loss", .value = &given->loss},
                                {.name = "preset", .value = &given->preset},
                                {.name = "config", .value = &given->config},
                                {.name = "micro-batches", .value = &given->micro_batches_text},
                                {.name = "threads", .value = &given->threads_text},
                                {.name = "output", .letter = 'o', .value = &given->output},
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
  if (given->loss != NULL && given->preset != NULL) {
    fputs("rft evaluate: --preset names the policy loss; give it or --loss\n", stderr);
    return CLI_USAGE;
  }
  given->micro_batches = 1;
  given->threads = default_threads(group);
  const bool micro_batches_ok = given->micro_batches_text == NULL ||
                                cli_whole_number("--micro-batches", given->micro_batches_text, 1,
                                                 INT32_MAX, &given->micro_batches);
  const bool threads_ok =
      given->threads_text == NULL ||
      cli_whole_number("--threads", given->threads_text, 1, MOST_THREADS, &given->threads);
  return micro_batches_ok && threads_ok ? CLI_OK : CLI_USAGE;
}

int cli_evaluate_together(int argc, char **argv, const cli_group *group)
{
  arguments given = {.batch = NULL};
  const bool leads = cli_group_leads(group);
  // A wrong command line is told once: the other ranks read it when rank 0 has taken it.
  int code = cli_group_agree(group, leads ? parse(argc, argv, group, &given) : CLI_OK, NULL);
  if (code == CLI_OK && !leads) {
    code = parse(argc, argv, group, &given);
  }
  if (code != CLI_OK) {
    return code;
  }
  rft_error error = {.struct_size = sizeof error};
  rft_registry *registry = NULL;
  int32_t result =
      cli_open_registry(given.plugins, (int32_t)given.threads, leads, &registry, &error);
  result = cli_group_agree(group, result, &error);
  code = result == RFT_OK ? evaluate(&given, registry, group) : fail(group, &error);
  rft_registry_destroy(registry);
  return code;
}

int cli_evaluate(int argc, char **argv)
{
  return cli_evaluate_together(argc, argv, NULL);
}
