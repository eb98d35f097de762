// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // MAP_ANONYMOUS

#include "memory.h"

#include "verdict.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t page_size(void)
{
  return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t size)
{
  return (size + page_size() - 1) / page_size() * page_size();
}

static void *guarded(size_t size, check_placement placement)
{
  const size_t inner = whole_pages(size == 0 ? 1 : size);
  unsigned char *const region = mmap(NULL, inner + (2 * page_size()), PROT_NONE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED || mprotect(region + page_size(), inner, PROT_READ | PROT_WRITE) != 0) {
    check_skip("out of memory for %zu bytes between guard pages", size);
  }
  return region + page_size() + (placement == GUARD_AFTER ? inner - size : 0);
}

void *check_memory(size_t size, check_placement placement)
{
  if (placement != PLAIN) {
    return guarded(size, placement);
  }
  void *const memory = calloc(size == 0 ? 1 : size, 1);
  if (memory == NULL) {
    check_skip("out of memory for %zu bytes", size);
  }
  return memory;
}

void *check_guarded_copy(const void *object, size_t size)
{
  return memcpy(guarded(size, GUARD_AFTER), object, size);
}

static void set_protection(void *memory, size_t size, int protection)
{
  const uintptr_t offset = (uintptr_t)memory % page_size();
  if (mprotect((unsigned char *)memory - offset, whole_pages(size + offset), protection) != 0) {
    check_skip("mprotect refuses %zu bytes", size);
  }
}

void check_protect(void *memory, size_t size)
{
  set_protection(memory, size, PROT_READ);
}

void check_unmap(void *memory, size_t size)
{
  set_protection(memory, size, PROT_NONE);
}
