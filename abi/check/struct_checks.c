// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Structs of callers of other versions.

#include "batches.h"
#include "check.h"
#include "memory.h"
#include "provoke.h"
#include "selecting.h"
#include "subjects.h"
#include "verdict.h"

#include <string.h>

enum { TAIL = 16 };

static void expect_refused(const provocation *made)
{
  EXPECT(!made->must_fail || made->code != RFT_OK, "%s: evaluate returns OK", made->what);
}

static void expect_unimplemented(const provocation *made)
{
  EXPECT(made->code == RFT_UNIMPLEMENTED, "%s: expected code %d, found %d", made->what,
         RFT_UNIMPLEMENTED, made->code);
}

static void evaluate_refuses_short_structs(const check_subject *subject)
{
  check_provoke(subject, SHORT_STRUCTS, true, expect_refused);
}

static void evaluate_refuses_unknown_requests(const check_subject *subject)
{
  check_provoke(subject, LONG_STRUCTS, true, expect_unimplemented);
}

static void evaluate_refuses_null_structs(const check_subject *subject)
{
  check_provoke(subject, NULL_STRUCTS, true, expect_refused);
}

// A copy that says it is longer, with zeros there, and ends where memory ends.
static void *longer(const void *object, uint32_t size)
{
  unsigned char copy[256] = {0};
  const uint32_t larger = size + TAIL;
  memcpy(copy, object, size);
  memcpy(copy, &larger, sizeof larger);
  return check_guarded_copy(copy, larger);
}

static void evaluate_takes_zero_tails(const check_subject *subject)
{
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_ordinary_batch(subject);
  const check_layout layout = {.placement = PLAIN};
  const rft_reduction reduction = {.struct_size = RFT_STRUCT_SIZE(rft_reduction, scale)};
  const rft_output output = {.struct_size = RFT_STRUCT_SIZE(rft_output, metric_count),
                             .gradient = check_tensor(NULL, 2, 4, 6, DTYPE_FLOAT32, &layout)};
  rft_error error = {.struct_size = sizeof error};
  const int32_t code = subject->loss->evaluate(
      instance, longer(batch, RFT_STRUCT_SIZE(rft_batch, stream)), NULL,
      longer(&reduction, reduction.struct_size), longer(&output, output.struct_size), &error);
  EXPECT(code == RFT_OK, "structs with tails of zeros: evaluate returns %d: %.400s", code,
         error.message);
}

static void evaluate_reads_no_further(const check_subject *subject)
{
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_ordinary_batch(subject);
  const check_layout layout = {.placement = PLAIN};
  const rft_reduction reduction = {.struct_size = RFT_STRUCT_SIZE(rft_reduction, scale)};
  const rft_output output = {.struct_size = RFT_STRUCT_SIZE(rft_output, metric_count),
                             .gradient = check_tensor(NULL, 2, 4, 6, DTYPE_FLOAT32, &layout)};
  rft_error error = {.struct_size = sizeof error};
  const int32_t code =
      subject->loss->evaluate(instance, check_guarded_copy(batch, batch->struct_size), NULL,
                              check_guarded_copy(&reduction, reduction.struct_size),
                              check_guarded_copy(&output, output.struct_size), &error);
  EXPECT(code == RFT_OK, "evaluate returns %d: %.400s", code, error.message);
}

// -------------------------------------------------------------------------------------- selections

static int32_t finish_with(const check_subject *subject, rft_selection_report *report,
                           rft_error *error)
{
  rft_selection *const selection = check_begin(subject, check_create(subject));
  check_add(subject, selection, check_ordinary_batch(subject));
  const int32_t code = subject->loss->selection_finish(selection, NULL, report, error);
  subject->loss->selection_end(selection);
  return code;
}

static void finish_judges_reports(const check_subject *subject)
{
  rft_error error = {.struct_size = sizeof error};
  const uint32_t size = RFT_STRUCT_SIZE(rft_selection_report, metric_count);
  rft_selection_report report = {.struct_size = size, .valid_tokens = -1};
  int32_t code = finish_with(subject, check_guarded_copy(&report, size), &error);
  EXPECT(code == RFT_OK, "a report of version 1.0: selection_finish returns %d: %.400s", code,
         error.message);
  code = finish_with(subject, longer(&report, size), &error);
  EXPECT(code == RFT_OK, "a report with a tail of zeros: selection_finish returns %d: %.400s", code,
         error.message);
  unsigned char *const set = longer(&report, size);
  set[size + TAIL - 1] = 1;
  code = finish_with(subject, (rft_selection_report *)set, &error);
  EXPECT(code == RFT_UNIMPLEMENTED, "a report with a tail that is set: expected code %d, found %d",
         RFT_UNIMPLEMENTED, code);
  EXPECT(((rft_selection_report *)set)->valid_tokens == -1,
         "a report that was refused has been written");
  report.struct_size = size - 8;
  EXPECT(finish_with(subject, check_guarded_copy(&report, size - 8), &error) != RFT_OK,
         "a report whose struct_size is too small is accepted");
  EXPECT(finish_with(subject, NULL, &error) != RFT_OK, "a report that is NULL is accepted");
}

static void add_judges_batches(const check_subject *subject)
{
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_ordinary_batch(subject);
  const uint32_t size = RFT_STRUCT_SIZE(rft_batch, stream);
  rft_batch short_batch = *batch;
  short_batch.struct_size = size - 8;
  unsigned char *const set = longer(batch, size);
  set[size + TAIL - 1] = 1;
  const struct {
    const char *what;
    const rft_batch *batch;
    bool accepted;
  } cases[] = {
      {"a batch of version 1.0", check_guarded_copy(batch, size), true},
      {"a batch with a tail of zeros", longer(batch, size), true},
      {"a batch with a tail that is set", (const rft_batch *)set, false},
      {"a batch whose struct_size is too small", check_guarded_copy(&short_batch, size - 8), false},
      {"a batch that is NULL", NULL, false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    rft_error error = {.struct_size = sizeof error};
    rft_selection *const selection = check_begin(subject, instance);
    const int32_t code = subject->loss->selection_add(selection, cases[i].batch, &error);
    EXPECT((code == RFT_OK) == cases[i].accepted, "%s: selection_add returns %d: %.300s",
           cases[i].what, code, error.message);
    subject->loss->selection_end(selection);
  }
}

static const check CHECKS[] = {
    {501, "evaluate_reads_no_further", "P2", CHECK_LOSS, true, "evaluates",
     "evaluate reads nothing behind the struct_size of its structs.", evaluate_reads_no_further},
    {502, "evaluate_takes_zero_tails", "P3, P4", CHECK_LOSS, true, "evaluates",
     "Structs of a newer caller that asks for nothing new are taken.", evaluate_takes_zero_tails},
    {503, "evaluate_refuses_unknown_requests", "P3", CHECK_LOSS, true, "evaluates",
     "A tail or a reserved word that is set is RFT_UNIMPLEMENTED.",
     evaluate_refuses_unknown_requests},
    {504, "evaluate_refuses_short_structs", "P1, P2", CHECK_LOSS, true, "evaluates",
     "A struct whose struct_size is too small is refused, and not read further.",
     evaluate_refuses_short_structs},
    {505, "evaluate_refuses_null_structs", "P8", CHECK_LOSS, true, "evaluates",
     "A batch or an output that is NULL is refused.", evaluate_refuses_null_structs},
    {506, "add_judges_batches", "P1, P2, P3", CHECK_SELECTION, true, "selects",
     "selection_add takes and refuses batches of other sizes as evaluate does.",
     add_judges_batches},
    {507, "finish_judges_reports", "P1, P2, P3, P9", CHECK_SELECTION, true, "selects",
     "selection_finish takes and refuses reports of other sizes likewise.", finish_judges_reports},
};

const check_area struct_checks = CHECK_AREA(CHECKS);
