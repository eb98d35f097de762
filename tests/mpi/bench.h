// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The test bench of one rank: the plugin, the group, and expectations of which the ranks make one
// result.

#ifndef TEST_MPI_BENCH_H
#define TEST_MPI_BENCH_H

#include "mpi_collectives.h"
#include "tokens.h"

typedef struct test_bench {
  rft_registry *registry;
  const rft_policy_loss *loss;
  mpi_collectives group;
  int64_t rank;
  int64_t size;
  bool failed;   ///< an expectation of this test, here
  char why[512]; ///< the first one
} test_bench;

/// Loads the plugin of a directory. Ends the job where that fails.
void bench_open(test_bench *self, const char *plugins);
void bench_close(test_bench *self);

/// An instance with a config that is right.
rft_instance *bench_instance(const test_bench *self, const char *config);

/// Notes what was expected where `holds` is false.
void expect(test_bench *self, bool holds, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/// Ends a test: one line of all ranks, and a line for each that says why. [collective]
void verdict(test_bench *self, const char *name);

/// The sum over the ranks, and the number of those that say yes. [collective]
double sum(const test_bench *self, double value);
int count(const test_bench *self, bool yes);

#endif // TEST_MPI_BENCH_H
