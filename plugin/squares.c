// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "squares.h"

#include <stdlib.h>
#include <string.h>

// The last part of a list has room to spare: the first ones are small. Later ones are larger, so
// that their headers are little beside them, but not so large that all lists that grow at the same
// time have much to spare.
enum { LEAST_BYTES = 8192, MOST_BYTES = 65536, MOST_SPARE = 262144 };

m2po_square_list m2po_squares_begin(int64_t at_once)
{
  const int64_t fair = at_once < 1 ? MOST_SPARE : MOST_SPARE / at_once / LEAST_BYTES * LEAST_BYTES;
  const int64_t most = fair < MOST_BYTES ? fair : MOST_BYTES;
  return (m2po_square_list){.most_bytes = most > LEAST_BYTES ? most : LEAST_BYTES};
}

static int64_t bytes_of(const m2po_squares *part)
{
  return part->count * (int64_t)(part->wide ? sizeof(double) : sizeof(float));
}

static bool add_part(m2po_square_list *list, bool wide)
{
  const int64_t wanted = (1 + list->parts / 16) * LEAST_BYTES;
  const int64_t bytes = wanted < list->most_bytes ? wanted : list->most_bytes;
  m2po_squares *const part = malloc(sizeof *part + (size_t)bytes);
  if (part == NULL) {
    return false;
  }
  *part = (m2po_squares){.wide = wide};
  if (list->last == NULL) {
    list->first = part;
  } else {
    list->last->next = part;
  }
  list->last = part;
  list->room = bytes / (int64_t)(wide ? sizeof(double) : sizeof(float));
  ++list->parts;
  return true;
}

bool m2po_squares_append(m2po_square_list *list, bool wide, double value)
{
  if (list->room == 0 && !add_part(list, wide)) {
    return false;
  }
  m2po_squares *const part = list->last;
  if (wide) {
    part->values[part->count++] = value;
  } else {
    ((float *)(void *)part->values)[part->count++] = (float)value;
  }
  --list->room;
  return true;
}

bool m2po_squares_append_floats(m2po_square_list *list, const float *squares, int64_t count)
{
  while (count > 0) {
    if (list->room == 0 && !add_part(list, false)) {
      return false;
    }
    m2po_squares *const part = list->last;
    const int64_t length = count < list->room ? count : list->room;
    memcpy((float *)(void *)part->values + part->count, squares, (size_t)length * sizeof(float));
    part->count += length;
    list->room -= length;
    squares += length;
    count -= length;
  }
  return true;
}

// Only the last part has room left. Where it can't be made smaller it stays as it is.
void m2po_squares_trim(m2po_square_list *list)
{
  if (list->last == NULL) {
    return;
  }
  m2po_squares **link = &list->first;
  while (*link != list->last) {
    link = &(*link)->next;
  }
  m2po_squares *const smaller = realloc(*link, sizeof **link + (size_t)bytes_of(*link));
  if (smaller != NULL) {
    *link = smaller;
    list->last = smaller;
    list->room = 0;
  }
}

void m2po_squares_join(m2po_square_list *list, m2po_square_list *tail)
{
  if (tail->first == NULL) {
    return;
  }
  if (list->last == NULL) {
    list->first = tail->first;
  } else {
    list->last->next = tail->first;
  }
  list->last = tail->last;
  list->parts += tail->parts;
  list->room = tail->room;
  *tail = (m2po_square_list){.most_bytes = tail->most_bytes};
}

void m2po_squares_free(m2po_square_list *list)
{
  while (list->first != NULL) {
    m2po_squares *const next = list->first->next;
    free(list->first);
    list->first = next;
  }
  *list = (m2po_square_list){.most_bytes = list->most_bytes};
}
