// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // dladdr

#include "elf_check.h"

#include "support/error.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct machine {
  uint16_t number;
  const char *name;
} machine;

static const machine MACHINES[] = {
    {EM_386, "x86"},      {EM_X86_64, "x86-64"},   {EM_ARM, "ARM"},   {EM_AARCH64, "AArch64"},
    {EM_RISCV, "RISC-V"}, {EM_PPC64, "PowerPC64"}, {EM_S390, "S/390"}};

#define TARGET_TEXT_SIZE 64

// "64-bit little-endian x86-64"
static const char *target_text(char text[TARGET_TEXT_SIZE], const ElfW(Ehdr) * header)
{
  char number[16];
  snprintf(number, sizeof number, "machine %u", header->e_machine);
  const char *name = number;
  for (size_t i = 0; i < sizeof MACHINES / sizeof MACHINES[0]; ++i) {
    if (MACHINES[i].number == header->e_machine) {
      name = MACHINES[i].name;
    }
  }
  snprintf(text, TARGET_TEXT_SIZE, "%s-bit %s-endian %s",
           header->e_ident[EI_CLASS] == ELFCLASS64 ? "64" : "32",
           header->e_ident[EI_DATA] == ELFDATA2MSB ? "big" : "little", name);
  return text;
}

// The header of the shared object that this code is in: what runs here.
static const ElfW(Ehdr) * own_header(void)
{
  Dl_info info;
  return dladdr(MACHINES, &info) != 0 ? info.dli_fbase : NULL;
}

static int32_t check_target(const ElfW(Ehdr) * header, rft_error *error)
{
  const ElfW(Ehdr) *const own = own_header();
  if (own != NULL &&
      (header->e_ident[EI_CLASS] != own->e_ident[EI_CLASS] ||
       header->e_ident[EI_DATA] != own->e_ident[EI_DATA] || header->e_machine != own->e_machine)) {
    char expected[TARGET_TEXT_SIZE];
    char found[TARGET_TEXT_SIZE];
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "it is for another architecture: expected %s, found %s",
                    target_text(expected, own), target_text(found, header));
  }
  if (header->e_type != ET_DYN) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "it is not a shared object: expected ELF type %d, found %u", ET_DYN,
                    header->e_type);
  }
  return RFT_OK;
}

static int32_t check_segments(int descriptor, const ElfW(Ehdr) * header, uint64_t size,
                              rft_error *error)
{
  for (uint16_t i = 0; i < header->e_phnum; ++i) {
    ElfW(Phdr) segment;
    const uint64_t position = header->e_phoff + (uint64_t)i * sizeof segment;
    const bool whole =
        header->e_phentsize == sizeof segment && position < size &&
        pread(descriptor, &segment, sizeof segment, (off_t)position) == (ssize_t)sizeof segment;
    if (!whole || segment.p_offset > size || segment.p_filesz > size - segment.p_offset) {
      return rft_fail(error, RFT_DATA_LOSS,
                      "it is cut short or damaged: segment %u of %u is not within its %llu bytes",
                      i, header->e_phnum, (unsigned long long)size);
    }
  }
  return RFT_OK;
}

int32_t rft_elf_check(int descriptor, int64_t size, rft_error *error)
{
  ElfW(Ehdr) header;
  const ssize_t got = pread(descriptor, &header, sizeof header, 0);
  if (got < SELFMAG || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "it is not an ELF shared object");
  }
  if (got < (ssize_t)sizeof header) {
    return rft_fail(error, RFT_DATA_LOSS, "it is cut short: an ELF header has %zu bytes, found %zd",
                    sizeof header, got);
  }
  const int32_t code = check_target(&header, error);
  return code == RFT_OK ? check_segments(descriptor, &header, (uint64_t)size, error) : code;
}
