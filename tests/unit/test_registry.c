// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Loading: what is found, in which order, and what is refused with which words (H1 to H6).

#include "rft/host.h"
#include "scratch.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(registry, .init = scratch_begin, .fini = scratch_end);

static rft_registry *registry_new(void)
{
  rft_registry *registry = NULL;
  cr_assert_eq(rft_registry_create(NULL, &registry, NULL), RFT_OK);
  return registry;
}

static rft_registry *scan(void)
{
  rft_registry *const registry = registry_new();
  rft_error error = {.struct_size = sizeof error};
  cr_assert_eq(rft_registry_scan(registry, scratch_directory(), &error), RFT_OK, "%s",
               error.message);
  return registry;
}

static void expect_contains(const char *text, const char *part)
{
  cr_expect_not_null(strstr(text, part), "\"%s\" is not in: %s", part, text);
}

// The directory holds one file; it is refused, with that code and those words.
static void expect_refused(const char *name, int32_t code, const char *reason)
{
  rft_registry *const registry = scan();
  cr_expect_eq(rft_registry_plugin_count(registry), 0);
  cr_assert_eq(rft_registry_refusal_count(registry), 1, "%s", name);
  const rft_refusal *const refusal = rft_registry_refusal(registry, 0);
  cr_expect_str_eq(refusal->path, scratch_path(name));
  cr_expect_eq(refusal->code, code, "%s: %s", rft_code_name(refusal->code), refusal->reason);
  expect_contains(refusal->reason, reason);
  rft_registry_destroy(registry);
}

// Each fixture under its own name: what dlopen has once mapped stays.
static void expect_fixture_refused(const char *fixture, int32_t code, const char *reason)
{
  char name[64];
  snprintf(name, sizeof name, "%s.so", fixture);
  const char *const path = scratch_fixture(fixture, name);
  expect_refused(name, code, reason);
  remove(path);
}

// ------------------------------------------------------------------------------------------- found

Test(registry, loads_what_a_plugin_offers)
{
  const char *const path = scratch_fixture("good", "good.so");
  rft_registry *const registry = scan();
  cr_assert_eq(rft_registry_plugin_count(registry), 1);
  cr_expect_eq(rft_registry_refusal_count(registry), 0);
  cr_expect_str_eq(rft_registry_plugin(registry, 0)->id, "org.example.fixture");
  cr_expect_str_eq(rft_registry_plugin_path(registry, 0), path);
  const rft_policy_loss *loss = NULL;
  const rft_algorithm_preset *preset = NULL;
  cr_expect_eq(rft_registry_find_policy_loss(registry, "reinforce", &loss, NULL), RFT_OK);
  cr_expect_str_eq(loss->name, "reinforce");
  cr_expect_eq(rft_registry_find_algorithm_preset(registry, "reinforce", &preset, NULL), RFT_OK);
  cr_expect_str_eq(preset->name, "reinforce");
  rft_registry_destroy(registry);
}

Test(registry, loads_the_real_plugin)
{
  rft_registry *const registry = registry_new();
  rft_error error = {.struct_size = sizeof error};
  cr_assert_eq(rft_registry_scan(registry, RFT_TEST_PLUGIN_DIR, &error), RFT_OK, "%s",
               error.message);
  cr_expect_eq(rft_registry_plugin_count(registry), 1);
  cr_expect_eq(rft_registry_refusal_count(registry), 0);
  rft_registry_destroy(registry);
}

Test(registry, hands_on_the_one_pass_functions_of_a_loss_s_plugin)
{
  rft_registry *const registry = registry_new();
  cr_assert_eq(rft_registry_scan(registry, RFT_TEST_PLUGIN_DIR, NULL), RFT_OK);
  scratch_fixture("good", "good.so");
  cr_assert_eq(rft_registry_scan(registry, scratch_directory(), NULL), RFT_OK);
  const rft_policy_loss *has = NULL;
  const rft_policy_loss *has_not = NULL;
  cr_assert_eq(rft_registry_find_policy_loss(registry, "m2po", &has, NULL), RFT_OK);
  cr_assert_eq(rft_registry_find_policy_loss(registry, "reinforce", &has_not, NULL), RFT_OK);
  const void *const offered = rft_registry_plugin(registry, 0)->get_extension(RFT_PLUGIN_ONE_PASS);
  cr_expect_not_null(offered);
  cr_expect_eq(rft_registry_one_pass(registry, has), offered);
  cr_expect_null(rft_registry_one_pass(registry, has_not));
  cr_expect_null(rft_registry_one_pass(registry, NULL));
  rft_registry_destroy(registry);
}

Test(registry, looks_only_at_names_that_end_in_so)
{
  scratch_fixture("good", "libgood.so.1");
  scratch_fixture("good", "good.txt");
  rft_registry *const registry = scan();
  cr_expect_eq(rft_registry_plugin_count(registry), 0);
  cr_expect_eq(rft_registry_refusal_count(registry), 0);
  rft_registry_destroy(registry);
}

Test(registry, first_file_in_byte_order_wins_an_id)
{
  scratch_fixture("good", "b.so");
  scratch_fixture("newer_minor", "B.so");
  rft_registry *const registry = scan();
  cr_assert_eq(rft_registry_plugin_count(registry), 1);
  cr_expect_str_eq(rft_registry_plugin_path(registry, 0), scratch_path("B.so"));
  cr_assert_eq(rft_registry_refusal_count(registry), 1);
  const rft_refusal *const refusal = rft_registry_refusal(registry, 0);
  cr_expect_eq(refusal->code, RFT_ALREADY_EXISTS);
  cr_expect_str_eq(refusal->path, scratch_path("b.so"));
  expect_contains(refusal->reason, "org.example.fixture");
  expect_contains(refusal->reason, scratch_path("B.so"));
  rft_registry_destroy(registry);
}

Test(registry, loads_a_file_with_two_names_once)
{
  const char *const path = scratch_fixture("good", "a.so");
  cr_assert_eq(symlink(path, scratch_path("b.so")), 0);
  cr_assert_eq(link(path, scratch_path("c.so")), 0);
  rft_registry *const registry = scan();
  cr_expect_eq(rft_registry_plugin_count(registry), 1);
  cr_expect_eq(rft_registry_refusal_count(registry), 0);
  cr_expect_eq(rft_registry_load(registry, path, NULL), RFT_OK);
  cr_expect_eq(rft_registry_plugin_count(registry), 1);
  rft_registry_destroy(registry);
}

Test(registry, goes_on_after_a_refusal)
{
  scratch_write("a.so", "text", 4);
  scratch_fixture("good", "b.so");
  rft_registry *const registry = scan();
  cr_expect_eq(rft_registry_plugin_count(registry), 1);
  cr_expect_eq(rft_registry_refusal_count(registry), 1);
  rft_registry_destroy(registry);
}

Test(registry, takes_longer_tables_of_a_newer_minor)
{
  scratch_fixture("newer_minor", "x.so");
  rft_registry *const registry = scan();
  cr_expect_eq(rft_registry_plugin_count(registry), 1);
  rft_registry_destroy(registry);
}

Test(registry, two_registries_share_a_file)
{
  scratch_fixture("good", "x.so");
  rft_registry *const one = scan();
  rft_registry *const other = scan();
  cr_expect_eq(rft_registry_plugin(one, 0), rft_registry_plugin(other, 0));
  rft_registry_destroy(one);
  cr_expect_str_eq(rft_registry_plugin(other, 0)->id, "org.example.fixture");
  rft_registry_destroy(other);
}

Test(registry, unknown_names_get_the_nearest_known_one)
{
  scratch_fixture("good", "x.so");
  rft_registry *const registry = scan();
  const rft_policy_loss *loss = NULL;
  rft_error error = {.struct_size = sizeof error};
  cr_expect_eq(rft_registry_find_policy_loss(registry, "Reinforc", &loss, &error), RFT_NOT_FOUND);
  cr_expect_str_eq(error.message, "policy loss \"Reinforc\" is not known: the nearest known one is "
                                  "\"reinforce\"");
  cr_expect_eq(rft_registry_find_policy_loss(registry, "xyz", &loss, &error), RFT_NOT_FOUND);
  cr_expect_str_eq(error.message,
                   "policy loss \"xyz\" is not known: the known ones are \"reinforce\"");
  cr_expect_null(loss);
  rft_registry_destroy(registry);
}

// ------------------------------------------------------------------------------------ not a plugin

Test(registry, refuses_a_text_file)
{
  scratch_write("x.so", "#!/bin/sh\n", 10);
  expect_refused("x.so", RFT_INVALID_ARGUMENT, "not an ELF shared object");
}

Test(registry, refuses_an_empty_file)
{
  scratch_write("x.so", "", 0);
  expect_refused("x.so", RFT_INVALID_ARGUMENT, "not an ELF shared object");
}

Test(registry, refuses_a_directory)
{
  cr_assert_eq(mkdir(scratch_path("x.so"), 0755), 0);
  expect_refused("x.so", RFT_INVALID_ARGUMENT, "not a regular file but a directory");
}

Test(registry, refuses_a_fifo_without_waiting, .timeout = 5)
{
  cr_assert_eq(mkfifo(scratch_path("x.so"), 0644), 0);
  expect_refused("x.so", RFT_INVALID_ARGUMENT, "not a regular file but a FIFO");
}

Test(registry, refuses_a_dangling_link)
{
  cr_assert_eq(symlink("nowhere", scratch_path("x.so")), 0);
  expect_refused("x.so", RFT_NOT_FOUND, "a symbolic link to a file that does not exist");
}

Test(registry, refuses_an_elf_file_of_another_architecture)
{
  size_t size = 0;
  unsigned char *const bytes = read_file(RFT_TEST_FIXTURE_DIR "/good.so", &size);
  const uint16_t other = bytes[offsetof(Elf64_Ehdr, e_machine)] == EM_AARCH64 ? EM_X86_64 //
                                                                              : EM_AARCH64;
  memcpy(bytes + offsetof(Elf64_Ehdr, e_machine), &other, sizeof other);
  scratch_write("x.so", bytes, size);
  free(bytes);
  expect_refused("x.so", RFT_INVALID_ARGUMENT, "another architecture: expected 64-bit");
}

Test(registry, refuses_truncated_files_at_every_length)
{
  size_t size = 0;
  unsigned char *const bytes = read_file(RFT_TEST_FIXTURE_DIR "/good.so", &size);
  const size_t lengths[] = {3, 4, 20, 63, 64, 100, 1000, 4096, 8192, 12300};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; ++i) {
    cr_assert_lt(lengths[i], size);
    scratch_write("x.so", bytes, lengths[i]);
    expect_refused("x.so", lengths[i] < 4 ? RFT_INVALID_ARGUMENT : RFT_DATA_LOSS,
                   lengths[i] < 4 ? "not an ELF" : "cut short");
  }
  free(bytes);
}

Test(registry, refuses_an_executable)
{
  scratch_write("x.so", "", 0);
  scratch_copy(RFT_TEST_FIXTURE_DIR "/good.so", "x.so");
  FILE *const file = fopen(scratch_path("x.so"), "r+b");
  const uint16_t type = ET_EXEC;
  fseek(file, offsetof(Elf64_Ehdr, e_type), SEEK_SET);
  fwrite(&type, sizeof type, 1, file);
  fclose(file);
  expect_refused("x.so", RFT_INVALID_ARGUMENT, "not a shared object");
}

Test(registry, refuses_a_shared_object_without_entry)
{
  expect_fixture_refused("missing_symbol", RFT_INVALID_ARGUMENT,
                         "looked for the symbol rft_plugin_entry_v1, found no rft_plugin_entry");
}

Test(registry, names_both_symbols_of_another_major)
{
  expect_fixture_refused("other_major", RFT_UNIMPLEMENTED,
                         "looked for the symbol rft_plugin_entry_v1, found rft_plugin_entry_v2");
}

Test(registry, names_an_undefined_symbol)
{
  expect_fixture_refused("undefined_symbol", RFT_FAILED_PRECONDITION, "nobody_defines_this");
}

// ------------------------------------------------------------------------------------ wrong tables

Test(registry, passes_on_what_a_failing_entry_says)
{
  expect_fixture_refused("entry_fails", RFT_FAILED_PRECONDITION, "no licence found");
}

Test(registry, refuses_an_entry_that_gives_no_table)
{
  expect_fixture_refused("no_tables", RFT_INVALID_ARGUMENT, "rft_plugin");
}

Test(registry, refuses_tables_shorter_than_version_1_0)
{
  expect_fixture_refused("short_plugin", RFT_INVALID_ARGUMENT, "rft_plugin");
  expect_fixture_refused("short_loss", RFT_INVALID_ARGUMENT, "rft_policy_loss");
}

Test(registry, refuses_a_missing_required_function)
{
  expect_fixture_refused("missing_function", RFT_INVALID_ARGUMENT, "evaluate");
}

Test(registry, refuses_some_selection_functions_without_the_others)
{
  expect_fixture_refused("partial_selection", RFT_INVALID_ARGUMENT,
                         "all of the five selection functions or none, found 1");
}

Test(registry, refuses_an_incomplete_one_pass_extension)
{
  expect_fixture_refused("short_one_pass", RFT_INVALID_ARGUMENT, "rft_one_pass");
  expect_fixture_refused("half_one_pass", RFT_INVALID_ARGUMENT,
                         "rft.plugin.one_pass/1: evaluate and select_evaluate must both be set");
}

Test(registry, refuses_a_schema_that_does_not_check)
{
  expect_fixture_refused("open_schema", RFT_INTERNAL, "additionalProperties");
  expect_fixture_refused("wrong_default", RFT_INTERNAL, "default of \"a\"");
}

Test(registry, refuses_wrong_descriptions)
{
  expect_fixture_refused("wrong_ratio", RFT_INVALID_ARGUMENT, "metric \"positions\"");
  expect_fixture_refused("wrong_id", RFT_INVALID_ARGUMENT, "org.example.loss");
  expect_fixture_refused("wrong_preset", RFT_INVALID_ARGUMENT, "algorithm preset \"reinforce\"");
}

// ------------------------------------------------------------------------------------- permissions

Test(registry, refuses_a_file_that_others_may_write)
{
  chmod(scratch_fixture("good", "x.so"), 0646);
  expect_refused("x.so", RFT_PERMISSION_DENIED, "may be written by others (mode 0646)");
}

Test(registry, refuses_a_file_of_another_user)
{
  if (geteuid() != 0) {
    cr_skip_test("only root can give a file away");
  }
  cr_assert_eq(chown(scratch_fixture("good", "x.so"), 12345, 0), 0);
  expect_refused("x.so", RFT_PERMISSION_DENIED, "belongs to user 12345");
}

static void expect_scan_fails(int32_t code, const char *directory, const char *message)
{
  rft_registry *const registry = registry_new();
  rft_error error = {.struct_size = sizeof error};
  cr_expect_eq(rft_registry_scan(registry, directory, &error), code);
  expect_contains(error.message, message);
  cr_expect_eq(rft_registry_plugin_count(registry), 0);
  rft_registry_destroy(registry);
}

Test(registry, refuses_a_directory_that_others_may_write)
{
  scratch_fixture("good", "x.so");
  chmod(scratch_directory(), 0777);
  expect_scan_fails(RFT_PERMISSION_DENIED, scratch_directory(), "may be written by others");
  chmod(scratch_directory(), 01777);
  expect_scan_fails(RFT_PERMISSION_DENIED, scratch_directory(), "may be written by others");
}

Test(registry, refuses_a_parent_that_others_may_write)
{
  cr_assert_eq(mkdir(scratch_path("plugins"), 0755), 0);
  scratch_fixture("good", "plugins/x.so");
  chmod(scratch_directory(), 0777);
  expect_scan_fails(RFT_PERMISSION_DENIED, scratch_path("plugins"), "parent directory");
}

Test(registry, refuses_a_link_into_a_directory_that_others_may_write)
{
  cr_assert_eq(mkdir(scratch_path("open"), 0755), 0);
  cr_assert_eq(symlink(scratch_fixture("good", "open/x.so"), scratch_path("x.so")), 0);
  chmod(scratch_path("open"), 0777);
  expect_refused("x.so", RFT_PERMISSION_DENIED, "may be written by others");
}

Test(registry, refuses_a_link_in_a_directory_that_others_may_write)
{
  cr_assert_eq(mkdir(scratch_path("open"), 0755), 0);
  cr_assert_eq(symlink(scratch_fixture("good", "x.so"), scratch_path("open/x.so")), 0);
  chmod(scratch_path("open"), 0777);
  rft_registry *const registry = registry_new();
  rft_error error = {.struct_size = sizeof error};
  cr_expect_eq(rft_registry_load(registry, scratch_path("open/x.so"), &error),
               RFT_PERMISSION_DENIED);
  expect_contains(error.message, scratch_path("open/x.so"));
  rft_registry_destroy(registry);
}

// ------------------------------------------------------------------------------------- directories

Test(registry, missing_directories_are_named)
{
  expect_scan_fails(RFT_NOT_FOUND, scratch_path("nowhere"), scratch_path("nowhere"));
}

static void expect_default_fails(const char *list, const char *message)
{
  rft_registry *const registry = registry_new();
  rft_error error = {.struct_size = sizeof error};
  setenv("RFT_PLUGIN_PATH", list, 1);
  cr_expect_eq(rft_registry_scan_default(registry, &error), RFT_INVALID_ARGUMENT);
  expect_contains(error.message, message);
  rft_registry_destroy(registry);
}

Test(registry, plugin_path_never_means_the_current_directory)
{
  char list[1024];
  expect_default_fails("plugins", "found \"plugins\" as entry 1");
  snprintf(list, sizeof list, "%s:", scratch_directory());
  expect_default_fails(list, "found \"\" as entry 2");
  snprintf(list, sizeof list, "%s::/", scratch_directory());
  expect_default_fails(list, "found \"\" as entry 2");
}

Test(registry, scans_the_directories_of_the_plugin_path_in_order)
{
  cr_assert_eq(mkdir(scratch_path("z"), 0755), 0);
  cr_assert_eq(mkdir(scratch_path("a"), 0755), 0);
  const char *const first = scratch_fixture("good", "z/x.so");
  scratch_fixture("good", "a/x.so");
  char list[1024];
  snprintf(list, sizeof list, "%s:%s", scratch_path("z"), scratch_path("a"));
  setenv("RFT_PLUGIN_PATH", list, 1);
  rft_registry *const registry = registry_new();
  cr_assert_eq(rft_registry_scan_default(registry, NULL), RFT_OK);
  cr_assert_eq(rft_registry_plugin_count(registry), 1);
  cr_expect_str_eq(rft_registry_plugin_path(registry, 0), first);
  cr_expect_eq(rft_registry_refusal_count(registry), 1);
  rft_registry_destroy(registry);
}

// ----------------------------------------------------------------------------------------- options

Test(registry, refuses_options_of_a_newer_version)
{
  struct {
    rft_registry_options known;
    uint64_t added;
  } options = {.known = {.struct_size = sizeof options}};
  rft_registry *registry = NULL;
  rft_error error = {.struct_size = sizeof error};
  cr_expect_eq(rft_registry_create(&options.known, &registry, &error), RFT_OK);
  rft_registry_destroy(registry);
  registry = NULL;
  options.added = 1;
  cr_expect_eq(rft_registry_create(&options.known, &registry, &error), RFT_UNIMPLEMENTED);
  cr_expect_null(registry);
}

Test(registry, reads_options_only_as_far_as_they_reach)
{
  rft_registry_options options = {.struct_size = RFT_STRUCT_SIZE(rft_registry_options, threads),
                                  .name = (const char *)1};
  rft_registry *registry = NULL;
  cr_assert_eq(rft_registry_create(&options, &registry, NULL), RFT_OK);
  cr_expect_str_eq(rft_registry_host(registry)->name, "librft_host");
  rft_registry_destroy(registry);
}

static void keep_message(void *context, int32_t level, const char *message)
{
  if (level >= RFT_LOG_WARNING) {
    snprintf(context, 1024, "%s", message);
  }
}

Test(registry, logs_each_refusal)
{
  char logged[1024] = "";
  const rft_registry_options options = {
      .struct_size = sizeof options, .log = keep_message, .log_context = logged};
  rft_registry *registry = NULL;
  cr_assert_eq(rft_registry_create(&options, &registry, NULL), RFT_OK);
  scratch_write("x.so", "text", 4);
  cr_expect_eq(rft_registry_scan(registry, scratch_directory(), NULL), RFT_OK);
  expect_contains(logged, scratch_path("x.so"));
  expect_contains(logged, "not an ELF");
  rft_registry_destroy(registry);
}
