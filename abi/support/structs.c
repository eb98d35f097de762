// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "structs.h"

#include "error.h"

#include <inttypes.h>
#include <string.h>

int32_t rft_check_size(const void *object, uint32_t known_size, const char *name, rft_error *error)
{
  if (object == NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected a struct, found NULL", name);
  }
  const unsigned char *const bytes = object;
  uint32_t size;
  memcpy(&size, bytes, sizeof size);
  if (size < known_size) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected struct_size of at least %" PRIu32 ", found %" PRIu32, name,
                    known_size, size);
  }
  for (uint32_t i = known_size; i < size; ++i) {
    if (bytes[i] != 0) {
      return rft_fail(error, RFT_UNIMPLEMENTED,
                      "%s: byte %" PRIu32 " is set, in a field newer than ABI minor %d knows", name,
                      i, RFT_ABI_MINOR);
    }
  }
  return RFT_OK;
}

int32_t rft_check_struct(const void *object, uint32_t known_size, const char *name,
                         rft_error *error)
{
  const int32_t code = rft_check_size(object, known_size, name, error);
  if (code != RFT_OK) {
    return code;
  }
  uint32_t reserved;
  memcpy(&reserved, (const unsigned char *)object + sizeof reserved, sizeof reserved);
  if (reserved != 0) {
    return rft_fail(error, RFT_UNIMPLEMENTED, "%s: expected reserved to be 0, found %" PRIu32, name,
                    reserved);
  }
  return RFT_OK;
}
