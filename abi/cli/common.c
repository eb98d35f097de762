// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "cli.h"
#include "support/json.h"
#include "support/system_error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cli_fail(const rft_error *error)
{
  fprintf(stderr, "rft: %s\n", error->message);
  return CLI_FAILED;
}

int cli_finish(int code)
{
  if (fflush(stdout) == 0 && !ferror(stdout)) {
    return code;
  }
  char words[RFT_SYSTEM_ERROR_SIZE];
  fprintf(stderr, "rft: cannot write standard output: %s\n", rft_system_error(words, errno));
  return CLI_FAILED;
}

int cli_print_json(json_t *value)
{
  char *text = NULL;
  rft_error error = {.struct_size = sizeof error};
  if (rft_json_take_text(value, 2, &text, &error) != RFT_OK) {
    return cli_fail(&error);
  }
  puts(text);
  free(text);
  return CLI_OK;
}

json_t *cli_json_number(double value)
{
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *cli_json_string(const char *text)
{
  json_t *value = json_string(text);
  char *const ascii = value == NULL ? strdup(text) : NULL;
  if (ascii != NULL) {
    for (char *c = ascii; *c != '\0'; ++c) {
      if ((unsigned char)*c >= 0x80U) {
        *c = '?';
      }
    }
    value = json_string(ascii);
    free(ascii);
  }
  return value;
}

void *cli_allocate(size_t count, size_t size)
{
  void *const memory = calloc(count == 0 ? 1 : count, size);
  if (memory == NULL) {
    fputs("rft: out of memory\n", stderr);
    _Exit(CLI_FAILED);
  }
  return memory;
}

static void print_warning(void *context, int32_t level, const char *message)
{
  (void)context;
  if (level >= RFT_LOG_WARNING) {
    fprintf(stderr, "rft: %s: %s\n", level == RFT_LOG_WARNING ? "warning" : "error", message);
  }
}

// Enough for a slow disk; a plugin does nothing while it is loaded.
enum { PROBE_TIMEOUT_MS = 10000 };

int32_t cli_open_registry(const char *directory, int32_t threads, bool warn,
                          rft_registry **registry, rft_error *error)
{
  const rft_registry_options options = {
      .struct_size = RFT_STRUCT_SIZE(rft_registry_options, reserved),
      .threads = threads,
      .name = "rft",
      .log = warn ? print_warning : NULL,
      .probe_timeout_ms = PROBE_TIMEOUT_MS,
  };
  rft_registry *made = NULL;
  int32_t code = rft_registry_create(&options, &made, error);
  if (code == RFT_OK) {
    code = directory == NULL ? rft_registry_scan_default(made, error)
                             : rft_registry_scan(made, directory, error);
  }
  if (code != RFT_OK) {
    rft_registry_destroy(made);
    return code;
  }
  *registry = made;
  return RFT_OK;
}
