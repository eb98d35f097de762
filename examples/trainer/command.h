// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The command rft-train.

#ifndef TRAIN_COMMAND_H
#define TRAIN_COMMAND_H

#include "group.h"

// Runs the command line on every rank of a group and gives the exit code. Rank 0 speaks for all.
// [collective]
int train_command(int count, char **arguments, const train_group *group);

#endif // TRAIN_COMMAND_H
