// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "squares.h"

#include <stdlib.h>
#include <string.h>

// Of a part under construction; a finished one is cut down to what it holds.
enum { PART_BYTES = 8192 };

static int64_t bytes_of(const m2po_squares *part)
{
  return part->count * (int64_t)(part->wide ? sizeof(double) : sizeof(float));
}

static bool add_part(m2po_square_list *list, bool wide)
{
  m2po_squares *const part = malloc(sizeof *part + PART_BYTES);
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
  return true;
}

bool m2po_squares_append(m2po_square_list *list, bool wide, double value)
{
  if ((list->last == NULL || bytes_of(list->last) == PART_BYTES) && !add_part(list, wide)) {
    return false;
  }
  m2po_squares *const part = list->last;
  if (wide) {
    part->values[part->count++] = value;
  } else {
    ((float *)(void *)part->values)[part->count++] = (float)value;
  }
  return true;
}

bool m2po_squares_append_floats(m2po_square_list *list, const float *squares, int64_t count)
{
  enum { MOST = PART_BYTES / sizeof(float) };
  while (count > 0) {
    if ((list->last == NULL || list->last->count == MOST) && !add_part(list, false)) {
      return false;
    }
    m2po_squares *const part = list->last;
    const int64_t room = MOST - part->count;
    const int64_t length = count < room ? count : room;
    memcpy((float *)(void *)part->values + part->count, squares, (size_t)length * sizeof(float));
    part->count += length;
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
  *tail = (m2po_square_list){NULL, NULL};
}

void m2po_squares_free(m2po_square_list *list)
{
  while (list->first != NULL) {
    m2po_squares *const next = list->first->next;
    free(list->first);
    list->first = next;
  }
  list->last = NULL;
}
