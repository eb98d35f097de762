// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "group.h"

static int32_t agree(const train_group *group, int32_t code, rft_error *error)
{
  (void)group;
  (void)error;
  return code;
}

static int32_t pass(const train_group *group, void *data, int64_t bytes, rft_error *error)
{
  (void)group;
  (void)data;
  (void)bytes;
  (void)error;
  return RFT_OK;
}

const train_group group_alone = {
    .size = 1, .agree = agree, .share = pass, .take = pass, .give = pass};
