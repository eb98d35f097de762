// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The file, before any of its code runs.

#include "check.h"
#include "elf_file.h"
#include "host/elf_check.h"
#include "verdict.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void shared_object(const check_subject *subject)
{
  struct stat status;
  rft_error error = {.struct_size = sizeof error};
  const int descriptor = open(subject->path, O_RDONLY | O_CLOEXEC);
  EXPECT(descriptor >= 0 && fstat(descriptor, &status) == 0, "the file cannot be read");
  EXPECT(rft_elf_check(descriptor, status.st_size, &error) == RFT_OK, "%s", error.message);
  close(descriptor);
}

static bool is_exported(const ElfW(Sym) * symbol)
{
  const unsigned char visibility = symbol->st_other & 3U;
  return symbol->st_shndx != SHN_UNDEF && symbol->st_shndx != SHN_ABS &&
         ELF64_ST_BIND(symbol->st_info) != STB_LOCAL &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

static void one_export(const check_subject *subject)
{
  const elf_file file = elf_file_open(subject->path);
  bool found = false;
  for (size_t i = 1; i < file.symbol_count; ++i) {
    if (!is_exported(&file.symbols[i])) {
      continue;
    }
    const char *const name = elf_file_name(&file, file.symbols[i].st_name);
    EXPECT(strcmp(name, RFT_PLUGIN_ENTRY_SYMBOL) == 0, "it also exports %.200s", name);
    found = true;
  }
  EXPECT(found, "it does not export " RFT_PLUGIN_ENTRY_SYMBOL);
}

static void needed_libraries(const check_subject *subject)
{
  const elf_file file = elf_file_open(subject->path);
  const ElfW(Dyn) *entry = NULL;
  while ((entry = elf_file_dynamic(&file, DT_NEEDED, entry)) != NULL) {
    const char *const name = elf_file_name(&file, entry->d_un.d_val);
    EXPECT(strncmp(name, "libc.", 5) == 0 || strncmp(name, "libm.", 5) == 0 ||
               strncmp(name, "ld-linux", 8) == 0,
           "expected libc and libm only, found %.200s", name);
  }
}

static void no_search_path(const check_subject *subject)
{
  const elf_file file = elf_file_open(subject->path);
  EXPECT(elf_file_dynamic(&file, DT_RPATH, NULL) == NULL, "it has an RPATH");
  EXPECT(elf_file_dynamic(&file, DT_RUNPATH, NULL) == NULL, "it has a RUNPATH");
}

static bool has_flag(const elf_file *file, uint64_t flag)
{
  const ElfW(Dyn) *const flags = elf_file_dynamic(file, DT_FLAGS, NULL);
  return flags != NULL && (flags->d_un.d_val & flag) != 0;
}

static void no_text_relocation(const check_subject *subject)
{
  const elf_file file = elf_file_open(subject->path);
  EXPECT(elf_file_dynamic(&file, DT_TEXTREL, NULL) == NULL && !has_flag(&file, DF_TEXTREL),
         "its code is changed when it is loaded: it has text relocations");
}

static void no_executable_stack(const check_subject *subject)
{
  const elf_file file = elf_file_open(subject->path);
  bool found = false;
  for (uint16_t i = 0; i < file.header->e_phnum; ++i) {
    if (file.segments[i].p_type == PT_GNU_STACK) {
      found = true;
      EXPECT((file.segments[i].p_flags & PF_X) == 0, "it asks for an executable stack");
    }
  }
  EXPECT(found, "it has no PT_GNU_STACK, which asks for an executable stack");
}

static void no_unique_symbol(const check_subject *subject)
{
  const elf_file file = elf_file_open(subject->path);
  for (size_t i = 1; i < file.symbol_count; ++i) {
    EXPECT(ELF64_ST_BIND(file.symbols[i].st_info) != STB_GNU_UNIQUE,
           "the symbol %.200s is unique in the process",
           elf_file_name(&file, file.symbols[i].st_name));
  }
}

// The compiler's own start-up files bring one entry, which does nothing.
static void expect_one_entry(const elf_file *file, int64_t tag, const char *what)
{
  const ElfW(Dyn) *const size = elf_file_dynamic(file, tag, NULL);
  EXPECT(size == NULL || size->d_un.d_val <= sizeof(void (*)(void)),
         "it has a %s: expected at most the compiler's own entry, found %d", what,
         (int)(size->d_un.d_val / sizeof(void (*)(void))));
}

static void no_constructor(const check_subject *subject)
{
  const elf_file file = elf_file_open(subject->path);
  expect_one_entry(&file, DT_INIT_ARRAYSZ, "constructor");
}

static void no_destructor(const check_subject *subject)
{
  const elf_file file = elf_file_open(subject->path);
  expect_one_entry(&file, DT_FINI_ARRAYSZ, "destructor");
}

static void no_exit_handler(const check_subject *subject)
{
  static const char *const names[] = {"__cxa_atexit",
                                      "atexit",
                                      "on_exit",
                                      "at_quick_exit",
                                      "__cxa_at_quick_exit",
                                      "__cxa_thread_atexit_impl"};
  const elf_file file = elf_file_open(subject->path);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    EXPECT(!elf_file_imports(&file, names[i]), "it uses %s", names[i]);
  }
}

static void no_forbidden_import(const check_subject *subject)
{
  static const char *const names[] = {
      "exit",           "_exit",         "quick_exit", "signal",      "sigaction",
      "setlocale",      "fesetround",    "fesetenv",   "feupdateenv", "feenableexcept",
      "pthread_create", "thrd_create",   "fork",       "system",      "setenv",
      "unsetenv",       "putenv",        "chdir",      "umask",       "printf",
      "puts",           "putchar",       "perror",     "vprintf",     "__printf_chk",
      "longjmp",        "__longjmp_chk", "siglongjmp", "dlopen",      "strtok"};
  const elf_file file = elf_file_open(subject->path);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    EXPECT(!elf_file_imports(&file, names[i]), "it uses %s", names[i]);
  }
}

static void no_static_tls(const check_subject *subject)
{
  const elf_file file = elf_file_open(subject->path);
  EXPECT(!has_flag(&file, DF_STATIC_TLS),
         "its thread-local variables need static TLS, of which a process has little");
}

static const check CHECKS[] = {
    {101, "shared_object", "P18", CHECK_FILE, true, NULL,
     "The file is a whole ELF shared object for this machine.", shared_object},
    {102, "one_export", "P6", CHECK_FILE, true, "shared_object",
     "It exports rft_plugin_entry_v1 and nothing else.", one_export},
    {103, "needed_libraries", "P18", CHECK_FILE, true, "shared_object",
     "It needs libc and libm only.", needed_libraries},
    {104, "no_search_path", "P19", CHECK_FILE, true, "shared_object",
     "It has neither RPATH nor RUNPATH.", no_search_path},
    {105, "no_text_relocation", "P19", CHECK_FILE, true, "shared_object",
     "It has no text relocation.", no_text_relocation},
    {106, "no_executable_stack", "P19", CHECK_FILE, true, "shared_object",
     "It asks for no executable stack.", no_executable_stack},
    {107, "no_unique_symbol", "P19", CHECK_FILE, true, "shared_object",
     "It has no STB_GNU_UNIQUE symbol.", no_unique_symbol},
    {108, "no_constructor", "P19", CHECK_FILE, true, "shared_object", "It has no constructor.",
     no_constructor},
    {109, "no_destructor", "P19", CHECK_FILE, true, "shared_object", "It has no destructor.",
     no_destructor},
    {110, "no_exit_handler", "P19", CHECK_FILE, true, "shared_object",
     "It registers nothing for the end of the process or of a thread.", no_exit_handler},
    {111, "no_forbidden_import", "P10, P15", CHECK_FILE, false, "shared_object",
     "It uses no function that ends, prints, starts threads or changes the process.",
     no_forbidden_import},
    {112, "no_static_tls", "P19", CHECK_FILE, false, "shared_object",
     "It needs no static thread-local storage.", no_static_tls},
};

const check_area file_checks = CHECK_AREA(CHECKS);
