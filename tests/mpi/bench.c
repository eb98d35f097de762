// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void check(int32_t code, const rft_error *error)
{
  if (code != RFT_OK) {
    fprintf(stderr, "test-mpi: %s\n", error->message);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

void bench_open(test_bench *self, const char *plugins)
{
  rft_error error = {.struct_size = sizeof error};
  *self = (test_bench){.registry = NULL};
  check(rft_registry_create(NULL, &self->registry, &error), &error);
  check(rft_registry_scan(self->registry, plugins, &error), &error);
  check(rft_registry_find_policy_loss(self->registry, "m2po", &self->loss, &error), &error);
  check(mpi_collectives_open(MPI_COMM_WORLD, &self->group, &error), &error);
  self->rank = self->group.service.rank;
  self->size = self->group.service.size;
}

void bench_close(test_bench *self)
{
  mpi_collectives_close(&self->group);
  rft_registry_destroy(self->registry);
}

rft_instance *bench_instance(const test_bench *self, const char *config)
{
  rft_instance *instance = NULL;
  rft_error error = {.struct_size = sizeof error};
  check(rft_instance_create(self->registry, self->loss, config, (int64_t)strlen(config), &instance,
                            &error),
        &error);
  return instance;
}

void expect(test_bench *self, bool holds, const char *format, ...)
{
  if (holds || self->failed) {
    return;
  }
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(self->why, sizeof self->why, format, arguments);
  va_end(arguments);
  self->failed = true;
}

void verdict(test_bench *self, const char *name)
{
  char why[sizeof self->why];
  const int failures = count(self, self->failed);
  if (self->rank == 0) {
    printf("%s - %d ranks: %s\n", failures == 0 ? "ok" : "not ok", (int)self->size, name);
  }
  for (int rank = 0; failures > 0 && rank < (int)self->size; ++rank) {
    memcpy(why, self->failed ? self->why : "", self->failed ? sizeof why : 1);
    MPI_Bcast(why, sizeof why, MPI_CHAR, rank, MPI_COMM_WORLD);
    if (self->rank == 0 && why[0] != '\0') {
      printf("# rank %d: %s\n", rank, why);
    }
  }
  (void)fflush(stdout);
  self->failed = false;
}

double sum(const test_bench *self, double value)
{
  (void)self;
  double total = 0;
  MPI_Allreduce(&value, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return total;
}

int count(const test_bench *self, bool yes)
{
  return (int)sum(self, yes ? 1 : 0);
}
