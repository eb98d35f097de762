// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Config text that is damaged, hostile, or not there afterwards.

#include "batches.h"
#include "check.h"
#include "configs.h"
#include "memory.h"
#include "support/json.h"
#include "support/schema.h"
#include "verdict.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Every default spelt out.
static char *complete_config(const check_subject *subject)
{
  json_t *complete = NULL;
  EXPECT(rft_schema_resolve(subject->loss->config_schema, NULL, 0, &complete, NULL, NULL) == RFT_OK,
         "the defaults do not pass their schema");
  char *const text = rft_json_text(complete, 0);
  json_decref(complete);
  return text;
}

static void expect_refused(const check_subject *subject, const char *text, int64_t length,
                           const char *what)
{
  rft_error error = {.struct_size = sizeof error};
  const int32_t code = check_try(subject, text, length, &error);
  EXPECT(code != RFT_OK, "%s: it is accepted", what);
}

static void random_text(const check_subject *subject)
{
  rng r = {subject->seed};
  for (int i = 0; i < 2000; ++i) {
    const int64_t length = 2 + rng_below(&r, 62);
    char *const text = check_guarded_copy("", 0);
    char *const bytes = text - length; // ends at the guard page, whatever the length
    for (int64_t b = 0; b < length; ++b) {
      bytes[b] = (char)rng_bits(&r);
    }
    check_try(subject, bytes, length, NULL);
    check_unmap(bytes, 64);
  }
}

static void mutated_text(const check_subject *subject)
{
  rng r = {subject->seed};
  char *const text = complete_config(subject);
  const size_t length = strlen(text);
  char *const copy = check_memory(length + 1, PLAIN);
  for (int i = 0; i < 2000; ++i) {
    strcpy(copy, text);
    for (int64_t changes = 1 + rng_below(&r, 3); changes > 0; --changes) {
      copy[rng_below(&r, (int64_t)length)] = (char)rng_bits(&r);
    }
    check_try(subject, copy, (int64_t)length, NULL);
  }
  free(text);
}

static void truncated_text(const check_subject *subject)
{
  char *const text = complete_config(subject);
  for (size_t length = 1; length < strlen(text); ++length) {
    char what[64];
    snprintf(what, sizeof what, "a config cut after %zu bytes", length);
    expect_refused(subject, check_guarded_copy(text, length), (int64_t)length, what);
  }
  free(text);
}

// Without the NUL.
static void put(char *at, const char *text)
{
  while (*text != '\0') {
    *at++ = *text++;
  }
}

static void deep_text(const check_subject *subject)
{
  enum { DEPTH = 1000000 };
  char *const text = check_memory(DEPTH, PLAIN);
  memset(text, '[', DEPTH);
  expect_refused(subject, text, DEPTH, "a million open arrays");
  for (int i = 0; i + 5 <= DEPTH; i += 5) {
    put(text + i, "{\"a\":");
  }
  expect_refused(subject, text, DEPTH, "200000 open objects");
}

static void huge_text(const check_subject *subject)
{
  enum { SIZE = 8 << 20, MANY = 1 << 16 };
  char *const text = check_memory(SIZE, PLAIN);
  memset(text, 'a', SIZE);
  put(text, "{\"");
  put(text + SIZE - 5, "\": 1}");
  expect_refused(subject, text, SIZE, "a key of 8 MiB");
  memset(text, ' ', MANY);
  expect_refused(subject, text, MANY, "65536 spaces");
  memset(text, '9', MANY);
  expect_refused(subject, text, MANY, "a number of 65536 digits");
}

static void not_utf8(const check_subject *subject)
{
  static const char *const texts[] = {"{\"\xFF\": 1}", "{\"\xC0\x80\": 1}", "{\"\xED\xA0\x80\": 1}",
                                      "\xFF\xFE{\0}\0", "{\"\xE2\x82\": 1}"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
    expect_refused(subject, texts[i], (int64_t)strlen(texts[i]), "text that is not UTF-8");
  }
}

static void not_one_object(const check_subject *subject)
{
  static const char *const texts[] = {"[]",    "null", "1",       "\"{}\"",  "true",
                                      "{} {}", "{}x",  "{},",     "{\"a\"}", "{'a': 1}",
                                      " ",     "{",    "// x\n{}"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; ++i) {
    expect_refused(subject, texts[i], (int64_t)strlen(texts[i]), texts[i]);
  }
  expect_refused(subject, "{}\0", 3, "{} and a byte 0");
}

static void length_is_honored(const check_subject *subject)
{
  rft_error error = {.struct_size = sizeof error};
  char *const text = complete_config(subject);
  const size_t length = strlen(text);
  const int32_t code =
      check_try(subject, check_guarded_copy(text, length), (int64_t)length, &error);
  EXPECT(code == RFT_OK, "create refuses the defaults without a NUL behind them: %.400s",
         error.message);
  EXPECT(check_try(subject, "{}{\"no_such_key\": 1}", 2, &error) == RFT_OK,
         "create reads behind config_length: %.400s", error.message);
  free(text);
}

static void text_is_borrowed(const check_subject *subject)
{
  rft_batch *const batch = check_ordinary_batch(subject);
  const check_outcome expected =
      check_evaluate_ok("ordinary batch", subject, check_create(subject), batch, NULL, NULL, NULL);
  const size_t length = strlen(subject->config);
  char *const text = check_guarded_copy(subject->config, length);
  const check_created created = check_try_text(subject, text, (int64_t)length);
  EXPECT(created.code == RFT_OK, "create returns %d: %.400s", created.code, created.error.message);
  check_unmap(text, length);
  const check_outcome found = check_evaluate_ok("after the config text was freed", subject,
                                                created.instance, batch, NULL, NULL, NULL);
  EXPECT(check_same_outcome(&found, &expected),
         "after the config text was freed the results are other ones");
}

static void any_locale(const check_subject *subject)
{
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"};
  size_t i = 0;
  while (i < sizeof names / sizeof names[0] && setlocale(LC_ALL, names[i]) == NULL) {
    ++i;
  }
  if (i == sizeof names / sizeof names[0]) {
    check_skip("no locale with a decimal comma is installed");
  }
  rft_error error = {.struct_size = sizeof error};
  char *const text = complete_config(subject);
  const int32_t code = check_try(subject, text, (int64_t)strlen(text), &error);
  EXPECT(code == RFT_OK, "in the locale %s: %.400s", names[i], error.message);
  free(text);
}

static const check CHECKS[] = {
    {421, "random_text", "P10, P12", CHECK_LOSS, true, "creates",
     "Random bytes as config do no harm.", random_text},
    {422, "mutated_text", "P10, P12", CHECK_LOSS, true, "defaults_pass",
     "A config with random bytes changed does no harm.", mutated_text},
    {423, "truncated_text", "P12", CHECK_LOSS, true, "defaults_pass",
     "A config cut at any length is refused.", truncated_text},
    {424, "deep_text", "P10, P12", CHECK_LOSS, true, "creates",
     "A config nested a million deep is refused.", deep_text},
    {425, "huge_text", "P10, P12", CHECK_LOSS, true, "unknown_key",
     "A config of 8 MiB, or of very many spaces or digits, is refused.", huge_text},
    {426, "not_utf8", "P12", CHECK_LOSS, true, "creates", "A config that is not UTF-8 is refused.",
     not_utf8},
    {427, "not_one_object", "P12", CHECK_LOSS, true, "creates",
     "A config that is not one JSON object is refused.", not_one_object},
    {428, "length_is_honored", "P2, P13", CHECK_LOSS, true, "defaults_pass",
     "create reads config_length bytes, and needs no NUL behind them.", length_is_honored},
    {429, "text_is_borrowed", "P13", CHECK_CONFIG, true, "evaluates",
     "An instance does not need the config text any more.", text_is_borrowed},
    {430, "any_locale", "P10, P12", CHECK_LOSS, true, "defaults_pass",
     "Numbers in a config are read the same in a locale with a decimal comma.", any_locale},
};

const check_area config_checks = CHECK_AREA(CHECKS);
