/* Rows, and the lists of classes and places. Room is taken beforehand (egi_rows_reserve), so that nothing fails
 * half-way. */
#include <string.h>

#include "egraph/sat_int.h"

bool egi_rows_reserve(eg_sat *s, size_t n, uint32_t arity) {
  const size_t words = s->n_w + n * egi_row_words(arity) + 1, classes = s->n_cls + n;
  if (words > ROW_MAX || classes > ROW_MAX) return false;
  return egi_grow(s->w, s->cap_w, words) && egi_grow(s->up, s->cap_up, classes) && egi_grow(s->cls, s->cap_cls, classes) &&
         egi_grow_used(s->dirty, s->cap_dirty, s->n_dirty, classes) && egi_table_grow(s, n) &&
         (!s->analysis.size || egi_big_grow((void **)&s->data, &s->cap_data, s->n_cls, classes, s->analysis.size)) &&
         (!s->analysis.make || (egi_grow(s->look_next, s->cap_look, classes) && egi_grow(s->repair_next, s->cap_repair, classes)));
}

uint32_t egi_row_hash(const eg_sat *s, uint32_t row) {
  const uint32_t op = egi_row_op(s, row), n = s->op[op].arity;
  uint64_t h = op;
  for (uint32_t k = 0; k < n; k++) h = egi_mix(h, egi_row_child(s, row, k));
  return egi_mix_end(h);
}

/* ---- rows ---- */

static uint32_t class_new(eg_sat *s) {
  const uint32_t c = (uint32_t)s->n_cls++;
  s->up[c] = c;
  s->cls[c] = (egi_cls){0};
  if (s->analysis.size) memset(s->data + c * s->analysis.size, 0, s->analysis.size);
  if (s->analysis.make) s->look_next[c] = s->repair_next[c] = EG_NONE;
  return c;
}

void egi_row_mark(eg_sat *s, uint32_t row) {
  if (!s->track || (s->w[row + ROW_HEAD] & ROW_FRESH)) return;
  s->w[row + ROW_HEAD] |= ROW_FRESH;
  if (s->lost) return;
  if (egi_grow(s->fresh, s->cap_fresh, s->n_fresh + 1)) s->fresh[s->n_fresh++] = row;
  else s->lost = true;
}

uint32_t egi_row_append(eg_sat *s, uint32_t op, const uint32_t *child, uint32_t n, uint32_t hash, uint32_t c) {
  const uint32_t row = (uint32_t)s->n_w;
  const uint16_t bit = s->op[op].bit;
  uint32_t *w = s->w;
  s->n_w += egi_row_words(n);
  if (c == EG_NONE) c = class_new(s);
  w[row + ROW_CLASS] = c;
  /* What is appended is known to be fresh by where it lies: only changed rows need the list. */
  w[row + ROW_HEAD] = op | ROW_IS_HEAD | (s->track ? ROW_FRESH : 0);
  w[row + ROW_NEXT] = s->cls[c].rows;
  s->cls[c].rows = row;
  s->cls[c].weight++;
  s->cls[c].has |= bit;
  for (uint32_t k = 0; k < n; k++) {
    egi_cls *kid = &s->cls[child[k]];
    const uint32_t place = row + ROW_KIDS + 2 * k;
    w[place] = child[k];
    w[place + 1] = kid->places;
    kid->places = place;
    kid->weight++;
    kid->above |= bit;
  }
  egi_row_insert(s, row, hash);
  s->op[op].n_rows++;
  if (n == 0) s->op[op].leaf = row;
  s->n_added++;
  return row;
}

void egi_row_kill(eg_sat *s, uint32_t row) {
  uint32_t *head = &s->w[row + ROW_HEAD];
  egi_op *op = &s->op[*head & ROW_OP];
  if (*head & ROW_HIDDEN) s->n_hidden--;
  else op->n_rows--;
  *head |= ROW_DEAD;
  s->n_dead += egi_row_words(op->arity);
}
