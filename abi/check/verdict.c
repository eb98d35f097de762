// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
  int descriptor;
  const char *topic;
  bool helper;
} state = {.descriptor = -1, .topic = ""};

void check_set_topic(const char *topic)
{
  state.topic = topic;
}

void check_set_channel(int descriptor)
{
  state.descriptor = descriptor;
}

void check_become_helper(void)
{
  state.helper = true;
}

// One write, so that the verdicts of two threads don't mix; the first one counts.
_Noreturn static void end(char verdict, const char *message)
{
  char text[CHECK_MESSAGE_SIZE + 1];
  if (state.helper) {
    _exit(verdict == 'P' ? 0 : 1);
  }
  fflush(stdout); // what the plugin has left there is printed, too
  if (state.descriptor >= 0) {
    const int length = snprintf(text, sizeof text, "%c%s", verdict, message);
    const size_t size = length < (int)sizeof text ? (size_t)length : sizeof text - 1;
    _exit(write(state.descriptor, text, size) == (ssize_t)size ? 0 : 1);
  }
  printf("%s%s%s\n",
         verdict == 'P'   ? "passed"
         : verdict == 'F' ? "failed"
                          : "skipped",
         message[0] == '\0' ? "" : ": ", message);
  fflush(stdout);
  _exit(verdict == 'F' ? 1 : 0);
}

_Noreturn static void end_with(char verdict, const char *format, va_list arguments)
{
  char message[CHECK_MESSAGE_SIZE];
  const int length = snprintf(message, sizeof message, "%s", state.topic);
  vsnprintf(message + length, sizeof message - (size_t)length, format, arguments);
  end(verdict, message);
}

void check_pass(void)
{
  end('P', "");
}

void check_fail(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  end_with('F', format, arguments);
}

void check_skip(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  end_with('S', format, arguments);
}
