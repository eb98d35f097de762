// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Loading: nothing but the address space may change.

#include "check.h"
#include "process_state.h"
#include "subjects.h"
#include "verdict.h"

static void opens(const check_subject *subject)
{
  check_open(subject->path);
}

// The loader allocates and may open files of its own before anything is compared.
static void compare(const check_subject *subject,
                    const char *(*difference)(const check_state *before, const check_state *after))
{
  const check_state before = check_state_now();
  check_open(subject->path);
  const check_state after = check_state_now();
  const char *const found = difference(&before, &after);
  EXPECT(found == NULL, "after loading, %s", found);
}

static void load_starts_no_thread(const check_subject *subject)
{
  compare(subject, check_state_threads);
}

static void load_leaves_files(const check_subject *subject)
{
  compare(subject, check_state_files);
}

static void load_leaves_signals(const check_subject *subject)
{
  compare(subject, check_state_signals);
}

static void load_leaves_locale(const check_subject *subject)
{
  compare(subject, check_state_locale);
}

static void load_leaves_floats(const check_subject *subject)
{
  compare(subject, check_state_floats);
}

static void load_leaves_settings(const check_subject *subject)
{
  compare(subject, check_state_settings);
}

static const check CHECKS[] = {
    {201, "opens", "P5, P19", CHECK_FILE, true, "shared_object",
     "It loads with every symbol resolved, and has the entry.", opens},
    {202, "load_starts_no_thread", "P15, P19", CHECK_FILE, true, "opens",
     "Loading starts no thread.", load_starts_no_thread},
    {203, "load_leaves_files", "P19", CHECK_FILE, true, "opens",
     "Loading leaves no file open and closes none.", load_leaves_files},
    {204, "load_leaves_signals", "P10, P19", CHECK_FILE, true, "opens",
     "Loading changes no signal's action and no signal mask.", load_leaves_signals},
    {205, "load_leaves_locale", "P10, P19", CHECK_FILE, true, "opens", "Loading changes no locale.",
     load_leaves_locale},
    {206, "load_leaves_floats", "P10, P20", CHECK_FILE, true, "opens",
     "Loading changes no floating-point mode.", load_leaves_floats},
    {207, "load_leaves_settings", "P19", CHECK_FILE, true, "opens",
     "Loading changes neither environment, current directory nor umask.", load_leaves_settings},
};

const check_area load_checks = CHECK_AREA(CHECKS);
