// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // pipe2, sigdescr_np

#include "probe.h"

#include "dylib.h"
#include "support/system_error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// How far the child has come; it writes a byte for each stage that it has passed.
typedef enum probe_stage { CONSTRUCTORS, ENTRY, PASSED } probe_stage;

// ------------------------------------------------------------------------------------- the child

// Standard streams are the parent's, and so is the directory that a core file would appear in.
static void detach(void)
{
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int nowhere = open("/dev/null", O_RDWR);
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    dup2(nowhere, stream);
  }
}

static void pass_stage(int report)
{
  const char byte = 1;
  if (write(report, &byte, 1) != 1) {
    _exit(1);
  }
}

// Threads are not copied by fork, hence no services.
static void rehearse(rft_registry *registry, const char *real_path, int report)
{
  detach();
  registry->log_sink = NULL;
  registry->pool = NULL;
  rft_plugin_entry entry = NULL;
  const rft_plugin *plugin = NULL;
  const int32_t code = rft_dylib_entry(real_path, &entry, NULL);
  pass_stage(report);
  if (code == RFT_OK) {
    rft_negotiate(entry, &registry->host, &plugin, NULL);
  }
  pass_stage(report);
  _exit(0);
}

// ------------------------------------------------------------------------------------ the parent

static int64_t now_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Reads until the child has passed, has ended, or is late.
static probe_stage follow(int report, int64_t deadline, bool *late)
{
  int stage = CONSTRUCTORS;
  while (stage < PASSED) {
    const int64_t left = deadline - now_ms();
    struct pollfd waiting = {.fd = report, .events = POLLIN};
    const int ready = left > 0 ? poll(&waiting, 1, (int)left) : 0;
    if (ready == 0) {
      *late = true;
      break;
    }
    char byte;
    const ssize_t got = ready > 0 ? read(report, &byte, 1) : -1;
    if (got == 0) {
      break;
    }
    stage += got > 0 ? 1 : 0;
  }
  return (probe_stage)stage;
}

// `known`: false in a host that ignores SIGCHLD, where the status of a child is lost.
static int32_t fail_dead(const char *where, bool known, int status, rft_error *error)
{
  if (!known) {
    return rft_fail(error, RFT_INTERNAL, "tried in a child process, it crashes or exits in %s",
                    where);
  }
  if (WIFSIGNALED(status)) {
    const char *const name = sigdescr_np(WTERMSIG(status));
    return rft_fail(error, RFT_INTERNAL,
                    "tried in a child process, it crashes in %s: signal %d (%s)", where,
                    WTERMSIG(status), name == NULL ? "of no name" : name);
  }
  return rft_fail(error, RFT_INTERNAL,
                  "tried in a child process, it ends the process in %s: exit code %d", where,
                  WEXITSTATUS(status));
}

static int32_t judge(const rft_registry *registry, pid_t child, int report, rft_error *error)
{
  bool late = false;
  const probe_stage stage = follow(report, now_ms() + registry->probe_timeout_ms, &late);
  if (late) {
    kill(child, SIGKILL);
  }
  int status = 0;
  pid_t ended = -1;
  do {
    ended = waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  const char *const where =
      stage == CONSTRUCTORS ? "the dynamic loader or a constructor" : "its entry or its tables";
  if (late) {
    return rft_fail(error, RFT_DEADLINE_EXCEEDED,
                    "tried in a child process, it hangs in %s: no return within %d ms", where,
                    registry->probe_timeout_ms);
  }
  return stage == PASSED ? RFT_OK : fail_dead(where, ended == child, status, error);
}

static int32_t fail_system(int problem, rft_error *error)
{
  char words[RFT_SYSTEM_ERROR_SIZE];
  return rft_fail(error, RFT_UNAVAILABLE, "it cannot be tried in a child process: %s",
                  rft_system_error(words, problem));
}

int32_t rft_probe(rft_registry *registry, const char *real_path, rft_error *error)
{
  if (registry->probe_timeout_ms == 0) {
    return RFT_OK;
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return fail_system(errno, error);
  }
  const pid_t child = fork();
  if (child == 0) {
    // Not one of the standard streams, which a host may have closed.
    rehearse(registry, real_path, fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  }
  const int problem = errno;
  close(ends[1]);
  const int32_t code =
      child > 0 ? judge(registry, child, ends[0], error) : fail_system(problem, error);
  close(ends[0]);
  return code;
}
