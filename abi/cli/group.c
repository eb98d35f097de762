// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "group.h"

int64_t cli_group_rank(const cli_group *group)
{
  return group == NULL ? 0 : group->collectives->rank;
}

int64_t cli_group_size(const cli_group *group)
{
  return group == NULL ? 1 : group->collectives->size;
}

bool cli_group_leads(const cli_group *group)
{
  return cli_group_rank(group) == 0;
}

int32_t cli_group_agree(const cli_group *group, int32_t code, rft_error *error)
{
  return group == NULL ? code : group->agree(group, code, error);
}

int32_t cli_group_gather(const cli_group *group, void *items, const int64_t *start, int64_t unit,
                         rft_error *error)
{
  return group == NULL ? RFT_OK : group->gather(group, items, start, unit, error);
}

int64_t cli_group_start(const cli_group *group, int64_t rows, int64_t rank)
{
  const int64_t size = cli_group_size(group);
  const int64_t larger = rows % size;
  return rank * (rows / size) + (rank < larger ? rank : larger);
}
