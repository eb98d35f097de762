// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Batches recorded from a real language model: the exact answers, and the masks of AReaL's own
// function under the preset m2po_areal. The reference is held to both as well.

#include "compare.h"
#include "plugin_fixture.h"
#include "recorded.h"
#include "reference_config.h"

static void end(void)
{
  plugin_fixture_end();
  recorded_close();
}

TestSuite(recorded, .fini = end);

static batch_list split_rows(const rft_batch *batch, int64_t parts)
{
  int64_t *const sizes = test_alloc(parts * (int64_t)sizeof *sizes);
  const int64_t rows = batch->logprob->shape[0];
  for (int64_t k = 0; k < parts; ++k) {
    sizes[k] = (k + 1) * rows / parts - k * rows / parts;
  }
  return batch_split(batch, parts, sizes);
}

static void check_masks(const recorded_case *recorded, const batch_list *list,
                        const selection_result *selection)
{
  const bool *const keep = recorded_keep(recorded);
  int64_t position = 0;
  for (int64_t k = 0; k < list->count; ++k) {
    for (int64_t i = 0; i < tensor_count(selection->mask[k]); ++i, ++position) {
      cr_assert_eq(tensor_get(selection->mask[k], i), keep[position],
                   "%s in %d micro-batches: position %d", recorded_label(recorded),
                   (int)list->count, (int)position);
    }
  }
  cr_expect_eq(position, batch_count(recorded->batch));
}

static void check_counts(const recorded_case *recorded, const selection_result *selection)
{
  static const char *const names[] = {"valid_tokens", "trust_region_tokens", "masked_tokens",
                                      "m2_before", "m2_after"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    const double value = metric(selection->metrics, names[i]);
    cr_expect_eq(value, recorded_number(recorded, names[i]), "%s: %s is %.17g",
                 recorded_label(recorded), names[i], value);
  }
}

/// Loss and gradient of the optimizer batch, put together from its micro-batches.
typedef struct outcome {
  double loss;
  double *gradient;
} outcome;

static outcome evaluate_parts(const rft_instance *instance, const batch_list *list,
                              const selection_result *selection)
{
  const rft_reduction reduction = reduction_of(&selection->report);
  outcome result = {0, test_alloc(batch_list_positions(list) * (int64_t)sizeof(double))};
  int64_t position = 0;
  for (int64_t k = 0; k < list->count; ++k) {
    const evaluation part =
        evaluate_ok(instance, list->batch[k], selection->mask[k], &reduction, float32);
    result.loss += part.loss;
    for (int64_t i = 0; i < batch_count(list->batch[k]); ++i) {
      result.gradient[position++] = tensor_get(part.gradient, i);
    }
  }
  return result;
}

static void check_loss(const recorded_case *recorded, const outcome *got)
{
  double sum = 0;
  for (int64_t i = 0; i < batch_count(recorded->batch); ++i) {
    sum += fabs(got->gradient[i]);
  }
  cr_expect(is_close(got->loss, recorded_number(recorded, "loss"), LOSS_TOLERANCE),
            "%s: loss is %.17g", recorded_label(recorded), got->loss);
  cr_expect(is_close(sum, recorded_number(recorded, "gradient_abs_sum"), LOSS_TOLERANCE),
            "%s: sum of |gradient| is %.17g", recorded_label(recorded), sum);
}

static outcome check_split(const recorded_case *recorded, const rft_instance *instance,
                           int64_t parts)
{
  const batch_list list = split_rows(recorded->batch, parts);
  const selection_result selection = select_ok(instance, &list);
  check_masks(recorded, &list, &selection);
  check_counts(recorded, &selection);
  const outcome got = evaluate_parts(instance, &list, &selection);
  check_loss(recorded, &got);
  return got;
}

ParameterizedTestParameters(recorded, exact_answer_however_split)
{
  return recorded_parameters("recorded_batches.json");
}

ParameterizedTest(int *index, recorded, exact_answer_however_split)
{
  const recorded_case recorded = recorded_open("recorded_batches.json", *index);
  reference_config config = reference_config_default();
  config.selection.tau = recorded.m2_threshold;
  rft_instance *const instance = m2po_create(reference_config_text(&config));
  const outcome whole = check_split(&recorded, instance, 1);
  static const int64_t splits[] = {3, 8};
  for (size_t s = 0; s < sizeof splits / sizeof splits[0]; ++s) {
    const outcome got = check_split(&recorded, instance, splits[s]);
    for (int64_t i = 0; i < batch_count(recorded.batch); ++i) {
      cr_assert(same_bits(whole.gradient[i], got.gradient[i]),
                "%s: gradient[%d] depends on the split", recorded_label(&recorded), (int)i);
    }
  }
}

static const char *document_of_preset(const char *name)
{
  const rft_plugin *const plugin = m2po_plugin();
  for (int64_t i = 0; i < plugin->algorithm_preset_count; ++i) {
    if (strcmp(plugin->algorithm_presets[i]->name, name) == 0) {
      return plugin->algorithm_presets[i]->document;
    }
  }
  cr_assert_fail("the plugin has no preset %s", name);
  return NULL;
}

// The preset's policy_loss_fn_args, with another threshold.
static reference_config areal_config(double m2_threshold)
{
  json_t *const document = json_loads(document_of_preset("m2po_areal"), 0, NULL);
  json_t *const args = json_object_get(document, "policy_loss_fn_args");
  json_object_set_new(args, "m2_threshold", json_real(m2_threshold));
  const reference_config config = reference_config_read(args);
  json_decref(document);
  return config;
}

ParameterizedTestParameters(recorded, areal_masks)
{
  return recorded_parameters("areal_masks.json");
}

ParameterizedTest(int *index, recorded, areal_masks)
{
  const recorded_case recorded = recorded_open("areal_masks.json", *index);
  recorded.batch->proximal_logprob = recorded.batch->logprob;
  const reference_config config = areal_config(recorded.m2_threshold);
  const batch_list list = batch_list_of(recorded.batch);
  const selection_result selection = select_ok(m2po_create(reference_config_text(&config)), &list);
  check_masks(&recorded, &list, &selection);
}

static void check_reference(const recorded_case *recorded, const reference_selection *config)
{
  const int64_t count = batch_count(recorded->batch);
  const bool *const expected = recorded_keep(recorded);
  bool *const keep = test_alloc(count);
  reference_select(config, batch_tokens(recorded->batch), count, keep);
  for (int64_t i = 0; i < count; ++i) {
    cr_assert_eq(keep[i], expected[i], "%s: position %d", recorded_label(recorded), (int)i);
  }
}

ParameterizedTestParameters(recorded, reference_gives_the_exact_answer)
{
  return recorded_parameters("recorded_batches.json");
}

ParameterizedTest(int *index, recorded, reference_gives_the_exact_answer)
{
  const recorded_case recorded = recorded_open("recorded_batches.json", *index);
  check_reference(&recorded, &(reference_selection){.tau = recorded.m2_threshold});
}

ParameterizedTestParameters(recorded, reference_gives_areal_masks)
{
  return recorded_parameters("areal_masks.json");
}

ParameterizedTest(int *index, recorded, reference_gives_areal_masks)
{
  const recorded_case recorded = recorded_open("areal_masks.json", *index);
  recorded.batch->proximal_logprob = recorded.batch->logprob;
  check_reference(&recorded, &(reference_selection){.tau = recorded.m2_threshold,
                                                    .all_tokens = true,
                                                    .proximal = true,
                                                    .below = true,
                                                    .min_kept = 1});
}
