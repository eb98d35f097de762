// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "elf_file.h"

#include "verdict.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const void *part(const elf_file *file, uint64_t offset, uint64_t size, const char *what)
{
  EXPECT(offset <= file->size && size <= file->size - offset, "%s is not within the file", what);
  return file->bytes + offset;
}

static void map(const char *path, elf_file *file)
{
  struct stat status;
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  EXPECT(descriptor >= 0 && fstat(descriptor, &status) == 0, "the file cannot be read");
  file->size = (size_t)status.st_size;
  void *const bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  EXPECT(bytes != MAP_FAILED, "the file cannot be read");
  close(descriptor);
  file->bytes = bytes;
}

static void find_dynamic(elf_file *file)
{
  for (uint16_t i = 0; i < file->header->e_phnum; ++i) {
    const ElfW(Phdr) *const segment = &file->segments[i];
    if (segment->p_type == PT_DYNAMIC) {
      file->dynamic = part(file, segment->p_offset, segment->p_filesz, "the dynamic segment");
      file->dynamic_count = segment->p_filesz / sizeof(ElfW(Dyn));
    }
  }
  EXPECT(file->dynamic != NULL, "there is no dynamic segment");
}

static void find_symbols(elf_file *file)
{
  const uint64_t count = file->header->e_shnum;
  const ElfW(Shdr) *const sections =
      part(file, file->header->e_shoff, count * sizeof(ElfW(Shdr)), "the section table");
  for (uint64_t i = 0; i < count; ++i) {
    const ElfW(Shdr) *const section = &sections[i];
    if (section->sh_type == SHT_DYNSYM && section->sh_link < count) {
      const ElfW(Shdr) *const names = &sections[section->sh_link];
      file->symbols = part(file, section->sh_offset, section->sh_size, "the symbol table");
      file->symbol_count = section->sh_size / sizeof(ElfW(Sym));
      file->names = part(file, names->sh_offset, names->sh_size, "the string table");
      file->names_size = names->sh_size;
    }
  }
  EXPECT(file->symbols != NULL, "there is no table of dynamic symbols: was the file stripped of "
                                "its section headers?");
}

elf_file elf_file_open(const char *path)
{
  elf_file file = {.bytes = NULL};
  map(path, &file);
  file.header = part(&file, 0, sizeof *file.header, "the header");
  file.segments =
      part(&file, file.header->e_phoff, (uint64_t)file.header->e_phnum * sizeof *file.segments,
           "the program headers");
  find_dynamic(&file);
  find_symbols(&file);
  return file;
}

const char *elf_file_name(const elf_file *file, uint64_t offset)
{
  const char *const name = file->names + offset;
  EXPECT(offset < file->names_size && memchr(name, '\0', file->names_size - offset) != NULL,
         "a name is not within the string table");
  return name;
}

const ElfW(Dyn) * elf_file_dynamic(const elf_file *file, int64_t tag, const ElfW(Dyn) * previous)
{
  const ElfW(Dyn) *const end = file->dynamic + file->dynamic_count;
  const ElfW(Dyn) *entry = previous == NULL ? file->dynamic : previous + 1;
  for (; entry < end && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == tag) {
      return entry;
    }
  }
  return NULL;
}

int elf_file_imports(const elf_file *file, const char *name)
{
  for (size_t i = 1; i < file->symbol_count; ++i) {
    const ElfW(Sym) *const symbol = &file->symbols[i];
    if (symbol->st_shndx == SHN_UNDEF && strcmp(elf_file_name(file, symbol->st_name), name) == 0) {
      return 1;
    }
  }
  return 0;
}
