// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The squared log-ratios m of the tokens that Algorithm 1 may drop, in token order: a list of
// parts, so that it grows without being copied.

#ifndef M2PO_SQUARES_H
#define M2PO_SQUARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct m2po_squares {
  struct m2po_squares *next; ///< later in token order, or NULL
  bool wide;                 ///< float64, else float32
  int64_t count;
  int64_t equals_before; ///< once a cut is found where some stay: tokens at it in earlier parts
  double values[];       ///< [count], or that many floats: finite, >= 0
} m2po_squares;

typedef struct m2po_square_list {
  m2po_squares *first; ///< NULL where empty
  m2po_squares *last;
  int64_t parts;
  int64_t room;       ///< for so many more in the last part
  int64_t most_bytes; ///< of a part
} m2po_square_list;

/// An empty list, one of so many that grow at the same time.
m2po_square_list m2po_squares_begin(int64_t at_once);

/// The values of a part that is not wide.
static inline const float *m2po_squares_narrow(const m2po_squares *squares)
{
  return (const float *)(const void *)squares->values;
}

static inline double m2po_square_at(const m2po_squares *squares, int64_t i)
{
  return squares->wide ? squares->values[i] : (double)m2po_squares_narrow(squares)[i];
}

/// Asks for the memory of a part (NULL: none), which will be read in order: its start.
static inline void m2po_squares_fetch(const m2po_squares *part)
{
  enum { LINE = 64, LINES = 16 };
  for (int i = 0; part != NULL && i < LINES; ++i) {
    __builtin_prefetch((const char *)part + (int64_t)i * LINE);
  }
}

/// Adds one at the end; false: out of memory. All of a list's are `wide`, or none.
bool m2po_squares_append(m2po_square_list *list, bool wide, double value);

/// Adds so many float32 squares at the end; false: out of memory.
bool m2po_squares_append_floats(m2po_square_list *list, const float *squares, int64_t count);

/// Gives back memory that the list doesn't use. It may move its last part.
void m2po_squares_trim(m2po_square_list *list);

/// Moves the parts of `tail` to the end of `list`.
void m2po_squares_join(m2po_square_list *list, m2po_square_list *tail);

void m2po_squares_free(m2po_square_list *list);

/// Reads a list from some part on, in token order.
typedef struct m2po_square_cursor {
  const m2po_squares *part;
  int64_t next;
} m2po_square_cursor;

static inline double m2po_square_next(m2po_square_cursor *cursor)
{
  if (cursor->next == cursor->part->count) {
    *cursor = (m2po_square_cursor){cursor->part->next, 0};
  }
  return m2po_square_at(cursor->part, cursor->next++);
}

#endif // M2PO_SQUARES_H
