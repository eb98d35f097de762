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
  (void)fflush(stdout); // what the plugin has left there is printed, too
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
  (void)fflush(stdout);
  _exit(verdict == 'F' ? 1 : 0);
}

// The message behind the topic.
static void compose(char message[CHECK_MESSAGE_SIZE], const char *format, va_list arguments)
{
  const int length = snprintf(message, CHECK_MESSAGE_SIZE, "%s", state.topic);
  vsnprintf(message + length, CHECK_MESSAGE_SIZE - (size_t)length, format, arguments);
}

void check_pass(void)
{
  end('P', "");
}

void check_fail(const char *format, ...)
{
  char message[CHECK_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  compose(message, format, arguments);
  va_end(arguments);
  end('F', message);
}

void check_skip(const char *format, ...)
{
  char message[CHECK_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  compose(message, format, arguments);
  va_end(arguments);
  end('S', message);
}
