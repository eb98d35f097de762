// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The process around the plugin: its threads, its forks, its state and its output.

#include "batches.h"
#include "check.h"
#include "configs.h"
#include "exercise.h"
#include "process_state.h"
#include "selecting.h"
#include "subjects.h"
#include "verdict.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

// ----------------------------------------------------------------------------------------- threads

enum { THREADS = 8, ROUNDS = 20 };

typedef struct worker {
  const check_subject *subject;
  const rft_instance *instance;
  const rft_batch *batch;
  const check_outcome *expected;
  check_outcome made;
} worker;

static void *evaluate_often(void *argument)
{
  const worker *const me = argument;
  for (int i = 0; i < ROUNDS; ++i) {
    const check_outcome found = check_evaluate_ok("on one of eight threads", me->subject,
                                                  me->instance, me->batch, NULL, NULL, NULL);
    EXPECT(check_same_outcome(&found, me->expected),
           "on one of eight threads the bits are other ones; the loss is %.17g and %.17g",
           found.loss, me->expected->loss);
  }
  return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), void *argument)
{
  if (pthread_create(thread, NULL, run, argument) != 0) {
    check_skip("no thread can be started");
  }
}

static void eight_threads(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_real(&r, 8, 200);
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_batch(&values, &form);
  const check_outcome expected =
      check_evaluate_ok("on one thread", subject, instance, batch, NULL, NULL, NULL);
  pthread_t threads[THREADS];
  worker workers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    workers[i] = (worker){subject, instance, batch, &expected, {0}};
    start(&threads[i], evaluate_often, &workers[i]);
  }
  for (int i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
  }
}

static void *use_once(void *argument)
{
  worker *const me = argument;
  if (me->instance == NULL) {
    me->instance = check_create(me->subject);
  }
  me->made = check_evaluate_ok("on a thread that ends", me->subject, me->instance, me->batch, NULL,
                               NULL, NULL);
  return NULL;
}

// An instance outlives the threads that made and used it.
static void threads_come_and_go(const check_subject *subject)
{
  worker work = {.subject = subject, .batch = check_ordinary_batch(subject)};
  for (int i = 0; i < THREADS; ++i) {
    pthread_t thread;
    start(&thread, use_once, &work);
    pthread_join(thread, NULL);
  }
  const check_outcome found = check_evaluate_ok("after threads have ended", subject, work.instance,
                                                work.batch, NULL, NULL, NULL);
  EXPECT(check_same_outcome(&found, &work.made),
         "after threads have ended the bits are other ones");
  subject->loss->destroy((rft_instance *)work.instance);
}

static void small_stacks(const check_subject *subject)
{
  worker work = {.subject = subject, .batch = check_ordinary_batch(subject)};
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, 256 << 10) != 0 ||
      pthread_create(&thread, &attributes, use_once, &work) != 0) {
    check_skip("no thread with a stack of 256 KiB can be started");
  }
  pthread_join(thread, NULL);
}

// ------------------------------------------------------------------------------------------- forks

// Runs in the child: its verdict is its exit status.
_Noreturn static void use_after_fork(const check_subject *subject, const rft_instance *instance,
                                     const rft_batch *batch, const check_outcome *expected)
{
  check_become_helper();
  const check_outcome found =
      check_evaluate_ok("after fork", subject, instance, batch, NULL, NULL, NULL);
  EXPECT(check_same_outcome(&found, expected), "after fork the bits are other ones");
  check_create(subject);
  check_pass();
}

static void fork_and_use(const check_subject *subject)
{
  rft_batch *const batch = check_ordinary_batch(subject);
  const rft_instance *const instance = check_create(subject);
  const check_outcome expected =
      check_evaluate_ok("before fork", subject, instance, batch, NULL, NULL, NULL);
  const pid_t child = fork();
  if (child == 0) {
    use_after_fork(subject, instance, batch, &expected);
  }
  int status = 0;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child, "fork fails");
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0,
         "a forked process cannot use the plugin as before");
}

// ------------------------------------------------------------------------------------------- state

static void compare(const check_subject *subject,
                    const char *(*difference)(const check_state *before, const check_state *after))
{
  const check_state before = check_state_now();
  check_exercise(subject);
  const check_state after = check_state_now();
  const char *const found = difference(&before, &after);
  EXPECT(found == NULL, "after use, %s", found);
}

static void use_starts_no_thread(const check_subject *subject)
{
  compare(subject, check_state_threads);
}

static void use_leaves_files(const check_subject *subject)
{
  compare(subject, check_state_files);
}

static void use_leaves_signals(const check_subject *subject)
{
  compare(subject, check_state_signals);
}

static void use_leaves_locale(const check_subject *subject)
{
  compare(subject, check_state_locale);
}

static void use_leaves_floats(const check_subject *subject)
{
  compare(subject, check_state_floats);
}

static void use_leaves_settings(const check_subject *subject)
{
  compare(subject, check_state_settings);
}

static const char *nothing(const check_state *before, const check_state *after)
{
  (void)before;
  (void)after;
  return NULL;
}

static void survives(const check_subject *subject)
{
  compare(subject, nothing);
}

// exit runs destructors and exit handlers; one that crashes, hangs or changes the exit status
// shows.
static void exits_cleanly(const check_subject *subject)
{
  const pid_t child = fork();
  if (child == 0) {
    check_become_helper();
    check_exercise(subject);
    exit(0); // NOLINT(concurrency-mt-unsafe): the only thread
  }
  int status = 0;
  EXPECT(child > 0 && waitpid(child, &status, 0) == child, "fork fails");
  EXPECT(!WIFSIGNALED(status), "the process is killed by signal %d when it ends", WTERMSIG(status));
  EXPECT(WEXITSTATUS(status) == 0, "the process ends with status %d instead of 0",
         WEXITSTATUS(status));
}

static const check CHECKS[] = {
    {901, "survives", "P10", CHECK_CONFIG, true, "evaluates",
     "All that a trainer does, with good and bad arguments, neither ends nor stops the process.",
     survives},
    {902, "eight_threads", "P14, P15", CHECK_CONFIG, true, "evaluates",
     "Eight threads evaluate on one instance, and each gets the same bits.", eight_threads},
    {903, "threads_come_and_go", "P15", CHECK_CONFIG, true, "evaluates",
     "An instance outlives the threads that made and used it.", threads_come_and_go},
    {904, "small_stacks", "P15", CHECK_CONFIG, false, "evaluates", "A stack of 256 KiB is enough.",
     small_stacks},
    {905, "fork_and_use", "P14, P15", CHECK_CONFIG, true, "evaluates",
     "A forked process uses the plugin as its parent did.", fork_and_use},
    {906, "use_starts_no_thread", "P15", CHECK_LOSS, true, "survives",
     "Using the plugin starts no thread.", use_starts_no_thread},
    {907, "use_leaves_files", "P10", CHECK_LOSS, true, "survives",
     "Using the plugin leaves no file open and closes none.", use_leaves_files},
    {908, "use_leaves_signals", "P10", CHECK_LOSS, true, "survives",
     "Using the plugin changes no signal's action and no signal mask.", use_leaves_signals},
    {909, "use_leaves_locale", "P10", CHECK_LOSS, true, "survives",
     "Using the plugin changes no locale.", use_leaves_locale},
    {910, "use_leaves_floats", "P10", CHECK_LOSS, true, "survives",
     "Using the plugin changes no floating-point mode.", use_leaves_floats},
    {911, "use_leaves_settings", "P10", CHECK_LOSS, true, "survives",
     "Using the plugin changes neither environment, current directory nor umask.",
     use_leaves_settings},
    {912, "exits_cleanly", "P10, P19", CHECK_LOSS, true, "survives",
     "A process that has used the plugin ends as it would without.", exits_cleanly},
    {913, "prints_nothing", "P10", CHECK_LOSS, true, "survives",
     "Nothing comes on standard output or error, in this check or any other that was run.",
     survives},
};

const check_area process_checks = CHECK_AREA(CHECKS);
