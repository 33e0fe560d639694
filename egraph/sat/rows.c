/* Rows, the lists of classes and places, and those that searches start from. Room is taken
 * beforehand (egi_rows_reserve), so that nothing fails half-way. */
#include <string.h>

#include "egraph/sat/query_int.h"

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

bool egi_rows_grow(eg_sat *s, size_t n, uint32_t arity) {
  const size_t words = s->n_w + n * egi_row_words(arity) + 1, classes = s->n_cls + n;
  if (words > ROW_MAX || classes > ROW_MAX) return false;
  egi_flat_drop(s);
  if (!egi_grow(s->w, s->cap_w, words) || !egi_grow(s->up, s->cap_up, classes) ||
      !egi_grow(s->cls, s->cap_cls, classes) ||
      !egi_grow_used(s->dirty, s->cap_dirty, s->n_dirty, classes, false) || !egi_table_grow(s, n))
    return false;
  size_t room = least(least(s->cap_up, s->cap_cls), s->cap_dirty);
  if (s->analysis.make) {
    if (!egi_big_grow((void **)&s->data, &s->cap_data, s->n_cls, classes, s->analysis.size, true) ||
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

/* ---- where searches start ---- */

static bool list_row(eg_sat *s, uint32_t r) {
  egi_op *op = &s->op[egi_row_op(s, r)];
  if (op->arity == 0) return true;
  if (!egi_grow(op->row, op->cap_row, op->n_row + 1)) return false;
  op->row[op->n_row++] = r;
  return true;
}

bool egi_index(eg_sat *s) {
  bool ok = true;
  size_t r = s->indexed ? s->indexed : 1;
  while (ok && r < s->n_w) {
    const size_t words = egi_row_words(s->op[egi_row_op(s, (uint32_t)r)].arity);
    if (!(s->w[r + ROW_HEAD] & ROW_DEAD)) ok = list_row(s, (uint32_t)r);
    if (ok) s->indexed = r += words;
  }
  return ok;
}

static bool list_fresh(eg_sat *s, uint32_t r) {
  const uint32_t head = s->w[r + ROW_HEAD];
  egi_op *op = &s->op[head & ROW_OP];
  if (!egi_row_shown(head)) return true; /* its mark means nothing any more */
  if (op->arity == 0) {
    if (r < s->seen) return true;
    if (!egi_grow(s->fresh, s->cap_fresh, s->n_fresh + 1)) return false;
    s->fresh[s->n_fresh++] = r;
    return true;
  }
  if (!egi_grow(op->fresh, op->cap_fresh, op->n_fresh + 1)) return false;
  op->fresh[op->n_fresh++] = r;
  return true;
}

bool egi_index_fresh(eg_sat *s) {
  bool ok = !s->lost;
  const size_t n = s->n_fresh;
  for (size_t i = 0; i < s->n_ops; i++) s->op[i].n_fresh = 0;
  for (size_t i = 0; ok && i < n; i++)
    if (s->fresh[i] < s->seen) ok = list_fresh(s, s->fresh[i]); /* the others are met below */
  for (size_t r = s->seen; ok && r < s->n_w;
       r += egi_row_words(s->op[egi_row_op(s, (uint32_t)r)].arity))
    ok = list_fresh(s, (uint32_t)r);
  return s->listed = ok;
}

static void unmark(eg_sat *s, const uint32_t *row, size_t n) {
  for (size_t i = 0; i < n; i++) s->w[row[i] + ROW_HEAD] &= ~ROW_FRESH;
}

void egi_unmark(eg_sat *s) {
  if (s->marked) unmark(s, s->fresh, s->n_fresh);
  if (s->marked && s->listed) {
    for (size_t i = 0; i < s->n_ops; i++) unmark(s, s->op[i].fresh, s->op[i].n_fresh);
  } else if (s->marked) {
    size_t r = s->lost || !s->seen ? 1 : s->seen;
    for (; r < s->n_w; r += egi_row_words(s->op[egi_row_op(s, (uint32_t)r)].arity))
      s->w[r + ROW_HEAD] &= ~ROW_FRESH;
  }
  s->seen = s->n_w;
  s->flat->unmarked_at = eg_sat_version(s);
  s->n_fresh = 0;
  s->lost = s->listed = s->marked = false;
}
