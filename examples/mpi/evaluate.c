// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// rft-evaluate-mpi: `rft evaluate` with the rows of the batch spread over MPI ranks.

#include "cli/cli.h"
#include "cli/group.h"
#include "mpi_collectives.h"
#include "ranks.h"

#include <stdio.h>
#include <string.h>

static const char HELP[] =
    "usage: mpirun -n RANKS rft-evaluate-mpi ARGUMENTS\n"
    "\n"
    "Takes the arguments of rft evaluate, below. The rows of the batch, or its packed sequences,\n"
    "are spread over the ranks in order, and K micro-batches are those of each rank. Rank 0 "
    "writes\n"
    "and prints the same as rft evaluate does, and what each rank has put into reductions.\n"
    "\n";

static int32_t agree(const cli_group *group, int32_t code, rft_error *error)
{
  const mpi_collectives *const collectives = group->collectives->data;
  return ranks_agree(collectives->group, code, error);
}

static int32_t gather(const cli_group *group, void *items, const int64_t *start, int64_t unit,
                      rft_error *error)
{
  const mpi_collectives *const collectives = group->collectives->data;
  return ranks_gather(collectives->group, items, start, unit, error);
}

static cli_traffic traffic(const cli_group *group)
{
  const mpi_collectives *const collectives = group->collectives->data;
  return (cli_traffic){collectives->reductions, collectives->bytes};
}

static int run(int argc, char **argv)
{
  mpi_collectives collectives;
  rft_error error = {.struct_size = sizeof error};
  if (mpi_collectives_open(MPI_COMM_WORLD, &collectives, &error) != RFT_OK) {
    return cli_fail(&error);
  }
  const cli_group group = {
      .collectives = &collectives.service, .agree = agree, .gather = gather, .traffic = traffic};
  for (int i = 1; i < argc && cli_group_leads(&group); ++i) {
    if (strcmp(argv[i], "--help") == 0) {
      fputs(HELP, stdout);
    }
  }
  static char name[] = "evaluate"; // how messages about its options call the command
  argv[0] = name;
  const int code = cli_evaluate_together(argc, argv, &group);
  mpi_collectives_close(&collectives);
  return cli_finish(code == CLI_HELP ? CLI_OK : code);
}

int main(int argc, char **argv)
{
  MPI_Init(&argc, &argv);
  const int code = run(argc, argv);
  MPI_Finalize();
  return code;
}
