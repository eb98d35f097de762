// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "command.h"
#include "group.h"

int main(int count, char **arguments)
{
  return train_command(count, arguments, &group_alone);
}
