// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft-train-mpi: rft-train with the prompts of every batch spread over MPI ranks.

#include "command.h"
#include "mpi_group.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char HELP[] =
    "usage: mpirun -n RANKS rft-train-mpi [--check-selection] ARGUMENTS\n"
    "\n"
    "Takes the arguments of rft-train, below, for rollouts of mode stale. The prompts of every\n"
    "batch are spread over the ranks in order; rank 0 writes the log and measures accuracy. Where\n"
    "RANKS divides prompts and micro-batches, the run has the bits of rft-train's.\n"
    "\n"
    "  --check-selection  gathers every batch on rank 0 and compares the selection, bit by bit,\n"
    "                     with that of one process\n"
    "\n";

// Takes an argument out of the list, all of its occurrences; says whether there was one.
static bool take_flag(int *count, char **arguments, const char *flag)
{
  int kept = 1;
  for (int i = 1; i < *count; ++i) {
    if (strcmp(arguments[i], flag) != 0) {
      arguments[kept++] = arguments[i];
    }
  }
  const bool found = kept < *count;
  *count = kept;
  arguments[kept] = NULL;
  return found;
}

static int run(int count, char **arguments)
{
  mpi_group group;
  rft_error error = {.struct_size = sizeof error};
  const bool check = take_flag(&count, arguments, "--check-selection");
  if (mpi_group_open(&group, check, &error) != RFT_OK) {
    fprintf(stderr, "rft-train-mpi: %s\n", error.message);
    return 1;
  }
  for (int i = 1; i < count && group.group.rank == 0; ++i) {
    if (strcmp(arguments[i], "--help") == 0) {
      fputs(HELP, stdout);
    }
  }
  const int status = train_command(count, arguments, &group.group);
  mpi_group_close(&group);
  return status;
}

int main(int count, char **arguments)
{
  // The trainer's threads sample and multiply; the main thread alone calls MPI.
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &provided);
  const int status = run(count, arguments);
  MPI_Finalize();
  return status;
}
