// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The plugin under test, opened with dlopen as any host would, and one call for each thing that a
// test asks of it. What these functions make lives until plugin_fixture_end, the .fini of every
// suite that uses them.

#ifndef TEST_PLUGIN_FIXTURE_H
#define TEST_PLUGIN_FIXTURE_H

#include "batches.h"
#include "host_fixture.h"
#include "rft/plugin.h"

/// The plugin's tables and its loss "m2po"; the first call loads them.
const rft_plugin *m2po_plugin(void);
const rft_policy_loss *m2po(void);

void plugin_fixture_end(void);

/// An error that is ready to be filled.
rft_error error_new(void);

/// An instance with that config text, on a host or NULL: one without services. Must succeed.
rft_instance *m2po_create_on(const rft_host *host, const char *config);
rft_instance *m2po_create(const char *config);

/// The error of a create that must fail.
rft_error m2po_create_error(const char *config);

/// What a selection gives: the report, every metric, and a compact uint8 mask for each micro-batch.
typedef struct selection_result {
  rft_selection_report report;
  const double *metrics;
  rft_tensor **mask;
} selection_result;

int32_t m2po_select(const rft_instance *instance, const batch_list *list, selection_result *result,
                    rft_error *error);

/// What evaluate gives, the gradient in a compact tensor of the dtype asked for.
typedef struct evaluation {
  double loss;
  const double *metrics;
  rft_tensor *gradient;
} evaluation;

int32_t m2po_evaluate(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                      const rft_reduction *reduction, rft_dtype gradient, evaluation *result,
                      rft_error *error);

/// The same two, which must succeed. `reduction_of` is what the selection hands to each evaluate.
selection_result select_ok(const rft_instance *instance, const batch_list *list);
evaluation evaluate_ok(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                       const rft_reduction *reduction, rft_dtype gradient);
rft_reduction reduction_of(const rft_selection_report *report);

/// A metric by name, and an array whose entries hold a value that no metric has.
double metric(const double *metrics, const char *name);
double *metrics_new(void);
#define METRIC_UNWRITTEN (-12345.0)

#endif // TEST_PLUGIN_FIXTURE_H
