// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a shared object says about itself, read without loading it.

#ifndef RFT_CHECK_ELF_FILE_H
#define RFT_CHECK_ELF_FILE_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

typedef struct elf_file {
  const unsigned char *bytes;
  size_t size;
  const ElfW(Ehdr) * header;
  const ElfW(Phdr) * segments; ///< [header->e_phnum]
  const ElfW(Dyn) * dynamic;   ///< [dynamic_count]
  size_t dynamic_count;
  const ElfW(Sym) * symbols; ///< [symbol_count], the dynamic ones
  size_t symbol_count;
  const char *names; ///< [names_size], of the dynamic symbols and entries
  size_t names_size;
} elf_file;

/// Reads the file; ends the check when it is damaged.
elf_file elf_file_open(const char *path);

/// The text at an offset of `names`.
const char *elf_file_name(const elf_file *file, uint64_t offset);

/// The next dynamic entry of a tag after `previous` (NULL: the first), or NULL.
const ElfW(Dyn) * elf_file_dynamic(const elf_file *file, int64_t tag, const ElfW(Dyn) * previous);

/// Does the object use this symbol of another one?
int elf_file_imports(const elf_file *file, const char *name);

#endif // RFT_CHECK_ELF_FILE_H
