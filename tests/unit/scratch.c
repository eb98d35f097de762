// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE // nftw

#include "scratch.h"

#include <criterion/criterion.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { PATHS = 16 };
static char directory[PATH_MAX / 2];

void scratch_begin(void)
{
  const char *const parent = getenv("TMPDIR");
  snprintf(directory, sizeof directory, "%s/rft-test-XXXXXX", parent == NULL ? "/tmp" : parent);
  cr_assert_not_null(mkdtemp(directory));
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *position)
{
  (void)status;
  (void)kind;
  (void)position;
  return remove(path);
}

void scratch_end(void)
{
  chmod(directory, 0700);
  nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_directory(void)
{
  return directory;
}

const char *scratch_path(const char *name)
{
  static char paths[PATHS][PATH_MAX];
  static int next;
  char *const path = paths[next++ % PATHS];
  snprintf(path, PATH_MAX, "%s/%s", directory, name);
  return path;
}

const char *scratch_write(const char *name, const void *bytes, size_t size)
{
  const char *const path = scratch_path(name);
  FILE *const file = fopen(path, "wb");
  cr_assert_not_null(file, "%s", path);
  cr_assert_eq(fwrite(bytes, 1, size, file), size);
  cr_assert_eq(fclose(file), 0);
  return path;
}

const char *scratch_copy(const char *source, const char *name)
{
  size_t size = 0;
  unsigned char *const bytes = read_file(source, &size);
  const char *const path = scratch_write(name, bytes, size);
  free(bytes);
  return path;
}

const char *scratch_fixture(const char *fixture, const char *name)
{
  char source[PATH_MAX];
  snprintf(source, sizeof source, "%s/%s.so", RFT_TEST_FIXTURE_DIR, fixture);
  return scratch_copy(source, name);
}

unsigned char *read_file(const char *path, size_t *size)
{
  FILE *const file = fopen(path, "rb");
  cr_assert_not_null(file, "%s", path);
  struct stat status;
  cr_assert_eq(fstat(fileno(file), &status), 0);
  *size = (size_t)status.st_size;
  unsigned char *const bytes = malloc(*size + 1);
  cr_assert_eq(fread(bytes, 1, *size, file), *size);
  bytes[*size] = '\0';
  fclose(file);
  return bytes;
}
