// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A directory of one test's own, gone when the test ends.

#ifndef TEST_SCRATCH_H
#define TEST_SCRATCH_H

#include <stddef.h>

/// The .init and .fini of a suite that uses a scratch directory.
void scratch_begin(void);
void scratch_end(void);

/// The directory, and the path of a name in it; a path lives until its 16th successor is made.
const char *scratch_directory(void);
const char *scratch_path(const char *name);

/// Writes a file, or copies one, and gives its path.
const char *scratch_write(const char *name, const void *bytes, size_t size);
const char *scratch_copy(const char *source, const char *name);

/// Copies tests/fixtures/FIXTURE.c, compiled, as NAME.
const char *scratch_fixture(const char *fixture, const char *name);

/// The whole content of a file, and its size in bytes. Free it.
unsigned char *read_file(const char *path, size_t *size);

#endif // TEST_SCRATCH_H
