/* Merging classes, congruence restored.
 *
 * A merge joins the lists of rows at once and leaves the places of the class that goes where they are: that class is
 * chained as dirty through its own record. Closing walks those places only, brings each row's children up to date, and
 * merges the classes of rows that have become equal, so its cost follows what changed (Willsey et al., egg, POPL 2021,
 * section 3; Downey, Sethi and Tarjan, JACM 1980, for keeping the class with the longer lists). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/sat_int.h"

/* Walks the rows of the class that goes, which its weight pays for: those that stay shown are marked, as their class
 * changed, and dead ones are dropped. Returns: the last, 0 if none is left. */
static uint32_t leave(eg_sat *s, uint32_t *first) {
  uint32_t *w = s->w, *link = first, last = 0;
  for (uint32_t r = *first; r; r = w[r + ROW_NEXT]) {
    if (!egi_row_shown(w[r + ROW_HEAD])) continue;
    egi_row_mark(s, r);
    *link = r;
    link = &w[r + ROW_NEXT];
    last = r;
  }
  *link = 0;
  return last;
}

uint32_t egi_sat_union(eg_sat *s, uint32_t a, uint32_t b) {
  assert(a != b && s->cls[a].up == a && s->cls[b].up == b);
  const bool a_stays = s->cls[a].weight > s->cls[b].weight || (s->cls[a].weight == s->cls[b].weight && a < b);
  const uint32_t kept = a_stays ? a : b, gone = a_stays ? b : a;
  egi_cls *k = &s->cls[kept], *o = &s->cls[gone];
  const uint32_t last = leave(s, &o->rows);
  if (last) {
    s->w[last + ROW_NEXT] = k->rows;
    k->rows = o->rows;
  }
  o->rows = 0;
  o->up = kept;
  k->weight += o->weight;
  k->has |= o->has;
  k->above |= o->above;
  o->weight = s->dirty == EG_NONE ? gone : s->dirty;
  s->dirty = gone;
  s->n_merged++;
  s->n_unions++;
  if (s->analysis.size) egi_sat_data_union(s, kept, gone);
  return kept;
}

/* Bring one row up to date; its class may merge. Returns: false if it is dead and its places can go. */
static bool restore(eg_sat *s, uint32_t row) {
  uint32_t *w = s->w + row;
  if (w[ROW_HEAD] & ROW_DEAD) return false;
  const uint32_t op = w[ROW_HEAD] & ROW_OP, n = s->op[op].arity;
  uint64_t old = op, new = op;
  bool same = true;
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t c = w[ROW_KIDS + 2 * k], f = egi_sat_find(s, c);
    old = egi_mix(old, c);
    new = egi_mix(new, f);
    same = same && c == f;
  }
  if (same) return true;
  egi_row_remove(s, row, egi_mix_end(old));
  for (uint32_t k = 0; k < n; k++) w[ROW_KIDS + 2 * k] = egi_sat_find(s, w[ROW_KIDS + 2 * k]);
  const uint32_t hash = egi_mix_end(new);
  const size_t mask = s->n_cells - 1;
  for (size_t i = hash & mask; s->cell[i].row; i = (i + 1) & mask) {
    if (s->cell[i].hash != hash) continue;
    const uint32_t *other = s->w + s->cell[i].row;
    bool equal = ((other[ROW_HEAD] ^ w[ROW_HEAD]) & ROW_OP) == 0;
    for (uint32_t k = 0; equal && k < n; k++) equal = other[ROW_KIDS + 2 * k] == w[ROW_KIDS + 2 * k];
    if (!equal) continue;
    /* The one that is shown stays in the table, so that pruning does not hide what somebody else put there. */
    uint32_t stays = s->cell[i].row, goes = row;
    if ((other[ROW_HEAD] & ROW_HIDDEN) && !(w[ROW_HEAD] & ROW_HIDDEN)) {
      s->cell[i].row = row;
      stays = row;
      goes = (uint32_t)(other - s->w);
      egi_row_mark(s, row);
    }
    const uint32_t a = egi_row_class(s, stays), b = egi_row_class(s, goes);
    egi_row_kill(s, goes);
    if (a != b) egi_sat_union(s, a, b);
    return stays == row;
  }
  egi_row_insert(s, row, hash);
  egi_row_mark(s, row);
  return true;
}

/* The places of a class that merged away go to the class it merged into, without those of dead rows. All of them, since
 * that class was canonical when the walk began; if it merges meanwhile it is dirty itself, and walked later. */
static void close_class(eg_sat *s, uint32_t gone) {
  uint32_t *w = s->w, *link = &s->cls[gone].places, place = *link;
  const uint32_t into = egi_sat_find(s, gone);
  while (place) {
    const uint32_t next = w[place + 1];
    if (restore(s, egi_place_row(w, place))) {
      *link = place;
      link = &w[place + 1];
    }
    place = next;
  }
  *link = s->cls[into].places;
  s->cls[into].places = s->cls[gone].places;
  s->cls[gone].places = 0;
}

void egi_sat_close(eg_sat *s) {
  while (s->dirty != EG_NONE) {
    const uint32_t gone = s->dirty, next = s->cls[gone].weight;
    s->dirty = next == gone ? EG_NONE : next;
    close_class(s, gone);
  }
}
