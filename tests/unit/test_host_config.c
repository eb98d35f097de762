// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Configs and presets through the host (H7).

#include "rft/host.h"
#include "scratch.h"

#include <criterion/criterion.h>
#include <string.h>

static rft_registry *registry;
static const rft_policy_loss *loss;

static void load(const char *fixture)
{
  scratch_begin();
  cr_assert_eq(rft_registry_create(NULL, &registry, NULL), RFT_OK);
  cr_assert_eq(rft_registry_load(registry, scratch_fixture(fixture, "x.so"), NULL), RFT_OK);
  cr_assert_eq(rft_registry_find_policy_loss(registry, "reinforce", &loss, NULL), RFT_OK);
}

static void load_good(void)
{
  load("good");
}

static void unload(void)
{
  rft_registry_destroy(registry);
  scratch_end();
}

TestSuite(host_config, .init = load_good, .fini = unload);

Test(host_config, is_completed)
{
  char *text = NULL;
  cr_assert_eq(rft_config_resolve(loss, NULL, 0, &text, NULL), RFT_OK);
  cr_expect_str_eq(text, "{\"factor\": 1.0}");
  rft_string_free(text);
}

Test(host_config, is_checked_before_the_plugin_sees_it)
{
  const char config[] = "{\"factr\": 3}";
  rft_error error = {.struct_size = sizeof error};
  rft_instance *instance = NULL;
  cr_expect_eq(rft_instance_create(registry, loss, config, sizeof config - 1, &instance, &error),
               RFT_INVALID_ARGUMENT);
  cr_expect_null(instance);
  cr_expect_str_eq(error.message,
                   "config key \"factr\" is not known: the nearest known key is \"factor\"");
}

Test(host_config, makes_an_instance)
{
  rft_instance *instance = NULL;
  cr_assert_eq(rft_instance_create(registry, loss, "{}", 2, &instance, NULL), RFT_OK);
  cr_assert_not_null(instance);
  loss->destroy(instance);
}

static void expect_preset(const char *args, const char *part)
{
  char *document = NULL;
  rft_error error = {.struct_size = sizeof error};
  cr_assert_eq(rft_preset_resolve(registry, "reinforce", args, &document, &error), RFT_OK, "%s",
               error.message);
  cr_expect_not_null(strstr(document, part), "%s", document);
  rft_string_free(document);
}

Test(host_config, preset_is_overlaid_and_completed)
{
  expect_preset(NULL, "\"factor\": 2.0");
  expect_preset("{\"factor\": 0.5}", "\"factor\": 0.5");
}

Test(host_config, preset_arguments_are_checked)
{
  char *document = NULL;
  rft_error error = {.struct_size = sizeof error};
  cr_expect_eq(rft_preset_resolve(registry, "reinforce", "{\"factor\": \"x\"}", &document, &error),
               RFT_INVALID_ARGUMENT);
  cr_expect_str_eq(error.message,
                   "config key \"factor\": expected a number, found the string \"x\"");
  cr_expect_eq(rft_preset_resolve(registry, "reinforce", "[]", &document, &error),
               RFT_INVALID_ARGUMENT);
  cr_expect_str_eq(error.message, "config: expected an object, found an array");
  cr_expect_eq(rft_preset_resolve(registry, "reinforced", NULL, &document, &error), RFT_NOT_FOUND);
  cr_expect_null(document);
}

static void load_lost_preset(void)
{
  load("lost_preset");
}

TestSuite(host_preset, .init = load_lost_preset, .fini = unload);

Test(host_preset, of_an_absent_loss_says_so)
{
  char *document = NULL;
  rft_error error = {.struct_size = sizeof error};
  cr_expect_eq(rft_preset_resolve(registry, "reinforce", NULL, &document, &error), RFT_NOT_FOUND);
  cr_expect_str_eq(error.message, "policy loss \"reinforced\" is not known: the nearest known one "
                                  "is \"reinforce\"");
}
