// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The processes that evaluate one batch together, each some of its rows, in order. Wherever a group
// is taken, NULL is this process alone.

#ifndef RFT_CLI_GROUP_H
#define RFT_CLI_GROUP_H

#include "rft/plugin.h"

#include <stdbool.h>

typedef struct cli_group cli_group;

/// What a rank has put into reductions so far.
typedef struct cli_traffic {
  int64_t reductions;
  int64_t bytes;
} cli_traffic;

struct cli_group {
  const rft_collectives *collectives;

  /// RFT_OK where every rank says so; else code and error of one that failed, on all ranks.
  /// [collective]
  int32_t (*agree)(const cli_group *group, int32_t code, rft_error *error);

  /// Each rank has the items [start[rank], start[rank + 1]) of `items`, `unit` bytes each; rank 0
  /// gets all of them. [collective]
  int32_t (*gather)(const cli_group *group, void *items, const int64_t *start, int64_t unit,
                    rft_error *error);

  cli_traffic (*traffic)(const cli_group *group);
};

int64_t cli_group_rank(const cli_group *group);
int64_t cli_group_size(const cli_group *group);

/// Rank 0 speaks for the group and writes its files.
bool cli_group_leads(const cli_group *group);

/// agree and gather of any group.
int32_t cli_group_agree(const cli_group *group, int32_t code, rft_error *error);
int32_t cli_group_gather(const cli_group *group, void *items, const int64_t *start, int64_t unit,
                         rft_error *error);

/// The row that a rank's rows start at, when `rows` are spread as evenly as can be.
int64_t cli_group_start(const cli_group *group, int64_t rows, int64_t rank);

#endif // RFT_CLI_GROUP_H
