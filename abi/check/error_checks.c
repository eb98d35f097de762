// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Every error that the checks can provoke.

#include "batches.h"
#include "check.h"
#include "configs.h"
#include "hosts.h"
#include "provoke.h"
#include "verdict.h"

#include <stdlib.h>
#include <string.h>

static void expect_complete(const char *what, int32_t code, const rft_error *error)
{
  EXPECT(error->code == code, "%s: the function returns %d, the error says %d", what, code,
         error->code);
  EXPECT(memchr(error->message, '\0', sizeof error->message) != NULL,
         "%s: the message does not end within %d bytes", what, RFT_ERROR_MESSAGE_SIZE);
  EXPECT(error->message[0] != '\0', "%s: there is no message", what);
  EXPECT(check_is_plain_text(error->message), "%s: the message is not one line of UTF-8", what);
  EXPECT(code > RFT_OK && code <= RFT_DATA_LOSS, "%s: code %d is not known", what, code);
}

static void judge_message(const provocation *made)
{
  if (made->code != RFT_OK) {
    expect_complete(made->what, made->code, made->error);
  }
}

static void judge_config_message(const check_subject *subject, const char *key, const json_t *value,
                                 bool allowed)
{
  rft_error error = {.struct_size = sizeof error};
  char *const text = check_config_text(key, value);
  memset(error.message, 'x', sizeof error.message);
  const int32_t code = check_try(subject, text, (int64_t)strlen(text), &error);
  if (code != RFT_OK) {
    expect_complete(text, code, &error);
  }
  (void)allowed;
  free(text);
}

static void messages_are_complete(const check_subject *subject)
{
  static const char *const configs[] = {"{", "[]", "{\"no_such_key\": 1}", "{\"\xFF\": 1}",
                                        "{\"\xE2\x82\xAC\": 1}"};
  check_provoke(subject, ALL_PROVOCATIONS, true, judge_message);
  check_probe_bounds(subject, judge_config_message);
  check_probe_types(subject, judge_config_message);
  check_probe_choices(subject, judge_config_message);
  for (size_t i = 0; i < sizeof configs / sizeof configs[0]; ++i) {
    rft_error error = {.struct_size = sizeof error};
    const int32_t code = check_try(subject, configs[i], (int64_t)strlen(configs[i]), &error);
    if (code != RFT_OK) {
      expect_complete(configs[i], code, &error);
    }
  }
}

// A key so long that it can't be in the message whole, of characters of three bytes each.
static void long_names_are_cut(const check_subject *subject)
{
  enum { CHARACTERS = 400 };
  char text[(3 * CHARACTERS) + 16] = "{\"";
  for (int cut = 0; cut < 3; ++cut) {
    char *next = text + 2;
    memset(next, 'a', (size_t)cut);
    next += cut;
    for (int i = 0; i < CHARACTERS; ++i, next += 3) {
      memcpy(next, "\xE2\x82\xAC", 3);
    }
    strcpy(next, "\": 1}");
    rft_error error = {.struct_size = sizeof error};
    memset(error.message, 'x', sizeof error.message);
    const int32_t code = check_try(subject, text, (int64_t)strlen(text), &error);
    EXPECT(code != RFT_OK, "a key of %d characters is accepted", CHARACTERS);
    expect_complete("a key that does not fit into a message", code, &error);
  }
}

static void survive(const provocation *made)
{
  (void)made;
}

static void error_may_be_null(const check_subject *subject)
{
  check_provoke(subject, ALL_PROVOCATIONS, false, survive);
  rft_instance *instance = NULL;
  EXPECT(subject->loss->create(subject->loss, subject->host, "{", 1, &instance, NULL) != RFT_OK,
         "create accepts \"{\"");
}

// Makes create fail with an rft_error of this struct_size; all behind it is a page of its own.
static void fail_with_size(const check_subject *subject, uint32_t size)
{
  rft_error whole;
  rft_instance *instance = NULL;
  memset(&whole, 0x5A, sizeof whole);
  whole.struct_size = size;
  rft_error *const error = check_guarded_copy(&whole, size);
  EXPECT(subject->loss->create(subject->loss, subject->host, "{", 1, &instance, error) != RFT_OK,
         "create accepts \"{\"");
  EXPECT(error->struct_size == size, "struct_size is overwritten");
}

static void error_is_not_overrun(const check_subject *subject)
{
  fail_with_size(subject, sizeof(rft_error));
  fail_with_size(subject, offsetof(rft_error, message));
  fail_with_size(subject, offsetof(rft_error, code));
}

static void success_leaves_the_error(const check_subject *subject)
{
  rft_error error = {.struct_size = sizeof error, .code = 77};
  const int32_t code = check_try(subject, "{}", 2, NULL);
  rft_instance *instance = NULL;
  EXPECT(code == RFT_OK, "create returns %d", code);
  subject->loss->create(subject->loss, subject->host, "{}", 2, &instance, &error);
  EXPECT(error.code == 77 && error.message[0] == '\0', "create returns OK and writes the error");
}

static void judge_outputs(const provocation *made)
{
  EXPECT(made->code == RFT_OK || made->touched == NULL,
         "%s: evaluate returns %d and has written the %s", made->what, made->code, made->touched);
}

static void outputs_stay_on_errors(const check_subject *subject)
{
  check_provoke(subject, ALL_PROVOCATIONS, true, judge_outputs);
}

// A value that can't be used, at the last position: all before it was fine.
static void outputs_stay_on_late_errors(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_form form = check_form_plain();
  const check_layout layout = {.placement = PLAIN};
  const rft_instance *const instance = check_create(subject);
  const check_values values = check_values_exact(&r, 8, 700);
  const int64_t last = (values.rows * values.columns) - 1;
  values.mask[last] = 1;
  values.logprob[last] = __builtin_nan("");
  const rft_tensor *const gradient = check_tensor(NULL, 2, 8, 700, DTYPE_FLOAT32, &layout);
  const check_outcome outcome =
      check_evaluate(subject, instance, check_batch(&values, &form), NULL, NULL, gradient);
  size_t size = 0;
  const unsigned char *const bytes = check_tensor_bytes(gradient, &size);
  EXPECT(outcome.code == RFT_OK || outcome.loss == UNWRITTEN,
         "a NaN at the last position: evaluate returns %d and has written the loss", outcome.code);
  for (size_t i = 0; outcome.code != RFT_OK && i < size; ++i) {
    EXPECT(bytes[i] == 0xA5,
           "a NaN at the last position: evaluate returns %d and has written the gradient",
           outcome.code);
  }
}

static const check CHECKS[] = {
    {521, "messages_are_complete", "P8", CHECK_LOSS, true, "evaluates",
     "Every error has a known code, and a message that is not empty and one line of UTF-8.",
     messages_are_complete},
    {522, "long_names_are_cut", "P8", CHECK_LOSS, true, "unknown_key",
     "A message about a name that does not fit ends with a whole character.", long_names_are_cut},
    {523, "error_may_be_null", "P8", CHECK_LOSS, true, "evaluates",
     "Every error can be had without an rft_error.", error_may_be_null},
    {524, "error_is_not_overrun", "P1, P2", CHECK_LOSS, true, "creates",
     "An rft_error is written as far as its struct_size reaches.", error_is_not_overrun},
    {525, "success_leaves_the_error", "P8", CHECK_LOSS, false, "creates",
     "A call that succeeds leaves the rft_error alone.", success_leaves_the_error},
    {526, "outputs_stay_on_errors", "P9", CHECK_LOSS, true, "evaluates",
     "A call of evaluate that is refused leaves loss, gradient and metrics alone.",
     outputs_stay_on_errors},
    {527, "outputs_stay_on_late_errors", "P9", CHECK_LOSS, true, "evaluates",
     "So does one that is refused for the value of the last token.", outputs_stay_on_late_errors},
};

const check_area error_checks = CHECK_AREA(CHECKS);
