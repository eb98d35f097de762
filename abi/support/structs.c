// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "structs.h"

#include "error.h"

#include <inttypes.h>
#include <string.h>

int32_t rft_check_struct(const void *object, uint32_t known_size, const char *name,
                         rft_error *error)
{
  if (object == NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected a struct, found NULL", name);
  }
  uint32_t head[2] = {0, 0};
  memcpy(head, object, sizeof head[0]);
  if (head[0] < known_size) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected struct_size of at least %" PRIu32 ", found %" PRIu32, name,
                    known_size, head[0]);
  }
  memcpy(head, object, sizeof head);
  const unsigned char *const bytes = object;
  for (uint32_t i = known_size; i < head[0]; ++i) {
    if (bytes[i] != 0) {
      return rft_fail(error, RFT_UNIMPLEMENTED,
                      "%s: byte %" PRIu32 " is set, in a field newer than ABI minor %d knows", name,
                      i, RFT_ABI_MINOR);
    }
  }
  if (head[1] != 0) {
    return rft_fail(error, RFT_UNIMPLEMENTED, "%s: expected reserved to be 0, found %" PRIu32, name,
                    head[1]);
  }
  return RFT_OK;
}
