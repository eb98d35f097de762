// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What the tables say.

#include "check.h"
#include "exercise.h"
#include "hosts.h"
#include "support/name.h"
#include "verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// ------------------------------------------------------------------------------------------- texts

static void expect_text(const char *text, const char *what)
{
  EXPECT(text != NULL, "%s is NULL", what);
  EXPECT(text[0] != '\0', "%s is empty", what);
  EXPECT(check_is_plain_text(text), "%s is not one line of UTF-8", what);
}

// ------------------------------------------------------------------------------------------ checks

static void expect_size(uint32_t size, size_t least, const char *what)
{
  EXPECT(size >= least, "%s: expected struct_size of at least %zu, found %u", what, least, size);
}

static void expect_whole_loss(const rft_policy_loss *loss)
{
  EXPECT(loss != NULL, "a policy loss is NULL");
  expect_size(loss->struct_size, RFT_STRUCT_SIZE(rft_policy_loss, evaluate), "rft_policy_loss");
  EXPECT(loss->metric_count >= 0, "metric_count is negative");
  EXPECT(loss->metric_count == 0 || loss->metrics != NULL, "metrics is NULL");
  for (int64_t i = 0; i < loss->metric_count; ++i) {
    EXPECT(loss->metrics[i] != NULL, "metrics[%" PRId64 "] is NULL", i);
    expect_size(loss->metrics[i]->struct_size, RFT_STRUCT_SIZE(rft_metric, reserved), "rft_metric");
  }
}

static void expect_whole_preset(const rft_algorithm_preset *preset)
{
  EXPECT(preset != NULL, "an algorithm preset is NULL");
  expect_size(preset->struct_size, RFT_STRUCT_SIZE(rft_algorithm_preset, document),
              "rft_algorithm_preset");
}

static void expect_list(const void *list, int64_t count, const char *what)
{
  EXPECT(count >= 0, "%s: its count is negative", what);
  EXPECT(count == 0 || list != NULL, "%s is NULL", what);
}

static void tables_are_whole(const check_subject *subject)
{
  const rft_plugin *const plugin = subject->plugin;
  expect_list(plugin->policy_losses, plugin->policy_loss_count, "policy_losses");
  expect_list(plugin->algorithm_presets, plugin->algorithm_preset_count, "algorithm_presets");
  EXPECT(plugin->policy_loss_count + plugin->algorithm_preset_count > 0,
         "there is neither a loss nor a preset");
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    expect_whole_loss(plugin->policy_losses[i]);
  }
  for (int64_t i = 0; i < plugin->algorithm_preset_count; ++i) {
    expect_whole_preset(plugin->algorithm_presets[i]);
  }
}

static void functions_are_set(const check_subject *subject)
{
  for (int64_t i = 0; i < subject->plugin->policy_loss_count; ++i) {
    const rft_policy_loss *const loss = subject->plugin->policy_losses[i];
    const int selecting = (loss->selection_begin != NULL) + (loss->selection_add != NULL) +
                          (loss->selection_finish != NULL) + (loss->selection_mask != NULL) +
                          (loss->selection_end != NULL);
    EXPECT(loss->create != NULL && loss->destroy != NULL && loss->evaluate != NULL,
           "create, destroy and evaluate must all be set");
    EXPECT(selecting == 0 || selecting == 5,
           "expected all of the five selection functions or none, found %d", selecting);
    EXPECT(loss->name != NULL && loss->description != NULL && loss->config_schema != NULL,
           "name, description and config_schema must all be set");
  }
  EXPECT(subject->plugin->get_extension != NULL, "get_extension is NULL");
}

static void plugin_is_described(const check_subject *subject)
{
  const rft_plugin *const plugin = subject->plugin;
  expect_text(plugin->id, "the plugin's id");
  EXPECT(rft_is_plugin_id(plugin->id), "expected an id like \"org.example.loss\", found \"%.100s\"",
         plugin->id);
  expect_text(plugin->version, "the plugin's version");
  expect_text(plugin->description, "the plugin's description");
}

static void names_are_well_formed(const check_subject *subject)
{
  const rft_plugin *const plugin = subject->plugin;
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    const char *const name = plugin->policy_losses[i]->name;
    EXPECT(rft_is_name(name), "a policy loss is named \"%.100s\": expected [a-z][a-z0-9_]*", name);
    expect_text(plugin->policy_losses[i]->description, "the description of a policy loss");
  }
  for (int64_t i = 0; i < plugin->algorithm_preset_count; ++i) {
    const char *const name = plugin->algorithm_presets[i]->name;
    EXPECT(rft_is_name(name), "an algorithm preset is named \"%.100s\": expected [a-z][a-z0-9_]*",
           name == NULL ? "" : name);
    expect_text(plugin->algorithm_presets[i]->description, "the description of a preset");
  }
}

static void names_are_unique(const check_subject *subject)
{
  const rft_plugin *const plugin = subject->plugin;
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      EXPECT(strcmp(plugin->policy_losses[i]->name, plugin->policy_losses[j]->name) != 0,
             "two policy losses are named \"%.100s\"", plugin->policy_losses[i]->name);
    }
  }
  for (int64_t i = 0; i < plugin->algorithm_preset_count; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      EXPECT(strcmp(plugin->algorithm_presets[i]->name, plugin->algorithm_presets[j]->name) != 0,
             "two algorithm presets are named \"%.100s\"", plugin->algorithm_presets[i]->name);
    }
  }
}

static void capabilities_are_known(const check_subject *subject)
{
  const uint64_t capabilities = subject->loss->capabilities;
  EXPECT((capabilities & ~(RFT_LOSS_COLLECTIVES | RFT_LOSS_PROXIMAL)) == 0 ||
             subject->plugin->abi_minor > RFT_ABI_MINOR,
         "capability bits that ABI minor %u does not have: %#" PRIx64, subject->plugin->abi_minor,
         capabilities);
  EXPECT((capabilities & RFT_LOSS_COLLECTIVES) == 0 || subject->loss->selection_finish != NULL,
         "it accepts collectives and has no selection_finish");
}

static bool is_divisible(const rft_policy_loss *loss, int64_t index)
{
  return index >= 0 && index < loss->metric_count &&
         loss->metrics[index]->combine != RFT_COMBINE_RATIO;
}

static void expect_metric(const rft_policy_loss *loss, const rft_metric *metric)
{
  const char *const name = metric->name;
  EXPECT(rft_is_name(name), "a metric is named \"%.100s\": expected [a-z][a-z0-9_]*",
         name == NULL ? "" : name);
  char what[128];
  snprintf(what, sizeof what, "the description of metric \"%.64s\"", name);
  expect_text(metric->description, what);
  EXPECT(metric->phase == RFT_METRIC_EVALUATE ||
             (metric->phase == RFT_METRIC_SELECTION && loss->selection_begin != NULL),
         "metric \"%.64s\": phase %d is never reached", name, metric->phase);
  EXPECT(metric->combine >= RFT_COMBINE_NONE && metric->combine <= RFT_COMBINE_RATIO,
         "metric \"%.64s\": combine %d is not known", name, metric->combine);
  EXPECT(
      metric->combine != RFT_COMBINE_RATIO ||
          (is_divisible(loss, metric->numerator) && is_divisible(loss, metric->denominator)),
      "metric \"%.64s\": numerator and denominator must be indices of metrics that are no ratios",
      name);
  EXPECT(metric->combine == RFT_COMBINE_RATIO ||
             (metric->numerator == 0 && metric->denominator == 0),
         "metric \"%.64s\": it is no ratio, and has a numerator or denominator", name);
}

static void metrics_are_well_formed(const check_subject *subject)
{
  const rft_policy_loss *const loss = subject->loss;
  for (int64_t i = 0; i < loss->metric_count; ++i) {
    expect_metric(loss, loss->metrics[i]);
    for (int64_t j = 0; j < i; ++j) {
      EXPECT(strcmp(loss->metrics[i]->name, loss->metrics[j]->name) != 0,
             "two metrics are named \"%.64s\"", loss->metrics[i]->name);
    }
  }
}

static void unknown_extension(const check_subject *subject)
{
  EXPECT(subject->plugin->get_extension("org.example.nobody/1") == NULL,
         "an extension that nobody has is given");
}

// FNV-1a over the structs of the tables.
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001B3);
  }
  return hash;
}

static uint64_t hash_tables(const rft_plugin *plugin)
{
  uint64_t hash = hash_bytes(UINT64_C(0xCBF29CE484222325), plugin, sizeof *plugin);
  for (int64_t i = 0; i < plugin->policy_loss_count; ++i) {
    const rft_policy_loss *const loss = plugin->policy_losses[i];
    hash = hash_bytes(hash, loss, sizeof *loss);
    hash = hash_bytes(hash, loss->config_schema, strlen(loss->config_schema));
    for (int64_t m = 0; m < loss->metric_count; ++m) {
      hash = hash_bytes(hash, loss->metrics[m], sizeof *loss->metrics[m]);
    }
  }
  for (int64_t i = 0; i < plugin->algorithm_preset_count; ++i) {
    hash = hash_bytes(hash, plugin->algorithm_presets[i], sizeof *plugin->algorithm_presets[i]);
  }
  return hash;
}

static void tables_stay(const check_subject *subject)
{
  const uint64_t before = hash_tables(subject->plugin);
  for (int64_t i = 0; i < subject->plugin->policy_loss_count; ++i) {
    check_subject one = *subject;
    one.loss = subject->plugin->policy_losses[i];
    one.config = "{}";
    check_exercise(&one);
  }
  EXPECT(hash_tables(subject->plugin) == before, "the tables have changed while they were used");
}

static const check CHECKS[] = {
    {321, "tables_are_whole", "P1, P21", CHECK_PLUGIN, true, "entry_gives_tables",
     "Every table is there, with at least the struct_size of version 1.0.", tables_are_whole},
    {322, "functions_are_set", "P7", CHECK_PLUGIN, true, "tables_are_whole",
     "The five selection functions are all set or all NULL; every other pointer is set.",
     functions_are_set},
    {323, "plugin_is_described", "P4", CHECK_PLUGIN, true, "tables_are_whole",
     "The plugin has a reverse domain name as id, a version and a description.",
     plugin_is_described},
    {324, "names_are_well_formed", "P4", CHECK_PLUGIN, true, "functions_are_set",
     "Names of losses and presets are [a-z][a-z0-9_]*, and both have descriptions.",
     names_are_well_formed},
    {325, "names_are_unique", "P4", CHECK_PLUGIN, true, "names_are_well_formed",
     "No two losses and no two presets have one name.", names_are_unique},
    {326, "capabilities_are_known", "P3, P7", CHECK_LOSS, true, "functions_are_set",
     "Capabilities are known bits, and go with the functions that are set.",
     capabilities_are_known},
    {327, "metrics_are_well_formed", "P4", CHECK_LOSS, true, "functions_are_set",
     "Metrics have unique names, descriptions, and a phase and combination that are known.",
     metrics_are_well_formed},
    {328, "unknown_extension", "P4", CHECK_PLUGIN, true, "functions_are_set",
     "An extension that is not known is NULL.", unknown_extension},
    {329, "tables_stay", "P13, P14", CHECK_PLUGIN, true, "survives",
     "Using the plugin changes no table.", tables_stay},
};

const check_area table_checks = CHECK_AREA(CHECKS);
