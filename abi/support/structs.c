// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "structs.h"

#include "error.h"

#include <inttypes.h>
#include <string.h>

static uint32_t word_at(const void *object, size_t index)
{
  uint32_t word;
  memcpy(&word, (const unsigned char *)object + (index * sizeof word), sizeof word);
  return word;
}

int32_t rft_check_table(const void *table, uint32_t known_size, const char *name, rft_error *error)
{
  if (table == NULL) {
    return rft_fail(error, RFT_INVALID_ARGUMENT, "%s: expected a struct, found NULL", name);
  }
  const uint32_t size = word_at(table, 0);
  if (size < known_size) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "%s: expected struct_size of at least %" PRIu32 ", found %" PRIu32, name,
                    known_size, size);
  }
  return RFT_OK;
}

int32_t rft_check_request(const void *request, uint32_t known_size, const char *name,
                          rft_error *error)
{
  const int32_t code = rft_check_table(request, known_size, name, error);
  if (code != RFT_OK) {
    return code;
  }
  const unsigned char *const bytes = request;
  for (uint32_t i = known_size; i < word_at(request, 0); ++i) {
    if (bytes[i] != 0) {
      return rft_fail(error, RFT_UNIMPLEMENTED,
                      "%s: byte %" PRIu32 " is set, in a field newer than ABI minor %d knows", name,
                      i, RFT_ABI_MINOR);
    }
  }
  if (word_at(request, 1) != 0) {
    return rft_fail(error, RFT_UNIMPLEMENTED, "%s: expected reserved to be 0, found %" PRIu32, name,
                    word_at(request, 1));
  }
  return RFT_OK;
}
