/* Merging classes, congruence restored.
 *
 * A merge joins the lists of rows at once and leaves the places of the class that goes where they
 * are. Closing walks those places only, brings each row's children up to date, and merges the
 * classes of rows that have become equal, so its cost is proportional to the changes (Willsey et
 * al., egg, POPL 2021, section 3; Downey, Sethi and Tarjan, JACM 1980, for keeping the class with
 * the longer lists). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/sat_int.h"

/* Walks the rows of the class that goes, which its weight pays for: those that stay shown are
 * marked, as their class changed, and dead ones are dropped. Returns: the last, 0 if none is left.
 */
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
  assert(a != b && s->up[a] == a && s->up[b] == b);
  const uint32_t gone = egi_gone(s, a, b), kept = a ^ b ^ gone;
  egi_cls *k = &s->cls[kept], *o = &s->cls[gone];
  const uint32_t last = leave(s, &o->rows);
  if (last) {
    s->w[last + ROW_NEXT] = k->rows;
    k->rows = o->rows;
  }
  o->rows = 0;
  s->up[gone] = kept;
  k->weight += o->weight;
  k->has |= o->has;
  k->above |= o->above;
  s->dirty[s->n_dirty++] = gone;
  s->n_merged++;
  s->n_unions++;
  if (s->analysis.size) egi_sat_data_union(s, kept, gone);
  return kept;
}

/* ---- closing ----
 *
 * Places are taken in batches from several classes at a time, and each step is done for the whole
 * batch, while the memory that the next one touches is prefetched: a rebuild is bound by memory
 * latency alone. */

enum { BATCH = 128, LANES = 16 };

typedef struct lane {
  uint32_t gone, place;
} lane;

typedef struct closing {
  lane lane[LANES]; /* classes that are walked, and how far */
  size_t n_lanes;
  size_t next; /* of s->dirty */
  size_t n;
  struct {
    uint32_t place, gone, row; /* row 0: dead, and the place is dropped */
    bool changed;
    uint32_t old, hash; /* of its children before and now */
  } at[BATCH];
  size_t n_pairs;
  uint32_t pair[BATCH][2]; /* classes to merge */
} closing;

static bool refill(eg_sat *s, closing *x) {
  while (x->n_lanes < LANES && x->next < s->n_dirty) {
    const uint32_t gone = s->dirty[x->next++];
    if (x->next + LANES < s->n_dirty) __builtin_prefetch(&s->cls[s->dirty[x->next + LANES]]);
    if (!s->cls[gone].places) continue;
    x->lane[x->n_lanes++] = (lane){gone, s->cls[gone].places};
    __builtin_prefetch(&s->w[s->cls[gone].places]);
    s->cls[gone].places = 0;
  }
  return x->n_lanes > 0;
}

/* Returns: whether there is anything left to do. */
static bool gather(eg_sat *s, closing *x) {
  const uint32_t *w = s->w;
  x->n = 0;
  while (x->n < BATCH && refill(s, x)) {
    for (size_t i = 0; i < x->n_lanes && x->n < BATCH;) {
      const uint32_t place = x->lane[i].place, row = egi_place_row(w, place),
                     head = w[row + ROW_HEAD];
      x->at[x->n].place = place;
      x->at[x->n].gone = x->lane[i].gone;
      x->at[x->n++].row = head & ROW_DEAD ? 0 : row;
      for (uint32_t k = 0; k < s->op[head & ROW_OP].arity; k++)
        __builtin_prefetch(&s->up[egi_row_child(s, row, k)]);
      __builtin_prefetch(&w[x->lane[i].place = w[place + 1]]);
      if (x->lane[i].place) i++;
      else x->lane[i] = x->lane[--x->n_lanes];
    }
  }
  return x->n > 0;
}

/* A row into the table, or dead where an equal one, `stays`, is there. Returns: whether it is, and
 * then the classes that the two were put into. */
static inline bool settle(eg_sat *s, uint32_t row, uint32_t stays, uint32_t hash, uint32_t *a,
                          uint32_t *b) {
  uint32_t goes = row;
  if (!stays) {
    egi_row_insert(s, row, hash);
    egi_row_mark(s, row);
    return false;
  }
  /* The one that is shown stays in the table, so that pruning does not hide a row that somebody put
   * there. */
  if ((s->w[stays + ROW_HEAD] & ROW_HIDDEN) && !(s->w[row + ROW_HEAD] & ROW_HIDDEN)) {
    egi_row_replace(s, stays, row, hash);
    egi_row_mark(s, row);
    goes = stays;
    stays = row;
  }
  *a = s->w[stays + ROW_CLASS];
  *b = s->w[goes + ROW_CLASS];
  egi_row_kill(s, goes);
  return true;
}

/* Children brought up to date. A row that is there twice changes once. */
static void canonicalise(eg_sat *s, closing *x) {
  const size_t mask = s->n_buckets - 1;
  for (size_t i = 0; i < x->n; i++) {
    uint32_t *w = s->w + x->at[i].row;
    x->at[i].changed = false;
    if (!x->at[i].row) continue;
    const uint32_t op = w[ROW_HEAD] & ROW_OP, n = s->op[op].arity;
    uint64_t old = egi_mix_op(op), new = old;
    for (uint32_t k = 0; k < n; k++) {
      const uint32_t c = w[ROW_KIDS + 2 * k], f = egi_sat_find(s, c);
      old = egi_mix(old, c);
      new = egi_mix(new, f);
      x->at[i].changed |= c != f;
      w[ROW_KIDS + 2 * k] = f;
    }
    if (!x->at[i].changed) continue;
    x->at[i].old = egi_mix_end(old);
    x->at[i].hash = egi_mix_end(new);
    __builtin_prefetch(&s->bucket[x->at[i].old & mask], 1);
    __builtin_prefetch(&s->bucket[x->at[i].hash & mask], 1);
  }
}

/* Rows out of the table, all before one goes back: there a row is never under a hash that is not
 * its own. */
static void take_out(eg_sat *s, closing *x) {
  const size_t mask = s->n_buckets - 1;
  for (size_t i = 0; i < x->n; i++)
    if (x->at[i].changed) egi_row_remove(s, x->at[i].row, x->at[i].old);
  for (size_t i = 0; i < x->n; i++) {
    if (!x->at[i].changed) continue;
    const egi_bucket *b = &s->bucket[x->at[i].hash & mask];
    const uint32_t m = egi_bucket_match(b, egi_tag(x->at[i].hash));
    if (m) __builtin_prefetch(&s->w[b->row[__builtin_ctz(m)]], 1);
    __builtin_prefetch(&s->up[s->w[x->at[i].row + ROW_CLASS]]);
  }
}

/* Back into the table, or dead where an equal one is there, whose class is to be merged. */
static void put_back(eg_sat *s, closing *x) {
  x->n_pairs = 0;
  for (size_t i = 0; i < x->n; i++) {
    if (!x->at[i].changed) continue;
    const uint32_t row = x->at[i].row, *w = s->w + row, n = s->op[w[ROW_HEAD] & ROW_OP].arity;
    for (uint32_t k = 0; k < n; k++) s->args[k] = w[ROW_KIDS + 2 * k];
    const uint32_t stays = egi_row_find(s, w[ROW_HEAD] & ROW_OP, s->args, n, x->at[i].hash);
    uint32_t a, b;
    if (!settle(s, row, stays, x->at[i].hash, &a, &b)) continue;
    x->pair[x->n_pairs][0] = a;
    x->pair[x->n_pairs++][1] = b;
    __builtin_prefetch(&s->up[a]);
    __builtin_prefetch(&s->up[b]);
  }
}

/* Those pairs whose classes are not one yet. */
static void pair_up(eg_sat *s, closing *x) {
  size_t n = 0;
  for (size_t i = 0; i < x->n_pairs; i++) {
    const uint32_t a = egi_sat_find(s, x->pair[i][0]), b = egi_sat_find(s, x->pair[i][1]);
    x->pair[n][0] = a;
    x->pair[n][1] = b;
    n += a != b;
    __builtin_prefetch(&s->cls[a], 1);
    __builtin_prefetch(&s->cls[b], 1);
  }
  x->n_pairs = n;
}

static void merge_pairs(eg_sat *s, closing *x) {
  for (size_t i = 0; i < x->n_pairs; i++) /* rows of the class that goes are walked */
    __builtin_prefetch(&s->w[s->cls[egi_gone(s, x->pair[i][0], x->pair[i][1])].rows], 1);
  for (size_t i = 0; i < x->n_pairs; i++) {
    const uint32_t a = egi_sat_find(s, x->pair[i][0]), b = egi_sat_find(s, x->pair[i][1]);
    if (a != b) egi_sat_union(s, a, b);
  }
}

/* The places of rows that are alive go to the class that theirs merged into. */
static void relink(eg_sat *s, closing *x) {
  for (size_t i = 0; i < x->n; i++) {
    if (!x->at[i].row || (s->w[x->at[i].row + ROW_HEAD] & ROW_DEAD)) continue;
    egi_cls *into = &s->cls[egi_sat_find(s, x->at[i].gone)];
    s->w[x->at[i].place + 1] = into->places;
    into->places = x->at[i].place;
  }
}

/* ---- closing where the table is near: one place after another, as nothing is gained by asking
 * ahead ---- */

/* As egi_place_row; without a branch up to two children, as nobody could foretell which of them it
 * is. Where the arena is far a guess is better than to wait. */
static inline uint32_t near_row(const uint32_t *w, uint32_t place) {
  return egi_place_row(w, place - (w[place - 1] & ROW_IS_HEAD ? 0 : 2));
}

/* Inlined with the arity as a constant. The row leaves the table while it still has the children of
 * its hash. */
static inline __attribute__((always_inline)) void repair(eg_sat *s, uint32_t row, uint32_t n,
                                                         uint32_t *child) {
  uint32_t *w = s->w + row, a, b;
  const uint32_t op = w[ROW_HEAD] & ROW_OP;
  uint64_t old = egi_mix_op(op), new = old;
  bool changed = false;
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t c = w[ROW_KIDS + 2 * k];
    child[k] = egi_sat_find(s, c);
    old = egi_mix(old, c);
    new = egi_mix(new, child[k]);
    changed |= c != child[k];
  }
  if (!changed) return;
  egi_row_remove(s, row, egi_mix_end(old));
  for (uint32_t k = 0; k < n; k++) w[ROW_KIDS + 2 * k] = child[k];
  const uint32_t hash = egi_mix_end(new), stays = egi_row_find_in(s, op, child, n, hash);
  if (!settle(s, row, stays, hash, &a, &b)) return;
  a = egi_sat_find(s, a);
  b = egi_sat_find(s, b);
  if (a != b) egi_sat_union(s, a, b);
}

static void close_near(eg_sat *s) {
  uint32_t *w = s->w, child[2];
  for (size_t i = 0; i < s->n_dirty; i++) {
    const uint32_t gone = s->dirty[i];
    uint32_t next = s->cls[gone].places;
    s->cls[gone].places = 0;
    for (uint32_t place; (place = next);) {
      const uint32_t row = near_row(w, place), head = w[row + ROW_HEAD],
                     n = s->op[head & ROW_OP].arity;
      next = w[place + 1];
      if (head & ROW_DEAD) continue;
      if (n == 1) repair(s, row, 1, child);
      else if (n == 2) repair(s, row, 2, child);
      else repair(s, row, n, s->args);
      if (w[row + ROW_HEAD] & ROW_DEAD) continue;
      egi_cls *into = &s->cls[w[place]]; /* even where that merged away since: it is dirty then */
      w[place + 1] = into->places;
      into->places = place;
    }
  }
  s->n_dirty = 0;
}

void egi_sat_close(eg_sat *s) {
  if (s->n_buckets < EGI_NEAR) {
    close_near(s);
    return;
  }
  closing x;
  x.n_lanes = x.next = 0;
  while (gather(s, &x)) {
    canonicalise(s, &x);
    take_out(s, &x);
    put_back(s, &x);
    pair_up(s, &x);
    relink(s, &x);
    merge_pairs(s, &x);
  }
  s->n_dirty = 0;
}
