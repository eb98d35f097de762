// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // memfd_create, pipe2

#include "runner.h"

#include "subjects.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_now(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + ((double)now.tv_nsec * 1e-9);
}

// Each check has numbers of its own, whichever others are run.
static uint64_t seed_of(const check_runner *runner, const check *judged)
{
  return runner->seed ^ ((uint64_t)judged->number << 32);
}

// ------------------------------------------------------------------------------------ in the child

static void redirect(int from, int to)
{
  if (from < 0 || dup2(from, to) < 0) {
    _exit(125);
  }
}

static void start_child(int output)
{
  const struct rlimit none = {0, 0};
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setrlimit(RLIMIT_CORE, &none);
  redirect(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  redirect(output, STDOUT_FILENO);
  redirect(output, STDERR_FILENO);
  setvbuf(stdout, NULL, _IONBF, 0); // a verdict ends the process without flushing
}

// ----------------------------------------------------------------------------------- in the parent

// Reads until the child has closed the pipe or time is up. The verdict is written at once.
static ssize_t read_verdict(int channel, double deadline, char text[CHECK_MESSAGE_SIZE + 1])
{
  struct pollfd watched = {.fd = channel, .events = POLLIN};
  const double left = deadline - seconds_now();
  int ready = -1;
  do {
    ready = poll(&watched, 1, left <= 0 ? 0 : (int)(left * 1000) + 1);
  } while (ready < 0 && errno == EINTR);
  if (ready <= 0) {
    return -1;
  }
  const ssize_t length = read(channel, text, CHECK_MESSAGE_SIZE);
  text[length < 0 ? 0 : length] = '\0';
  return length;
}

// The first line that the child printed.
static bool read_printed(int output, char line[CHECK_LINE_SIZE])
{
  const ssize_t length = pread(output, line, CHECK_LINE_SIZE - 1, 0);
  line[length < 0 ? 0 : length] = '\0';
  line[strcspn(line, "\n")] = '\0';
  return length > 0;
}

static void judge_end(int status, char message[CHECK_MESSAGE_SIZE])
{
  if (WIFSIGNALED(status)) {
    const char *const name = sigabbrev_np(WTERMSIG(status));
    snprintf(message, CHECK_MESSAGE_SIZE, "killed by SIG%s", name == NULL ? "?" : name);
  } else {
    snprintf(message, CHECK_MESSAGE_SIZE, "exited with %d", WEXITSTATUS(status));
  }
}

static void judge(check_runner *runner, pid_t child, int channel, check_result *result)
{
  char text[CHECK_MESSAGE_SIZE + 1];
  const ssize_t length = read_verdict(channel, seconds_now() + runner->timeout_seconds, text);
  if (length < 0) {
    snprintf(result->message, sizeof result->message, "timed out after %d s",
             runner->timeout_seconds);
    kill(child, SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  kill(-child, SIGKILL); // processes that it has left
  result->status = CHECK_FAILED;
  if (length == 0) {
    judge_end(status, result->message);
  } else if (length > 0) {
    result->status = text[0] == 'P' ? CHECK_PASSED : text[0] == 'F' ? CHECK_FAILED : CHECK_SKIPPED;
    snprintf(result->message, sizeof result->message, "%s", text + 1);
  }
}

static void fail_here(check_result *result, const char *what)
{
  result->status = CHECK_FAILED;
  snprintf(result->message, sizeof result->message, "rft check: %s: %s", what, strerror(errno));
}

static void run_in_child(check_runner *runner, const check *judged, check_result *result)
{
  int channel[2];
  const int output = memfd_create("rft-check-output", MFD_CLOEXEC);
  if (output < 0 || pipe2(channel, O_CLOEXEC) != 0) {
    fail_here(result, "cannot make a pipe");
    return;
  }
  const double start = seconds_now();
  (void)fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    close(channel[0]);
    start_child(output);
    check_set_channel(channel[1]);
    check_run_on_all(judged, runner->path, seed_of(runner, judged));
  }
  close(channel[1]);
  if (child < 0) {
    fail_here(result, "cannot start a process");
  } else {
    judge(runner, child, channel[0], result);
  }
  result->seconds = seconds_now() - start;
  result->printed = read_printed(output, result->line);
  if (result->printed && result->status == CHECK_FAILED) {
    const size_t length = strlen(result->message);
    snprintf(result->message + length, sizeof result->message - length, " (printed: %s)",
             result->line);
  }
  close(channel[0]);
  close(output);
}

// ----------------------------------------------------------------------------------------- the run

static int index_of(const check *judged)
{
  int index = 0;
  while (check_at(index) != judged) {
    ++index;
  }
  return index;
}

const check_result *check_runner_run(check_runner *runner, int index)
{
  const check *const judged = check_at(index);
  check_result *const result = &runner->results[index];
  if (result->status != CHECK_NOT_RUN) {
    return result;
  }
  if (judged->needs != NULL) {
    const check *const needed = check_find(judged->needs);
    const check_result *const before = check_runner_run(runner, index_of(needed));
    if (before->status == CHECK_FAILED ||
        (before->status == CHECK_SKIPPED && strncmp(before->message, "needs ", 6) == 0)) {
      result->status = CHECK_SKIPPED;
      snprintf(result->message, sizeof result->message, "needs %d %s", needed->number,
               needed->name);
      return result;
    }
  }
  run_in_child(runner, judged, result);
  return result;
}

void check_runner_run_here(const check_runner *runner, int index)
{
  const check *const judged = check_at(index);
  check_run_on_all(judged, runner->path, seed_of(runner, judged));
}
