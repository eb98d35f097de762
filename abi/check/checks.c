// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "check.h"

#include <stdlib.h>
#include <string.h>

static const check_area *const AREAS[] = {
    &file_checks,     &load_checks,     &entry_checks,   &table_checks,     &schema_checks,
    &config_checks,   &instance_checks, &struct_checks,  &error_checks,     &tensor_checks,
    &dtype_checks,    &value_checks,    &numeric_checks, &selection_checks, &collective_checks,
    &one_pass_checks, &process_checks};
enum { AREA_COUNT = sizeof AREAS / sizeof AREAS[0] };

int check_count(void)
{
  int count = 0;
  for (int i = 0; i < AREA_COUNT; ++i) {
    count += AREAS[i]->count;
  }
  return count;
}

const check *check_at(int index)
{
  int area = 0;
  while (index >= AREAS[area]->count) {
    index -= AREAS[area++]->count;
  }
  return &AREAS[area]->checks[index];
}

const check *check_find(const char *name)
{
  char *end = NULL;
  const long number = strtol(name, &end, 10);
  for (int i = 0; i < check_count(); ++i) {
    const check *const candidate = check_at(i);
    if (strcmp(candidate->name, name) == 0 || (*end == '\0' && candidate->number == number)) {
      return candidate;
    }
  }
  return NULL;
}
