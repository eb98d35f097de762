// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The life of a selection, and its masks.

#include "check.h"
#include "configs.h"
#include "selecting.h"
#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { ROWS = 12, COLUMNS = 37 };

static check_values spread(const check_subject *subject)
{
  rng r = {subject->seed};
  return check_values_spread(&r, ROWS, COLUMNS);
}

static void expect_same_mask(const char *what, const check_selected *found,
                             const check_selected *expected)
{
  EXPECT(found->report.valid_tokens == expected->report.valid_tokens &&
             found->report.kept_tokens == expected->report.kept_tokens &&
             found->report.sequences == expected->report.sequences,
         "%s: other counts: %" PRId64 " of %" PRId64 " tokens kept, and %" PRId64 " of %" PRId64,
         what, found->report.kept_tokens, found->report.valid_tokens, expected->report.kept_tokens,
         expected->report.valid_tokens);
  for (int64_t i = 0; i < expected->count; ++i) {
    EXPECT(found->mask[i] == expected->mask[i],
           "%s: another mask, first at position %" PRId64 ": expected %g, found %g", what, i,
           expected->mask[i], found->mask[i]);
  }
}

static bool is_mask(const rft_tensor *mask, const check_selected *expected)
{
  const double *const values = check_tensor_values(mask);
  for (int64_t i = 0; i < expected->count; ++i) {
    if (values[i] != expected->mask[i]) {
      return false;
    }
  }
  return true;
}

static void selects(const check_subject *subject)
{
  const check_values values = spread(subject);
  const check_form form = check_form_plain();
  rft_batch *const batch = check_batch(&values, &form);
  const check_selected selected =
      check_select_ok("ordinary batch", subject, check_create(subject), &batch, 1, NULL);
  int64_t kept = 0;
  for (int64_t i = 0; i < selected.count; ++i) {
    EXPECT(selected.mask[i] == 0 || selected.mask[i] == 1, "the mask at position %" PRId64 " is %g",
           i, selected.mask[i]);
    EXPECT(selected.mask[i] == 0 || values.mask[i] != 0,
           "a token that is not valid is kept at position %" PRId64, i);
    kept += selected.mask[i] != 0;
  }
  EXPECT(selected.report.valid_tokens == check_values_valid(&values),
         "expected %" PRId64 " valid tokens, found %" PRId64, check_values_valid(&values),
         selected.report.valid_tokens);
  EXPECT(selected.report.kept_tokens == kept,
         "the mask keeps %" PRId64 " tokens, the report says %" PRId64, kept,
         selected.report.kept_tokens);
  EXPECT(selected.report.sequences == ROWS, "expected %d sequences, found %" PRId64, ROWS,
         selected.report.sequences);
}

// ------------------------------------------------------------------------------------------ splits

static void splits_change_nothing(const check_subject *subject)
{
  const check_values values = spread(subject);
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const check_selected whole = check_select_ok("one micro-batch", subject, instance,
                                               check_split(&values, 1, &form), 1, NULL);
  static const int parts[] = {2, 3, ROWS};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; ++i) {
    const check_selected split =
        check_select_ok("several micro-batches", subject, instance,
                        check_split(&values, parts[i], &form), parts[i], NULL);
    expect_same_mask("several micro-batches", &split, &whole);
  }
}

static void selection_repeats(const check_subject *subject)
{
  const check_values values = spread(subject);
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  rft_batch *const batch = check_batch(&values, &form);
  const check_selected first =
      check_select_ok("first selection", subject, instance, &batch, 1, NULL);
  const check_selected second =
      check_select_ok("second selection", subject, instance, &batch, 1, NULL);
  expect_same_mask("the same selection again", &second, &first);
}

static void selections_are_independent(const check_subject *subject)
{
  rng r = {subject->seed + 1};
  const check_layout layout = {.placement = PLAIN};
  const check_values values[] = {spread(subject), check_values_spread(&r, ROWS, COLUMNS)};
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  rft_selection *selections[2];
  rft_batch *batches[2];
  for (int i = 0; i < 2; ++i) {
    batches[i] = check_batch(&values[i], &form);
    selections[i] = check_begin(subject, instance);
  }
  check_add(subject, selections[0], batches[0]);
  check_add(subject, selections[1], batches[1]);
  check_finish(subject, selections[1]);
  check_finish(subject, selections[0]);
  for (int i = 0; i < 2; ++i) {
    const rft_tensor *const mask = check_mask_like(batches[i], DTYPE_UINT8, &layout);
    const check_selected alone =
        check_select_ok("one selection", subject, instance, &batches[i], 1, NULL);
    EXPECT(subject->loss->selection_mask(selections[i], 0, mask, NULL) == RFT_OK,
           "selection_mask fails beside another selection");
    EXPECT(is_mask(mask, &alone), "two selections at once: another mask than one alone");
  }
}

static void batches_are_borrowed(const check_subject *subject)
{
  const check_values values = spread(subject);
  check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  rft_batch *const kept = check_batch(&values, &form);
  const check_selected expected =
      check_select_ok("ordinary batch", subject, instance, &kept, 1, NULL);
  form.layout.placement = GUARD_AFTER;
  rft_batch *const batch = check_batch(&values, &form);
  rft_selection *const selection = check_begin(subject, instance);
  check_add(subject, selection, batch);
  const rft_tensor *const tensors[] = {batch->logprob, batch->old_logprob, batch->proximal_logprob,
                                       batch->advantages, batch->mask};
  for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; ++i) {
    check_unmap(tensors[i]->data,
                (size_t)(check_tensor_count(tensors[i]) * tensors[i]->dtype.bits / 8));
  }
  check_finish(subject, selection);
  const check_layout layout = {.placement = PLAIN};
  const rft_tensor *const mask = check_mask_like(kept, DTYPE_UINT8, &layout);
  EXPECT(subject->loss->selection_mask(selection, 0, mask, NULL) == RFT_OK,
         "selection_mask fails after the batch was freed");
  EXPECT(is_mask(mask, &expected), "after the batch was freed the mask is another one");
}

static void selected_junk_has_no_influence(const check_subject *subject)
{
  const check_values values = spread(subject);
  const check_values spoilt = check_values_copy(&values);
  const double junk[] = {NAN, INFINITY, -INFINITY, 3e38};
  for (int64_t i = 0; i < values.rows * values.columns; ++i) {
    if (values.mask[i] == 0) {
      spoilt.logprob[i] = junk[i % 4];
      spoilt.old_logprob[i] = junk[(i + 1) % 4];
      spoilt.proximal_logprob[i] = junk[(i + 2) % 4];
      spoilt.advantages[i] = junk[(i + 3) % 4];
    }
  }
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  rft_batch *const batches[] = {check_batch(&values, &form), check_batch(&spoilt, &form)};
  const check_selected expected =
      check_select_ok("ordinary batch", subject, instance, &batches[0], 1, NULL);
  const check_selected found =
      check_select_ok("junk in masked slots", subject, instance, &batches[1], 1, NULL);
  expect_same_mask("junk in masked slots", &found, &expected);
}

// --------------------------------------------------------------------------------------- emptiness

static void no_batch(const check_subject *subject)
{
  const check_selected selected =
      check_select_ok("no batch", subject, check_create(subject), NULL, 0, NULL);
  EXPECT(selected.report.valid_tokens == 0 && selected.report.kept_tokens == 0 &&
             selected.report.sequences == 0,
         "no batch was added, and the report counts %" PRId64 " tokens",
         selected.report.valid_tokens);
}

static void no_valid_token(const check_subject *subject)
{
  const check_values values = spread(subject);
  memset(values.mask, 0, (size_t)(values.rows * values.columns) * sizeof(double));
  const check_form form = check_form_plain();
  rft_batch *const batch = check_batch(&values, &form);
  const check_selected selected = check_select_ok("a batch without a valid token", subject,
                                                  check_create(subject), &batch, 1, NULL);
  EXPECT(selected.report.valid_tokens == 0 && selected.report.kept_tokens == 0 &&
             selected.report.sequences == 0,
         "no token is valid, and the report counts %" PRId64 " tokens, %" PRId64 " sequences",
         selected.report.valid_tokens, selected.report.sequences);
}

// ------------------------------------------------------------------------------------ out of order

static void expect_refused(const char *what, int32_t code, const rft_error *error)
{
  EXPECT(code != RFT_OK, "%s: it is accepted", what);
  EXPECT(error->code == code && error->message[0] != '\0', "%s: there is no error message", what);
}

static void mask_before_finish(const check_subject *subject)
{
  const check_layout layout = {.placement = PLAIN};
  rft_batch *const batch = check_ordinary_batch(subject);
  const rft_tensor *const mask = check_mask_like(batch, DTYPE_UINT8, &layout);
  rft_error error = {.struct_size = sizeof error};
  rft_selection *const selection = check_begin(subject, check_create(subject));
  check_add(subject, selection, batch);
  expect_refused("selection_mask before selection_finish",
                 subject->loss->selection_mask(selection, 0, mask, &error), &error);
  subject->loss->selection_end(selection);
}

static void add_after_finish(const check_subject *subject)
{
  rft_batch *const batch = check_ordinary_batch(subject);
  rft_error error = {.struct_size = sizeof error};
  rft_selection *const selection = check_begin(subject, check_create(subject));
  check_add(subject, selection, batch);
  check_finish(subject, selection);
  expect_refused("selection_add after selection_finish",
                 subject->loss->selection_add(selection, batch, &error), &error);
  subject->loss->selection_end(selection);
}

static void finish_once(const check_subject *subject)
{
  rft_error error = {.struct_size = sizeof error};
  double *const metrics =
      check_memory((size_t)subject->loss->metric_count * sizeof *metrics, PLAIN);
  rft_selection_report report = check_report(subject, metrics);
  rft_selection *const selection = check_begin(subject, check_create(subject));
  check_add(subject, selection, check_ordinary_batch(subject));
  check_finish(subject, selection);
  expect_refused("a second selection_finish",
                 subject->loss->selection_finish(selection, NULL, &report, &error), &error);
  EXPECT(report.valid_tokens == -1, "a second selection_finish fails and writes the report");
  subject->loss->selection_end(selection);
}

static void finish_after_a_failed_add(const check_subject *subject)
{
  rft_error error = {.struct_size = sizeof error};
  double *const metrics =
      check_memory((size_t)subject->loss->metric_count * sizeof *metrics, PLAIN);
  rft_selection_report report = check_report(subject, metrics);
  rft_batch *const bad = check_ordinary_batch(subject);
  bad->logprob = NULL;
  rft_selection *const selection = check_begin(subject, check_create(subject));
  check_add(subject, selection, check_ordinary_batch(subject));
  expect_refused("a batch without logprob", subject->loss->selection_add(selection, bad, &error),
                 &error);
  expect_refused("selection_finish after selection_add has failed",
                 subject->loss->selection_finish(selection, NULL, &report, &error), &error);
  EXPECT(report.valid_tokens == -1, "selection_finish fails and writes the report");
  subject->loss->selection_end(selection);
}

static void end_at_any_point(const check_subject *subject)
{
  rft_batch *const batch = check_ordinary_batch(subject);
  rft_batch *const bad = check_ordinary_batch(subject);
  bad->logprob = NULL;
  rft_instance *const instance = check_create(subject);
  for (int point = 0; point < 4; ++point) {
    rft_selection *const selection = check_begin(subject, instance);
    if (point > 0) {
      check_add(subject, selection, batch);
    }
    if (point == 2) {
      subject->loss->selection_add(selection, bad, NULL);
    }
    if (point == 3) {
      check_finish(subject, selection);
    }
    subject->loss->selection_end(selection);
  }
  subject->loss->destroy(instance);
}

// ------------------------------------------------------------------------------------------- masks

static void mask_index(const check_subject *subject)
{
  static const int64_t indices[] = {-1, 1, INT64_MAX, INT64_MIN};
  const check_layout layout = {.placement = PLAIN};
  rft_batch *const batch = check_ordinary_batch(subject);
  const rft_tensor *const mask = check_mask_like(batch, DTYPE_UINT8, &layout);
  rft_selection *const selection = check_begin(subject, check_create(subject));
  check_add(subject, selection, batch);
  check_finish(subject, selection);
  for (size_t i = 0; i < sizeof indices / sizeof indices[0]; ++i) {
    rft_error error = {.struct_size = sizeof error};
    expect_refused("a batch_index that was not added",
                   subject->loss->selection_mask(selection, indices[i], mask, &error), &error);
  }
  subject->loss->selection_end(selection);
}

static rft_selection *finished(const check_subject *subject, const rft_batch *batch)
{
  rft_selection *const selection = check_begin(subject, check_create(subject));
  check_add(subject, selection, batch);
  check_finish(subject, selection);
  return selection;
}

static void masks_of_any_layout(const check_subject *subject)
{
  static const check_layout layouts[] = {{.placement = GUARD_AFTER},
                                         {.placement = GUARD_BEFORE},
                                         {.placement = GUARD_AFTER, .arrangement = TRANSPOSED},
                                         {.placement = GUARD_AFTER, .arrangement = REVERSED},
                                         {.placement = GUARD_AFTER, .arrangement = GAPPED},
                                         {.placement = GUARD_AFTER, .arrangement = OFFSET}};
  const check_values values = spread(subject);
  const check_form form = check_form_plain();
  rft_batch *const batch = check_batch(&values, &form);
  const check_selected expected =
      check_select_ok("ordinary batch", subject, check_create(subject), &batch, 1, NULL);
  rft_selection *const selection = finished(subject, batch);
  for (size_t i = 0; i < 2 * sizeof layouts / sizeof layouts[0]; ++i) {
    rft_error error = {.struct_size = sizeof error};
    const rft_tensor *const mask =
        check_mask_like(batch, i % 2 == 0 ? DTYPE_UINT8 : DTYPE_BOOL, &layouts[i / 2]);
    const int32_t code = subject->loss->selection_mask(selection, 0, mask, &error);
    EXPECT(code == RFT_OK, "layout %zu: selection_mask returns %d: %.400s", i / 2, code,
           error.message);
    EXPECT(is_mask(mask, &expected), "layout %zu: another mask than a compact one", i / 2);
  }
  subject->loss->selection_end(selection);
}

static void wrong_masks(const check_subject *subject)
{
  const check_layout layout = {.placement = PLAIN};
  rft_batch *const batch = check_ordinary_batch(subject);
  rft_selection *const selection = finished(subject, batch);
  rft_tensor *const device = check_mask_like(batch, DTYPE_UINT8, &layout);
  device->device.type = 7;
  const struct {
    const char *what;
    const rft_tensor *mask;
  } masks[] = {{"mask NULL", NULL},
               {"a mask of float32", check_mask_like(batch, DTYPE_FLOAT32, &layout)},
               {"a mask of int32", check_mask_like(batch, DTYPE_INT32, &layout)},
               {"a mask of a row less", check_tensor(NULL, 2, 3, 6, DTYPE_UINT8, &layout)},
               {"a mask of one dimension", check_tensor(NULL, 1, 1, 24, DTYPE_UINT8, &layout)},
               {"a mask on a Vulkan device", device}};
  for (size_t i = 0; i < sizeof masks / sizeof masks[0]; ++i) {
    rft_error error = {.struct_size = sizeof error};
    expect_refused(masks[i].what,
                   subject->loss->selection_mask(selection, 0, masks[i].mask, &error), &error);
    size_t size = 0;
    const unsigned char *const bytes =
        masks[i].mask == NULL ? NULL : check_tensor_bytes(masks[i].mask, &size);
    for (size_t b = 0; b < size; ++b) {
      EXPECT(bytes[b] == 0xA5, "%s: it was refused and written", masks[i].what);
    }
  }
  subject->loss->selection_end(selection);
}

// ----------------------------------------------------------------------------------------- reports

static void report_has_its_metrics(const check_subject *subject)
{
  rft_batch *const batch = check_ordinary_batch(subject);
  const check_selected selected =
      check_select_ok("ordinary batch", subject, check_create(subject), &batch, 1, NULL);
  for (int64_t i = 0; i < subject->loss->metric_count; ++i) {
    const rft_metric *const metric = subject->loss->metrics[i];
    const bool expected =
        metric->phase == RFT_METRIC_SELECTION && metric->combine != RFT_COMBINE_RATIO;
    const bool written = selected.metrics[i] != UNWRITTEN;
    EXPECT(written == expected, "metric \"%.64s\" is %s by selection_finish", metric->name,
           written ? "written" : "not written");
    EXPECT(!written || isfinite(selected.metrics[i]), "metric \"%.64s\" is %g", metric->name,
           selected.metrics[i]);
  }
}

static void masks_go_into_evaluate(const check_subject *subject)
{
  const check_layout layout = {.placement = PLAIN};
  const check_values values = spread(subject);
  const check_form form = check_form_plain();
  rft_batch *const batch = check_batch(&values, &form);
  const rft_instance *const instance = check_create(subject);
  const check_selected selected =
      check_select_ok("ordinary batch", subject, instance, &batch, 1, NULL);
  const rft_reduction reduction = check_reduction_of(&selected.report);
  const rft_tensor *const keep =
      check_tensor(selected.mask, 2, ROWS, COLUMNS, DTYPE_UINT8, &layout);
  const check_outcome outcome = check_evaluate_ok("with the selection's mask", subject, instance,
                                                  batch, keep, &reduction, NULL);
  EXPECT(isfinite(outcome.loss), "the loss is %g", outcome.loss);
  for (int64_t i = 0; i < outcome.count; ++i) {
    EXPECT(selected.mask[i] != 0 || outcome.gradient[i] == 0,
           "a dropped token at position %" PRId64 " has a gradient of %g", i, outcome.gradient[i]);
  }
}

static const check CHECKS[] = {
    {801, "selects", "P7", CHECK_SELECTION, true, "creates",
     "A selection counts right, and its mask keeps valid tokens only.", selects},
    {802, "splits_change_nothing", "P13", CHECK_SELECTION, true, "selection_repeats",
     "Any split into micro-batches gives the same mask.", splits_change_nothing},
    {803, "selection_repeats", "P14", CHECK_SELECTION, true, "selects",
     "The same selection gives the same mask.", selection_repeats},
    {804, "selections_are_independent", "P14", CHECK_SELECTION, true, "selection_repeats",
     "Two selections at once do not hear of each other.", selections_are_independent},
    {805, "batches_are_borrowed", "P13", CHECK_SELECTION, true, "selection_repeats",
     "A batch that was added may be freed.", batches_are_borrowed},
    {806, "selected_junk_has_no_influence", "P13", CHECK_SELECTION, true, "selection_repeats",
     "Nothing in a masked slot changes the mask or the counts.", selected_junk_has_no_influence},
    {807, "no_batch", "P17", CHECK_SELECTION, true, "selects",
     "A selection over no batch counts 0.", no_batch},
    {808, "no_valid_token", "P17", CHECK_SELECTION, true, "selects",
     "A selection over no valid token counts 0.", no_valid_token},
    {809, "mask_before_finish", "P8, P15", CHECK_SELECTION, true, "selects",
     "selection_mask before selection_finish is refused.", mask_before_finish},
    {810, "add_after_finish", "P8, P15", CHECK_SELECTION, true, "selects",
     "selection_add after selection_finish is refused.", add_after_finish},
    {811, "finish_once", "P8, P9, P15", CHECK_SELECTION, true, "selects",
     "A second selection_finish is refused.", finish_once},
    {812, "finish_after_a_failed_add", "P8, P9, P17", CHECK_SELECTION, true, "selects",
     "selection_finish after a selection_add that failed is refused.", finish_after_a_failed_add},
    {813, "end_at_any_point", "P9, P13", CHECK_SELECTION, true, "selects",
     "A selection may end at any point.", end_at_any_point},
    {814, "mask_index", "P8", CHECK_SELECTION, true, "selects",
     "A batch_index that was not added is refused.", mask_index},
    {815, "masks_of_any_layout", "P13", CHECK_SELECTION, true, "selection_repeats",
     "A mask may be bool or uint8 of any strides, and is not overrun.", masks_of_any_layout},
    {816, "wrong_masks", "P8, P9", CHECK_SELECTION, true, "selects",
     "A mask of another shape, dtype or device is refused, and stays.", wrong_masks},
    {817, "report_has_its_metrics", "P13", CHECK_SELECTION, true, "selects",
     "selection_finish writes the metrics of its phase that are no ratios, and no other.",
     report_has_its_metrics},
    {818, "masks_go_into_evaluate", "P13", CHECK_SELECTION, true, "dropped_tokens_are_left_out",
     "evaluate takes the mask and the counts of the selection.", masks_go_into_evaluate},
};

const check_area selection_checks = CHECK_AREA(CHECKS);
