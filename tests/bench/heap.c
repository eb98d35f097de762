// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// How much more memory a call holds at its highest than before it. Preloaded, so that these are the
// malloc and free of the whole process.

#include "rft/plugin.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

static atomic_bool watching;
static atomic_llong live; // bytes
static atomic_llong peak;

RFT_PLUGIN_EXPORT void bench_heap_watch(void)
{
  live = 0;
  peak = 0;
  watching = true;
}

/// Bytes, since bench_heap_watch.
RFT_PLUGIN_EXPORT int64_t bench_heap_peak(void)
{
  watching = false;
  return peak;
}

// NOLINTBEGIN(bugprone-reserved-identifier, cert-dcl37-c, cert-dcl51-cpp)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): glibc's have underscores, too

// The names that glibc gives its own functions, so that a program can replace them.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static void *taken(void *memory)
{
  if (watching && memory != NULL) {
    const long long size = (long long)malloc_usable_size(memory);
    const long long now = atomic_fetch_add(&live, size) + size;
    long long highest = peak;
    while (now > highest && !atomic_compare_exchange_weak(&peak, &highest, now)) {
    }
  }
  return memory;
}

static void given(void *memory)
{
  if (watching && memory != NULL) {
    live -= (long long)malloc_usable_size(memory);
  }
}

RFT_PLUGIN_EXPORT void *malloc(size_t size)
{
  return taken(__libc_malloc(size));
}

RFT_PLUGIN_EXPORT void *calloc(size_t count, size_t size)
{
  return taken(__libc_calloc(count, size));
}

// The old block counts as gone also where there is no new one: nothing here goes on after that.
RFT_PLUGIN_EXPORT void *realloc(void *memory, size_t size)
{
  given(memory);
  return taken(__libc_realloc(memory, size));
}

RFT_PLUGIN_EXPORT void *memalign(size_t alignment, size_t size)
{
  return taken(__libc_memalign(alignment, size));
}

RFT_PLUGIN_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
  return memalign(alignment, size);
}

RFT_PLUGIN_EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
  void *const made = memalign(alignment, size);
  if (made == NULL) {
    return ENOMEM;
  }
  *memory = made;
  return 0;
}

RFT_PLUGIN_EXPORT void free(void *memory)
{
  given(memory);
  __libc_free(memory);
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(bugprone-reserved-identifier, cert-dcl37-c, cert-dcl51-cpp)
