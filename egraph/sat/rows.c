/* Rows, and the lists of classes and places. Room is taken beforehand (egi_rows_reserve), so that
 * nothing fails half-way. */
#include <string.h>

#include "egraph/sat/sat_int.h"

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

bool egi_rows_grow(eg_sat *s, size_t n, uint32_t arity) {
  const size_t words = s->n_w + n * egi_row_words(arity) + 1, classes = s->n_cls + n;
  if (words > ROW_MAX || classes > ROW_MAX) return false;
  egi_flat_drop(s);
  if (!egi_grow(s->w, s->cap_w, words) || !egi_grow(s->up, s->cap_up, classes) ||
      !egi_grow(s->cls, s->cap_cls, classes) ||
      !egi_grow_used(s->dirty, s->cap_dirty, s->n_dirty, classes) || !egi_table_grow(s, n))
    return false;
  size_t room = least(least(s->cap_up, s->cap_cls), s->cap_dirty);
  if (s->analysis.make) {
    if (!egi_big_grow((void **)&s->data, &s->cap_data, s->n_cls, classes, s->analysis.size) ||
        !egi_grow(s->look_next, s->cap_look, classes) ||
        !egi_grow(s->repair_next, s->cap_repair, classes))
      return false;
    room = least(least(room, s->cap_data), least(s->cap_look, s->cap_repair));
  }
  s->room_words = least(s->cap_w, ROW_MAX);
  s->room_classes = least(room, ROW_MAX);
  return true;
}

uint32_t egi_row_hash(const eg_sat *s, uint32_t row) {
  const uint32_t op = egi_row_op(s, row), n = s->op[op].arity;
  uint64_t h = egi_mix_op(op);
  for (uint32_t k = 0; k < n; k++) h = egi_mix(h, egi_row_child(s, row, k));
  return egi_mix_end(h);
}

/* ---- rows ---- */

void egi_row_mark(eg_sat *s, uint32_t row) {
  if (!s->track || (s->w[row + ROW_HEAD] & ROW_FRESH)) return;
  s->w[row + ROW_HEAD] |= ROW_FRESH;
  if (s->lost) return;
  if (egi_grow(s->fresh, s->cap_fresh, s->n_fresh + 1)) s->fresh[s->n_fresh++] = row;
  else s->lost = true;
}

uint32_t egi_row_append(eg_sat *s, uint32_t op, const uint32_t *child, uint32_t n, uint32_t hash,
                        uint32_t c) {
  switch (n) {
  case 1: return egi_row_append_in(s, op, child, 1, hash, c);
  case 2: return egi_row_append_in(s, op, child, 2, hash, c);
  default: return egi_row_append_in(s, op, child, n, hash, c);
  }
}

void egi_row_kill(eg_sat *s, uint32_t row) {
  uint32_t *head = &s->w[row + ROW_HEAD];
  egi_op *op = &s->op[*head & ROW_OP];
  if (*head & ROW_HIDDEN) s->n_hidden--;
  else op->n_rows--;
  *head |= ROW_DEAD;
  s->n_dead += egi_row_words(op->arity);
}
