// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // posix_spawn_file_actions_addchdir_np

#include "inspect_plots.h"

#include "cli.h"
#include "support/error.h"
#include "support/system_error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT "plot.gp"
#define PAGE "tokens.html"
#define LOG "gnuplot.log"

static const char *const PLOTS[] = {"log-ratios.svg",
                                    "log-ratios.png",
                                    "masked-along.svg",
                                    "masked-along.png",
                                    "threshold-sweep.svg",
                                    "threshold-sweep.png",
                                    PAGE};
enum { PLOT_COUNT = sizeof PLOTS / sizeof PLOTS[0] };

// ----------------------------------------------------------------------------------------- folders

typedef struct workshop {
  const char *directory;    // where the files will be
  bool made;                // by us
  char path[PATH_MAX - 64]; // a folder in it, where they are made
} workshop;

static int32_t fail(const char *action, const char *path, int problem, rft_error *error)
{
  char words[RFT_SYSTEM_ERROR_SIZE];
  return rft_fail(error, problem == EACCES ? RFT_PERMISSION_DENIED : RFT_UNAVAILABLE,
                  "--plots: cannot %s %.300s: %s", action, path, rft_system_error(words, problem));
}

static int32_t open_workshop(const char *directory, workshop *shop, rft_error *error)
{
  *shop = (workshop){.directory = directory};
  const int length = snprintf(shop->path, sizeof shop->path, "%s/.rft-inspect-XXXXXX", directory);
  if (length >= (int)sizeof shop->path) {
    return fail("make", directory, ENAMETOOLONG, error);
  }
  shop->made = mkdir(directory, 0777) == 0;
  if (!shop->made && errno != EEXIST) {
    return fail("make", directory, errno, error);
  }
  if (mkdtemp(shop->path) == NULL) {
    const int problem = errno;
    if (shop->made) {
      rmdir(directory);
    }
    return fail("write to", directory, problem, error);
  }
  return RFT_OK;
}

static const char *path_in(char path[PATH_MAX], const char *directory, const char *name)
{
  snprintf(path, PATH_MAX, "%s/%s", directory, name);
  return path;
}

// `failed`: a directory that was made for the plots goes, too; it is empty.
static void close_workshop(const workshop *shop, bool failed)
{
  char path[PATH_MAX];
  for (int i = 0; i < PLOT_COUNT; ++i) {
    unlink(path_in(path, shop->path, PLOTS[i]));
  }
  unlink(path_in(path, shop->path, SCRIPT));
  unlink(path_in(path, shop->path, LOG));
  rmdir(shop->path);
  if (failed && shop->made) {
    rmdir(shop->directory);
  }
}

// ------------------------------------------------------------------------------------------- files

static int32_t write_file(const workshop *shop, const char *name, const inspect_report *report,
                          void (*write)(const inspect_report *, FILE *), rft_error *error)
{
  char path[PATH_MAX];
  FILE *const file = fopen(path_in(path, shop->path, name), "we");
  if (file == NULL) {
    return fail("write", path, errno, error);
  }
  write(report, file);
  const bool written = ferror(file) == 0;
  const bool closed = fclose(file) == 0;
  return written && closed ? RFT_OK : fail("write", path, errno, error);
}

// Flushes a file to disk and puts it in its place.
static int32_t deliver(const workshop *shop, const char *name, json_t *files, rft_error *error)
{
  char from[PATH_MAX];
  char to[PATH_MAX];
  const int descriptor = open(path_in(from, shop->path, name), O_RDONLY | O_CLOEXEC);
  const bool flushed = descriptor >= 0 && fsync(descriptor) == 0;
  const int problem = errno;
  if (descriptor >= 0) {
    close(descriptor);
  }
  path_in(to, shop->directory, name);
  if (!flushed) {
    return fail("flush", to, problem, error);
  }
  if (rename(from, to) != 0) {
    return fail("write", to, errno, error);
  }
  json_array_append_new(files, cli_json_string(to));
  return RFT_OK;
}

// ----------------------------------------------------------------------------------------- gnuplot

static int32_t fail_gnuplot(const workshop *shop, int status, rft_error *error)
{
  char path[PATH_MAX];
  char line[256] = "";
  FILE *const log = fopen(path_in(path, shop->path, LOG), "re");
  while (log != NULL && line[strspn(line, " \n^")] == '\0' &&
         fgets(line, sizeof line, log) != NULL) {
  }
  if (log != NULL) {
    (void)fclose(log);
  }
  line[strcspn(line, "\n")] = '\0';
  return rft_fail(error, RFT_UNAVAILABLE, "--plots: gnuplot ended with status %d: %s",
                  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                  line[0] == '\0' ? "it said nothing" : line);
}

static int start_gnuplot(const workshop *shop, pid_t *child)
{
  static const char *const ARGUMENTS[] = {"gnuplot", "--default-settings", SCRIPT, NULL};
  posix_spawn_file_actions_t actions;
  int problem = posix_spawn_file_actions_init(&actions);
  if (problem != 0) {
    return problem;
  }
  problem = posix_spawn_file_actions_addchdir_np(&actions, shop->path);
  if (problem == 0) {
    problem = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  if (problem == 0) {
    problem = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, LOG,
                                               O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  if (problem == 0) {
    problem = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  if (problem == 0) {
    problem = posix_spawnp(child, ARGUMENTS[0], &actions, NULL, (char *const *)ARGUMENTS, environ);
  }
  posix_spawn_file_actions_destroy(&actions);
  return problem;
}

static int32_t run_gnuplot(const workshop *shop, rft_error *error)
{
  pid_t child = 0;
  const int problem = start_gnuplot(shop, &child);
  if (problem != 0) {
    char words[RFT_SYSTEM_ERROR_SIZE];
    return rft_fail(error, RFT_UNAVAILABLE,
                    "--plots: cannot run gnuplot, which draws them (package gnuplot-nox): %s",
                    rft_system_error(words, problem));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0 ? RFT_OK : fail_gnuplot(shop, status, error);
}

// ------------------------------------------------------------------------------------------- write

int32_t inspect_plots_write(const char *directory, const inspect_report *report, json_t **files,
                            rft_error *error)
{
  workshop shop;
  int32_t code = open_workshop(directory, &shop, error);
  if (code != RFT_OK) {
    return code;
  }
  json_t *const delivered = json_array();
  code = write_file(&shop, SCRIPT, report, inspect_script_write, error);
  if (code == RFT_OK) {
    code = run_gnuplot(&shop, error);
  }
  if (code == RFT_OK) {
    code = write_file(&shop, PAGE, report, inspect_page_write, error);
  }
  for (int i = 0; code == RFT_OK && i < PLOT_COUNT; ++i) {
    code = deliver(&shop, PLOTS[i], delivered, error);
  }
  close_workshop(&shop, code != RFT_OK);
  if (code == RFT_OK) {
    *files = delivered;
  } else {
    json_decref(delivered);
  }
  return code;
}
