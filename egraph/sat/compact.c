/* Dead rows taken out of the arena: rows that merges made equal leave their words behind, and where
 * those are half of it, searches and rebuilds walk over as many dead rows as others.
 *
 * Rows keep their order, and so do all lists, so that nothing but their places changes. Where a
 * word goes is known from a bit per word and a count per 64 of them: a link is brought up to date
 * without reading its target, unless that is dead. */
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/sat_int.h"

enum { SPAN = 64 };

typedef struct span {
  uint64_t dead;   /* which of its words are in dead rows */
  uint32_t before; /* how many words before it are */
} span;

static uint32_t ones(uint64_t x) {
  x -= x >> 1 & UINT64_C(0x5555555555555555);
  x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
  x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  return (uint32_t)(x * UINT64_C(0x0101010101010101) >> 56);
}
static inline bool is_dead(const span *x, uint32_t at) {
  return x[at / SPAN].dead >> at % SPAN & 1;
}
static inline uint32_t moved(const span *x, size_t at) {
  const span *of = &x[at / SPAN];
  return (uint32_t)at - of->before - ones(of->dead & ((UINT64_C(1) << at % SPAN) - 1));
}

static inline void mark(span *x, size_t at, size_t n) {
  while (n > 0) {
    const size_t left = SPAN - at % SPAN, some = n < left ? n : left;
    x[at / SPAN].dead |= UINT64_MAX >> (SPAN - some) << at % SPAN;
    at += some;
    n -= some;
  }
}

static span *map(const eg_sat *s) {
  const size_t n = s->n_w / SPAN + 1;
  span *x = calloc(n, sizeof *x);
  if (!x) return NULL;
  for (size_t r = 1, words; r < s->n_w; r += words) {
    words = egi_row_words(s->op[egi_row_op(s, (uint32_t)r)].arity);
    if (!(s->w[r + ROW_HEAD] & ROW_DEAD)) continue;
    mark(x, r, words);
  }
  for (size_t i = 1; i < n; i++) x[i].before = x[i - 1].before + ones(x[i - 1].dead);
  return x;
}

/* The next row that is alive; links of dead rows are unchanged. */
static inline uint32_t alive(const eg_sat *s, const span *x, uint32_t at, uint32_t to_next) {
  while (at && is_dead(x, at)) at = s->w[at + to_next];
  return at ? moved(x, at) : 0;
}

static void relink(eg_sat *s, const span *x) {
  for (size_t r = 1, n; r < s->n_w; r += egi_row_words((uint32_t)n)) {
    uint32_t *w = s->w + r;
    n = s->op[w[ROW_HEAD] & ROW_OP].arity;
    if (w[ROW_HEAD] & ROW_DEAD) continue;
    w[ROW_NEXT] = w[ROW_HEAD] & ROW_HIDDEN ? 0 : alive(s, x, w[ROW_NEXT], ROW_NEXT);
    for (size_t k = 0; k < n; k++)
      w[ROW_KIDS + 2 * k + 1] = alive(s, x, w[ROW_KIDS + 2 * k + 1], 1);
  }
  for (size_t c = 0; c < s->n_cls; c++) {
    s->cls[c].rows = alive(s, x, s->cls[c].rows, ROW_NEXT);
    s->cls[c].places = alive(s, x, s->cls[c].places, 1);
  }
  for (egi_bucket *b = s->bucket, *end = b + s->n_buckets; b < end; b++) {
    const uint32_t free_slots = egi_bucket_match(b, 0);
    for (uint32_t m = free_slots ^ ((1u << EGI_BUCKET) - 1); m; m &= m - 1) {
      uint32_t *row = &b->row[__builtin_ctz(m)];
      *row = moved(x, *row);
    }
  }
}

/* Those of a list that are alive. Returns: how many. */
static size_t keep(const span *x, uint32_t *row, size_t n) {
  size_t to = 0;
  for (size_t i = 0; i < n; i++)
    if (!is_dead(x, row[i])) row[to++] = moved(x, row[i]);
  return to;
}

/* Live rows move down over dead ones, many at a time. */
static void slide(eg_sat *s) {
  size_t to = 1, from = 1; /* from here on rows are alive, and not moved yet */
  for (size_t r = 1, words; r < s->n_w; r += words) {
    words = egi_row_words(s->op[egi_row_op(s, (uint32_t)r)].arity);
    if (!(s->w[r + ROW_HEAD] & ROW_DEAD)) continue;
    memmove(s->w + to, s->w + from, (r - from) * sizeof *s->w);
    to += r - from;
    from = r + words;
  }
  memmove(s->w + to, s->w + from, (s->n_w - from) * sizeof *s->w);
  s->n_w = to + (s->n_w - from);
}

void egi_compact(eg_sat *s) {
  if (!s->n_dead || s->n_dirty || s->listed) return;
  span *x = map(s);
  if (!x) return; /* they may stay */
  relink(s, x);
  for (size_t i = 0; i < s->n_ops; i++) {
    egi_op *op = &s->op[i];
    op->n_row = keep(x, op->row, op->n_row);
    if (op->leaf) op->leaf = moved(x, op->leaf);
  }
  s->n_fresh = keep(x, s->fresh, s->n_fresh);
  s->indexed = moved(x, s->indexed);
  s->seen = moved(x, s->seen);
  for (size_t i = 0; i < s->n_span; i++)
    if (s->span[i].to) s->span[i] = (egi_span){moved(x, s->span[i].from), moved(x, s->span[i].to)};
  slide(s);
  s->n_dead = 0;
  free(x);
}
