// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The entry, with hosts of other versions and with arguments that are no good.

#include "check.h"
#include "hosts.h"
#include "memory.h"
#include "subjects.h"
#include "verdict.h"

#include <string.h>

enum { HOST_SIZE = RFT_STRUCT_SIZE(rft_host, get_service), TAIL = 16 };

static void entry_gives_tables(const check_subject *subject)
{
  check_subject entered = *subject;
  const rft_plugin *const plugin = check_enter(&entered);
  EXPECT(plugin->struct_size >= RFT_STRUCT_SIZE(rft_plugin, get_extension),
         "rft_plugin: expected struct_size of at least %zu, found %u",
         (size_t)RFT_STRUCT_SIZE(rft_plugin, get_extension), plugin->struct_size);
}

static void entry_gives_the_same_tables(const check_subject *subject)
{
  check_subject entered = *subject;
  const rft_plugin *const first = check_enter(&entered);
  const rft_plugin *second = NULL;
  const int32_t code = entered.entry(check_host_full(), &second, NULL);
  EXPECT(code == RFT_OK && second == first, "the second call returns %d and %s tables", code,
         second == first ? "the same" : "other");
}

static void expect_tables(const check_subject *subject, const rft_host *host, const char *what)
{
  const rft_plugin *plugin = NULL;
  rft_error error = {.struct_size = sizeof error};
  const int32_t code = check_open(subject->path)(host, &plugin, &error);
  EXPECT(code == RFT_OK && plugin != NULL, "%s: the entry returns %d: %.400s", what, code,
         error.message);
}

static void entry_reads_no_further(const check_subject *subject)
{
  expect_tables(subject, check_guarded_copy(check_host_bare(), HOST_SIZE), "a host of version 1.0");
}

static void entry_takes_a_newer_host(const check_subject *subject)
{
  unsigned char bytes[HOST_SIZE + TAIL];
  const uint32_t size = sizeof bytes;
  const uint32_t minor = RFT_ABI_MINOR + 99;
  memset(bytes, 0xFF, sizeof bytes);
  memcpy(bytes, check_host_bare(), HOST_SIZE);
  memcpy(bytes, &size, sizeof size);
  memcpy(bytes + offsetof(rft_host, abi_minor), &minor, sizeof minor);
  expect_tables(subject, check_guarded_copy(bytes, sizeof bytes), "a host of version 1.99");
}

static void expect_refusal(const check_subject *subject, const rft_host *host, const char *what)
{
  static const rft_plugin untouched;
  const rft_plugin *plugin = &untouched;
  rft_error error = {.struct_size = sizeof error};
  const rft_plugin_entry entry = check_open(subject->path);
  const int32_t code = entry(host, &plugin, &error);
  EXPECT(code != RFT_OK, "%s: the entry returns OK", what);
  EXPECT(plugin == &untouched, "%s: the entry returns %d and sets the tables all the same", what,
         code);
  EXPECT(error.code == code && error.message[0] != '\0', "%s: there is no error message", what);
  EXPECT(entry(host, &plugin, NULL) == code, "%s: without an rft_error the code is another", what);
}

static void entry_refuses_a_short_host(const check_subject *subject)
{
  const uint32_t size = offsetof(rft_host, get_service);
  rft_host host = *check_host_bare();
  host.struct_size = size;
  expect_refusal(subject, check_guarded_copy(&host, size), "a host without get_service");
}

static void entry_refuses_no_host(const check_subject *subject)
{
  expect_refusal(subject, NULL, "host NULL");
}

static const check CHECKS[] = {
    {301, "entry_gives_tables", "P1, P4", CHECK_FILE, true, "opens",
     "The entry gives tables to a host without any service.", entry_gives_tables},
    {302, "entry_gives_the_same_tables", "P13", CHECK_FILE, true, "entry_gives_tables",
     "A second call of the entry gives the same tables.", entry_gives_the_same_tables},
    {303, "entry_reads_no_further", "P2", CHECK_FILE, true, "entry_gives_tables",
     "The entry reads nothing behind the struct_size of the host.", entry_reads_no_further},
    {304, "entry_takes_a_newer_host", "P3, P4", CHECK_FILE, true, "entry_gives_tables",
     "A host of a newer minor version, with a longer table, is welcome.", entry_takes_a_newer_host},
    {305, "entry_refuses_a_short_host", "P1, P2, P9", CHECK_FILE, true, "entry_gives_tables",
     "A host whose struct_size is too small is refused, with a message.",
     entry_refuses_a_short_host},
    {306, "entry_refuses_no_host", "P8, P9", CHECK_FILE, true, "entry_gives_tables",
     "A host that is NULL is refused, with a message.", entry_refuses_no_host},
};

const check_area entry_checks = CHECK_AREA(CHECKS);
