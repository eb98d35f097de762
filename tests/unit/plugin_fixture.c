// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "plugin_fixture.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <string.h>

enum { MAX_INSTANCES = 4096 };

static rft_instance *instances[MAX_INSTANCES];
static int instance_count;

static const rft_plugin *load(void)
{
  static const char path[] = RFT_TEST_PLUGIN_DIR "/libm2po_plugin.so";
  void *const object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  cr_assert(object != NULL, "dlopen: %s", dlerror());
  rft_plugin_entry entry;
  // A function pointer from dlsym, as POSIX has it.
  *(void **)&entry = dlsym(object, RFT_PLUGIN_ENTRY_SYMBOL);
  cr_assert(entry != NULL, "%s: no symbol %s", path, RFT_PLUGIN_ENTRY_SYMBOL);
  const rft_plugin *plugin = NULL;
  rft_error error = error_new();
  const int32_t code = entry(host_new(HOST_SERIAL, 1), &plugin, &error);
  cr_assert_eq(code, RFT_OK, "%s", error.message);
  return plugin;
}

const rft_plugin *m2po_plugin(void)
{
  static const rft_plugin *plugin;
  if (plugin == NULL) {
    plugin = load();
  }
  return plugin;
}

const rft_policy_loss *m2po(void)
{
  const rft_plugin *const plugin = m2po_plugin();
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    if (strcmp(plugin->policy_losses[i]->name, "m2po") == 0) {
      return plugin->policy_losses[i];
    }
  }
  cr_assert_fail("the plugin has no policy loss m2po");
  return NULL;
}

void plugin_fixture_end(void)
{
  while (instance_count > 0) {
    m2po()->destroy(instances[--instance_count]);
  }
  test_free_all();
}

rft_error error_new(void)
{
  return (rft_error){.struct_size = sizeof(rft_error)};
}

rft_instance *m2po_create_on(const rft_host *host, const char *config)
{
  rft_instance *instance = NULL;
  rft_error error = error_new();
  const int32_t code =
      m2po()->create(m2po(), host, config, (int64_t)strlen(config), &instance, &error);
  cr_assert_eq(code, RFT_OK, "create with %s: %s", config, error.message);
  cr_assert(instance_count < MAX_INSTANCES);
  instances[instance_count++] = instance;
  return instance;
}

rft_instance *m2po_create(const char *config)
{
  return m2po_create_on(host_new(HOST_SERIAL, 1), config);
}

rft_error m2po_create_error(const char *config)
{
  rft_instance *const untouched = (rft_instance *)&instances;
  rft_instance *instance = untouched;
  rft_error error = error_new();
  const int32_t code = m2po()->create(m2po(), host_new(HOST_SERIAL, 1), config,
                                      (int64_t)strlen(config), &instance, &error);
  cr_assert_neq(code, RFT_OK, "create took %s", config);
  cr_assert_eq(code, error.code, "the error has another code than the result, for %s", config);
  cr_assert_eq(instance, untouched, "a failed create wrote its output, for %s", config);
  return error;
}

static rft_selection_report report_new(double *metrics)
{
  return (rft_selection_report){.struct_size = sizeof(rft_selection_report),
                                .metrics = metrics,
                                .metric_count = m2po()->metric_count};
}

static int32_t add_all(rft_selection *selection, const batch_list *list, rft_error *error)
{
  int32_t code = RFT_OK;
  for (int64_t k = 0; k < list->count && code == RFT_OK; ++k) {
    code = m2po()->selection_add(selection, list->batch[k], error);
  }
  return code;
}

static int32_t take_masks(const rft_selection *selection, const batch_list *list, rft_tensor **mask,
                          rft_error *error)
{
  int32_t code = RFT_OK;
  for (int64_t k = 0; k < list->count && code == RFT_OK; ++k) {
    mask[k] = tensor_like(list->batch[k]->logprob, uint8);
    code = m2po()->selection_mask(selection, k, mask[k], error);
  }
  return code;
}

int32_t m2po_select(const rft_instance *instance, const batch_list *list, selection_result *result,
                    rft_error *error)
{
  rft_selection *selection = NULL;
  int32_t code = m2po()->selection_begin(instance, &selection, error);
  if (code != RFT_OK) {
    return code;
  }
  double *const metrics = metrics_new();
  selection_result made = {report_new(metrics), metrics,
                           test_alloc(list->count * (int64_t)sizeof *made.mask)};
  code = add_all(selection, list, error);
  if (code == RFT_OK) {
    code = m2po()->selection_finish(selection, NULL, &made.report, error);
  }
  if (code == RFT_OK) {
    code = take_masks(selection, list, made.mask, error);
  }
  m2po()->selection_end(selection);
  if (code == RFT_OK) {
    *result = made;
  }
  return code;
}

int32_t m2po_evaluate(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                      const rft_reduction *reduction, rft_dtype gradient, evaluation *result,
                      rft_error *error)
{
  double *const metrics = metrics_new();
  rft_tensor *const slope = tensor_like(batch->logprob, gradient);
  rft_output output = {.struct_size = sizeof output,
                       .gradient = slope,
                       .metrics = metrics,
                       .metric_count = m2po()->metric_count};
  const int32_t code = m2po()->evaluate(instance, batch, mask, reduction, &output, error);
  if (code == RFT_OK) {
    *result = (evaluation){output.loss, metrics, slope};
  }
  return code;
}

selection_result select_ok(const rft_instance *instance, const batch_list *list)
{
  selection_result result;
  rft_error error = error_new();
  const int32_t code = m2po_select(instance, list, &result, &error);
  cr_assert_eq(code, RFT_OK, "selection: %s", error.message);
  return result;
}

evaluation evaluate_ok(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                       const rft_reduction *reduction, rft_dtype gradient)
{
  evaluation result;
  rft_error error = error_new();
  const int32_t code = m2po_evaluate(instance, batch, mask, reduction, gradient, &result, &error);
  cr_assert_eq(code, RFT_OK, "evaluate: %s", error.message);
  return result;
}

rft_reduction reduction_of(const rft_selection_report *report)
{
  return (rft_reduction){.struct_size = sizeof(rft_reduction),
                         .valid_tokens = report->valid_tokens,
                         .kept_tokens = report->kept_tokens,
                         .sequences = report->sequences};
}

double metric(const double *metrics, const char *name)
{
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    if (strcmp(m2po()->metrics[i]->name, name) == 0) {
      return metrics[i];
    }
  }
  cr_assert_fail("the loss has no metric %s", name);
  return NAN;
}

double *metrics_new(void)
{
  double *const metrics = test_alloc(m2po()->metric_count * (int64_t)sizeof *metrics);
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    metrics[i] = METRIC_UNWRITTEN;
  }
  return metrics;
}
