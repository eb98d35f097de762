// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft-train: the command.

#include "command.h"

#include "config_fields.h"
#include "rft/host.h"
#include "support/error.h"
#include "support/json.h"
#include "train.h"

#include <cblas.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  EXIT_DONE = 0,
  EXIT_FAILED = 1,
  EXIT_USAGE = 2,
  EXIT_INTERRUPTED = 130 // what a shell reports for a process that SIGINT ended
};

// Flags that set one config key.
typedef struct key_flag {
  const char *flag;
  const char *path;
  bool literal; // its value is a string, whatever it looks like
} key_flag;

static const key_flag key_flags[] = {
    {"--plugins", "plugins_dir", true},
    {"--algorithm", "algorithm.algorithm_type", true},
    {"--updates", "trainer.updates", false},
    {"--seed", "trainer.seed", false},
    {"--threads", "trainer.threads", false},
    {"--mode", "rollout.mode", true},
    {"--staleness", "rollout.staleness", false},
    {"--warm-start", "warm_start.file", true},
    {"--log", "output.log", true},
    {"--checkpoint", "output.checkpoint", true},
    {"--record", "output.record", true},
    {"--record-update", "output.record_update", false},
};
enum { KEY_FLAGS = sizeof key_flags / sizeof key_flags[0] };

typedef struct options {
  const char *config;
  config_override *overrides; // [count]
  int64_t count;
  bool resume;
  bool quiet;
  bool help;
  bool version;
} options;

// ------------------------------------------------------------------------------------------- help

static void print_field(const config_field *field)
{
  char name[64];
  char number[RFT_NUMBER_TEXT_SIZE];
  const char *value = field->text == NULL ? "null" : field->text;
  if (field->kind <= FIELD_INTEGER) {
    snprintf(number, sizeof number, "%.0f", field->number);
    value = number;
  } else if (field->kind <= FIELD_FRACTION) {
    value = rft_number_text(number, field->number);
  }
  snprintf(name, sizeof name, "%s%s%s", field->section, field->section[0] == '\0' ? "" : ".",
           field->key);
  printf("  %-32s %-8s %s\n", name, value, field->describe);
}

static void print_help(void)
{
  printf("usage: rft-train CONFIG [FLAG...]\n"
         "\n"
         "Trains a small policy on addition with a policy loss from a plugin. CONFIG is YAML or "
         "JSON.\n"
         "\n"
         "  --set KEY=VALUE  set a config key: --set trainer.updates=100\n"
         "  --resume         go on from the checkpoint, where the run was\n"
         "  --quiet          only warnings and errors on standard error\n"
         "  --help, --version\n"
         "\n"
         "Short for --set:\n");
  for (int i = 0; i < KEY_FLAGS; ++i) {
    printf("  %-16s %s\n", key_flags[i].flag, key_flags[i].path);
  }
  printf("\nConfig keys and their defaults:\n");
  for (int64_t i = 0; i < config_field_count; ++i) {
    print_field(&config_fields[i]);
  }
  printf("\nExit codes:\n"
         "  0    done\n"
         "  1    it could not be done; standard error says why\n"
         "  2    the command line is wrong\n"
         "  130  interrupted by SIGINT or SIGTERM; saved, where a checkpoint is named\n");
}

// ------------------------------------------------------------------------------------------ flags

static int32_t add_override(options *self, const char *path, const char *value, bool literal)
{
  self->overrides[self->count++] = (config_override){path, value, literal};
  return RFT_OK;
}

// KEY=VALUE, cut in place.
static int32_t add_set(options *self, char *text, rft_error *error)
{
  char *const equals = strchr(text, '=');
  if (equals == NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "--set %s: expected KEY=VALUE", text);
  }
  *equals = '\0';
  return add_override(self, text, equals + 1, false);
}

static int32_t read_flag(options *self, char **argument, int *used, rft_error *error)
{
  char *const flag = argument[0];
  char *const value = argument[1];
  *used = 1;
  bool *const toggle = strcmp(flag, "--resume") == 0    ? &self->resume
                       : strcmp(flag, "--quiet") == 0   ? &self->quiet
                       : strcmp(flag, "--help") == 0    ? &self->help
                       : strcmp(flag, "--version") == 0 ? &self->version
                                                        : NULL;
  if (toggle != NULL) {
    *toggle = true;
    return RFT_OK;
  }
  const key_flag *key = NULL;
  for (int i = 0; i < KEY_FLAGS && key == NULL; ++i) {
    key = strcmp(flag, key_flags[i].flag) == 0 ? &key_flags[i] : NULL;
  }
  if (key == NULL && strcmp(flag, "--set") != 0) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "flag %s is not known: see --help", flag);
  }
  if (value == NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "flag %s: a value is missing", flag);
  }
  *used = 2;
  return key == NULL ? add_set(self, value, error)
                     : add_override(self, key->path, value, key->literal);
}

static int32_t read_options(options *self, int count, char **arguments, rft_error *error)
{
  int32_t code = RFT_OK;
  int used = 1;
  for (int i = 1; code == RFT_OK && i < count; i += used) {
    used = 1;
    if (arguments[i][0] == '-') {
      code = read_flag(self, arguments + i, &used, error);
    } else if (self->config == NULL) {
      self->config = arguments[i];
    } else {
      code = rft_fail(error, RFT_INVALID_ARGUMENT, "expected one config file, found another: %s",
                      arguments[i]);
    }
  }
  if (code == RFT_OK && self->config == NULL && !self->help && !self->version) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT, "a config file is missing: see --help");
  }
  return code;
}

// ---------------------------------------------------------------------------------------- signals

static volatile sig_atomic_t stop; // NOLINT(*-non-const-global-variables): set by a signal

static void on_signal(int signal_number)
{
  (void)signal_number;
  stop = 1;
}

// The first signal asks for a save after the update under way; a second one ends the process.
static void catch_signals(void)
{
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

// ------------------------------------------------------------------------------------------- main

static void print_result(const train_config *config, const train_result *result)
{
  char rollouts[64];
  if (config_is_async(config)) {
    snprintf(rollouts, sizeof rollouts, "async, mean staleness %.1f", result->staleness);
  } else {
    snprintf(rollouts, sizeof rollouts, "staleness %lld", (long long)config->staleness);
  }
  printf("%s, %s: held-out accuracy %.3f after %lld updates, %.1f s\n", config->algorithm_type,
         rollouts, result->accuracy, (long long)result->update, result->seconds);
}

// What works in one process only.
static int32_t check_group(const train_config *config, const train_group *group, rft_error *error)
{
  const char *const alone = config_is_async(config)      ? "rollout.mode async"
                            : config->checkpoint != NULL ? "output.checkpoint"
                            : config->record != NULL     ? "output.record"
                                                         : NULL;
  if (group->size > 1 && alone != NULL) {
    return rft_fail(error, RFT_UNIMPLEMENTED, "%s: expected one process, found %lld", alone,
                    (long long)group->size);
  }
  if (config->prompts < group->size) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "trainer.prompts: expected one or more for each of %lld processes, found %lld",
                    (long long)group->size, (long long)config->prompts);
  }
  return RFT_OK;
}

static int32_t load(const options *chosen, const train_group *group, train_config *config,
                    rft_error *error)
{
  const int32_t code = config_load(chosen->config, chosen->overrides, chosen->count, config, error);
  if (code != RFT_OK) {
    return code;
  }
  if (chosen->resume && config->checkpoint == NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "--resume: no checkpoint is named: see --checkpoint");
  }
  if (config->threads == 0 && group->size > 1) { // the processes share the CPUs
    const int64_t threads = sysconf(_SC_NPROCESSORS_ONLN) / group->size;
    config->threads = threads > 0 ? threads : 1;
  }
  return check_group(config, group, error);
}

static int32_t run(const options *chosen, const train_group *group, train_config *config,
                   rft_error *error)
{
  train_progress progress;
  train_result result;
  int32_t code = group->agree(group, load(chosen, group, config, error), error);
  if (code != RFT_OK) {
    return code;
  }
  // The trainer splits its work itself, so that no bit depends on the number of threads.
  openblas_set_num_threads(1);
  catch_signals();
  progress_open(&progress, chosen->quiet || group->rank != 0);
  code = train(config, chosen->resume, group, &progress, &stop, &result, error);
  progress_close(&progress);
  if (code == RFT_OK && group->rank == 0) {
    print_result(config, &result);
  }
  return code;
}

static void complain(const train_group *group, const rft_error *error)
{
  if (group->rank == 0) {
    fprintf(stderr, "rft-train: %s\n", error->message);
  }
}

static int status_of(int32_t code, const train_group *group, const rft_error *error)
{
  if (code == RFT_OK) {
    return EXIT_DONE;
  }
  complain(group, error);
  return code == RFT_CANCELLED ? EXIT_INTERRUPTED : EXIT_FAILED;
}

int train_command(int count, char **arguments, const train_group *group)
{
  rft_error error = {.struct_size = sizeof error};
  options chosen = {.overrides = calloc((size_t)count + 1, sizeof(config_override))};
  train_config config = {0};
  int status = EXIT_DONE;

  if (chosen.overrides == NULL || read_options(&chosen, count, arguments, &error) != RFT_OK) {
    complain(group, &error);
    status = EXIT_USAGE;
  } else if (!chosen.help && !chosen.version) {
    status = status_of(run(&chosen, group, &config, &error), group, &error);
  } else if (group->rank == 0) {
    chosen.help ? print_help() : (void)printf("rft-train %s\n", RFT_HOST_VERSION);
  }
  config_free(&config);
  free(chosen.overrides);
  return status;
}
