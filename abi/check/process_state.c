// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // fegetexcept

#include "process_state.h"

#include "verdict.h"

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count_threads(void)
{
  int count = 0;
  DIR *const tasks = opendir("/proc/self/task");
  if (tasks == NULL) {
    check_skip("/proc is not mounted");
  }
  for (const struct dirent *entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
    count += entry->d_name[0] != '.';
  }
  closedir(tasks);
  return count;
}

// FNV-1a over the strings and their order.
static uint64_t hash_environment(void)
{
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (char **entry = environ; entry != NULL && *entry != NULL; ++entry) {
    for (const char *c = *entry; *c != '\0'; ++c) {
      hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001B3);
    }
    hash = (hash ^ 0xFF) * UINT64_C(0x100000001B3);
  }
  return hash;
}

// The control bits of MXCSR; its low six tell what has happened, which computing may change.
static uint32_t float_control(void)
{
#if defined(__x86_64__)
  return __builtin_ia32_stmxcsr() & ~UINT32_C(0x3F);
#elif defined(__aarch64__)
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return (uint32_t)control;
#else
  return 0;
#endif
}

check_state check_state_now(void)
{
  check_state state;
  memset(&state, 0, sizeof state);
  state.threads = count_threads();
  for (int i = 0; i < STATE_FILES; ++i) {
    state.files[i] = fcntl(i, F_GETFD) != -1;
  }
  for (int i = 1; i < STATE_SIGNALS; ++i) {
    sigaction(i, NULL, &state.actions[i]);
  }
  sigprocmask(SIG_SETMASK, NULL, &state.blocked);
  snprintf(state.locale, sizeof state.locale, "%s", setlocale(LC_ALL, NULL));
  state.thread_locale = uselocale((locale_t)0);
  state.rounding = fegetround();
  state.traps = fegetexcept();
  state.control = float_control();
  state.environment = hash_environment();
  if (getcwd(state.directory, sizeof state.directory) == NULL) {
    state.directory[0] = '\0';
  }
  state.umask = umask(0);
  umask(state.umask);
  return state;
}

const char *check_state_threads(const check_state *before, const check_state *after)
{
  return before->threads == after->threads ? NULL : "there are threads that were not there before";
}

const char *check_state_files(const check_state *before, const check_state *after)
{
  for (int i = 0; i < STATE_FILES; ++i) {
    if (before->files[i] != after->files[i]) {
      return after->files[i] ? "a file was left open" : "a file of the host was closed";
    }
  }
  return NULL;
}

const char *check_state_signals(const check_state *before, const check_state *after)
{
  for (int i = 1; i < STATE_SIGNALS; ++i) {
    if (before->actions[i].sa_handler != after->actions[i].sa_handler ||
        before->actions[i].sa_flags != after->actions[i].sa_flags) {
      return "the action of a signal was changed";
    }
    if (sigismember(&before->blocked, i) != sigismember(&after->blocked, i)) {
      return "the signal mask was changed";
    }
  }
  return NULL;
}

const char *check_state_locale(const check_state *before, const check_state *after)
{
  return strcmp(before->locale, after->locale) != 0      ? "the locale was changed"
         : before->thread_locale != after->thread_locale ? "the thread's locale was changed"
                                                         : NULL;
}

const char *check_state_floats(const check_state *before, const check_state *after)
{
  return before->rounding != after->rounding ? "the rounding mode was changed"
         : before->traps != after->traps     ? "floating-point traps were changed"
         : before->control != after->control ? "flush-to-zero or a like mode was changed"
                                             : NULL;
}

const char *check_state_settings(const check_state *before, const check_state *after)
{
  return before->environment != after->environment          ? "the environment was changed"
         : strcmp(before->directory, after->directory) != 0 ? "the current directory was changed"
         : before->umask != after->umask                    ? "the umask was changed"
                                                            : NULL;
}
