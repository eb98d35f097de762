// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "schema.h"

#include <stdbool.h>
#include <string.h>

// Longer names are never near anything: a bound for the rows below.
#define LONGEST_NAME 63

static char lower(char c)
{
  if (c >= 'A' && c <= 'Z') {
    return (char)(c - 'A' + 'a');
  }
  return c;
}

static int least(int a, int b, int c)
{
  const int ab = a < b ? a : b;
  return ab < c ? ab : c;
}

// Levenshtein distance of two names of at most LONGEST_NAME bytes, whatever the case.
static int edit_distance(const char *a, const char *b)
{
  int row[LONGEST_NAME + 1];
  const int columns = (int)strlen(b);
  for (int j = 0; j <= columns; ++j) {
    row[j] = j;
  }
  for (int i = 1; a[i - 1] != '\0'; ++i) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= columns; ++j) {
      const int replaced = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
      diagonal = row[j];
      row[j] = least(replaced, row[j] + 1, row[j - 1] + 1);
    }
  }
  return row[columns];
}

// A third of the longer name may differ, and one letter always.
static bool is_near(int distance, size_t length, size_t other_length)
{
  const size_t longer = length > other_length ? length : other_length;
  return distance <= 1 || (size_t)distance <= longer / 3;
}

typedef struct best_match {
  const char *name;
  int distance;
} best_match;

static void consider(best_match *best, const char *name, const char *spelling, const char *key)
{
  const size_t length = strlen(spelling);
  if (length > LONGEST_NAME) {
    return;
  }
  const int distance = edit_distance(name, spelling);
  if (distance < best->distance && is_near(distance, strlen(name), length)) {
    *best = (best_match){.name = key, .distance = distance};
  }
}

const char *rft_nearest_name(const json_t *known, const char *name)
{
  if (strlen(name) > LONGEST_NAME) {
    return NULL;
  }
  best_match best = {.name = NULL, .distance = LONGEST_NAME + 1};
  const char *key = NULL;
  json_t *value = NULL;
  json_object_foreach((json_t *)known, key, value)
  {
    consider(&best, name, key, key);
    const json_t *const aliases = json_object_get(value, "x-aliases");
    for (size_t i = 0; i < json_array_size(aliases); ++i) {
      const char *const alias = json_string_value(json_array_get(aliases, i));
      if (alias != NULL) {
        consider(&best, name, alias, key);
      }
    }
  }
  return best.name;
}
