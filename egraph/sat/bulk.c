/* Many e-nodes added, many classes merged: the memory that each will touch is prefetched while
 * earlier ones are done. Where the table fits the cache nothing is gained, and they are done one by
 * one. */
#include <stdlib.h>

#include "egraph/sat/sat_int.h"

/* Prefetching runs in steps of `AHEAD` additions each: the names of children, their classes, the
 * bucket, and the row that may be equal or that a new row is linked to. Nothing merges in between,
 * so that the last step may use the results of the earlier ones. Used from FAR buckets on. */
enum { AHEAD = 8, RING = 4 * AHEAD, MOST = 3, FAR = 1 << 13 };

typedef struct coming {
  bool known; /* its children were there in time, and there are few; else it is added by itself */
  uint32_t hash, kid[MOST];
} coming;

typedef struct adding {
  eg_sat *s;
  const eg_addition *a;
  size_t n, first;
  eg_class *made;
  coming ring[RING];
} adding;

static uint32_t arity_of(const adding *x, size_t i) { return x->s->op[x->a[i].op.i].arity; }

/* Inlined: a function that only asks ahead has no effect for the compiler, which drops the call. */
static inline __attribute__((always_inline)) void ask_children(const adding *x, size_t i) {
  for (uint32_t k = 0; k < arity_of(x, i); k++) __builtin_prefetch(&x->made[x->a[i].child[k]]);
}

/* Those that are there before the `done`-th is added. */
static inline __attribute__((always_inline)) void ask_classes(adding *x, size_t i, size_t done) {
  coming *c = &x->ring[i % RING];
  const uint32_t n = arity_of(x, i);
  c->known = n <= MOST;
  for (uint32_t k = 0; c->known && k < n; k++) c->known = x->a[i].child[k] < x->first + done;
  for (uint32_t k = 0; c->known && k < n; k++)
    __builtin_prefetch(&x->s->up[c->kid[k] = x->made[x->a[i].child[k]].i]);
}

static inline __attribute__((always_inline)) void ask_bucket(adding *x, size_t i) {
  const eg_sat *s = x->s;
  coming *c = &x->ring[i % RING];
  uint64_t h = egi_mix_op(x->a[i].op.i);
  if (!c->known) return;
  for (uint32_t k = 0; k < arity_of(x, i); k++)
    h = egi_mix(h, c->kid[k] = egi_sat_find(s, c->kid[k]));
  c->hash = egi_mix_end(h);
  __builtin_prefetch(&s->bucket[c->hash & (s->n_buckets - 1)], 1);
}

static inline __attribute__((always_inline)) void ask_row(const adding *x, size_t i) {
  const eg_sat *s = x->s;
  const coming *c = &x->ring[i % RING];
  if (!c->known) return;
  const egi_bucket *b = &s->bucket[c->hash & (s->n_buckets - 1)];
  const uint32_t m = egi_bucket_match(b, egi_tag(c->hash));
  if (m) __builtin_prefetch(&s->w[b->row[__builtin_ctz(m)]]);
  for (uint32_t k = 0; !m && k < arity_of(x, i); k++) __builtin_prefetch(&s->cls[c->kid[k]], 1);
}

static iso_code add_one(adding *x, size_t i, eg_class *kid, iso_error *err) {
  for (uint32_t k = 0; k < arity_of(x, i); k++) kid[k] = x->made[x->a[i].child[k]];
  return eg_sat_add(x->s, x->a[i].op, kid, &x->made[x->first + i], err);
}

/* As add_one, of which most is done. Inlined with the arity as a constant. */
static inline __attribute__((always_inline)) bool add_known(adding *x, size_t i, uint32_t n) {
  eg_sat *s = x->s;
  const coming *c = &x->ring[i % RING];
  const uint32_t op = x->a[i].op.i;
  uint32_t row = egi_row_find_in(s, op, c->kid, n, c->hash);
  if (!row && !egi_rows_reserve(s, 1, n)) return false;
  if (!row) row = egi_row_append(s, op, c->kid, n, c->hash, EG_NONE);
  x->made[x->first + i].i = egi_row_class(s, row);
  return true;
}
static iso_code add_coming(adding *x, size_t i, eg_class *kid, iso_error *err) {
  bool done = x->ring[i % RING].known;
  switch (done ? arity_of(x, i) : EG_NONE) {
  case 1: done = add_known(x, i, 1); break;
  case 2: done = add_known(x, i, 2); break;
  case 3: done = add_known(x, i, 3); break;
  default: done = false;
  }
  return done ? ISO_OK : add_one(x, i, kid, err); /* which says what is wrong */
}

iso_code eg_sat_add_all(eg_sat *s, const eg_addition *a, size_t n, eg_class *made, size_t first,
                        iso_error *err) {
  adding x = {.s = s, .a = a, .n = n, .first = first, .made = made};
  const bool far = s->n_buckets >= FAR && !s->log && !s->analysis.make;
  eg_class few[8], *kid = s->max_arity <= 8 ? few : malloc(s->max_arity * sizeof *kid);
  if (!kid) return iso_fail(err, ISO_NOMEM, "out of memory for e-nodes");
  iso_code code = ISO_OK;
  /* Each step follows the one before it: i runs through the entries prefetched first. */
  for (size_t i = 0; !code && far && i < n + RING; i++) {
    if (i < n) ask_children(&x, i);
    if (i >= AHEAD && i - AHEAD < n) ask_classes(&x, i - AHEAD, i < RING ? 0 : i - RING);
    if (i >= 2 * AHEAD && i - 2 * AHEAD < n) ask_bucket(&x, i - 2 * AHEAD);
    if (i >= 3 * AHEAD && i - 3 * AHEAD < n) ask_row(&x, i - 3 * AHEAD);
    if (i >= RING) code = add_coming(&x, i - RING, kid, err);
  }
  for (size_t i = 0; !code && !far && i < n; i++) code = add_one(&x, i, kid, err);
  if (kid != few) free(kid);
  return code;
}

iso_code eg_sat_merge_all(eg_sat *s, const eg_equation *e, size_t n, eg_why why, iso_error *err) {
  const bool far = s->n_buckets >= FAR;
  for (size_t i = 0; i < n; i++) {
    if (far && i + 2 * AHEAD < n) {
      __builtin_prefetch(&s->up[e[i + 2 * AHEAD].a.i], 1);
      __builtin_prefetch(&s->up[e[i + 2 * AHEAD].b.i], 1);
    }
    if (far && i + AHEAD < n) {
      __builtin_prefetch(&s->cls[egi_sat_find(s, e[i + AHEAD].a.i)], 1);
      __builtin_prefetch(&s->cls[egi_sat_find(s, e[i + AHEAD].b.i)], 1);
    }
    if (far && i + AHEAD / 2 < n) { /* rows of the class that goes are walked */
      const uint32_t a = egi_sat_find(s, e[i + AHEAD / 2].a.i),
                     b = egi_sat_find(s, e[i + AHEAD / 2].b.i);
      __builtin_prefetch(&s->w[s->cls[egi_gone(s, a, b)].rows], 1);
    }
    const iso_code code = eg_sat_merge(s, e[i].a, e[i].b, why, err);
    if (code) return code;
  }
  return ISO_OK;
}
