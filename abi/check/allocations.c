// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "allocations.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_bool watching;
static atomic_llong made;
static atomic_llong live;
static atomic_llong failing;

void check_allocations_watch(int64_t fail_at)
{
  made = 0;
  live = 0;
  failing = fail_at;
  watching = true;
}

check_allocations check_allocations_stop(void)
{
  watching = false;
  return (check_allocations){made, live};
}

bool check_allocations_watchable(void)
{
  check_allocations_watch(0);
  void *volatile probe = malloc(1);
  free(probe);
  return check_allocations_stop().made == 1;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__GLIBC__) && !defined(SANITIZED) && !defined(__SANITIZE_ADDRESS__) &&                 \
    !defined(__SANITIZE_THREAD__)

// NOLINTBEGIN(bugprone-reserved-identifier, cert-dcl37-c, cert-dcl51-cpp)
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): glibc's have underscores, too

// The names that glibc gives its own functions, so that a program can replace them.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static bool fails(void)
{
  if (watching && ++made == failing) {
    errno = ENOMEM;
    return true;
  }
  return false;
}

static void *counted(void *memory)
{
  live += watching && memory != NULL;
  return memory;
}

void *malloc(size_t size)
{
  return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
  return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *memory, size_t size)
{
  if (memory == NULL) {
    return malloc(size);
  }
  return fails() ? NULL : __libc_realloc(memory, size);
}

void *memalign(size_t alignment, size_t size)
{
  return fails() ? NULL : counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
  return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
  void *const block = memalign(alignment, size);
  if (block == NULL) {
    return ENOMEM;
  }
  *memory = block;
  return 0;
}

void free(void *memory)
{
  live -= watching && memory != NULL;
  __libc_free(memory);
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)
// NOLINTEND(bugprone-reserved-identifier, cert-dcl37-c, cert-dcl51-cpp)

#endif
