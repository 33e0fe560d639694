/* Many e-nodes added, many classes merged: what each will touch is asked for while those before it
 * are done. Where the table fits the cache nothing is gained, and one comes after another. */
#include <stdlib.h>

#include "egraph/sat/sat_int.h"

/* Steps of `AHEAD` each: the names of children, their classes, the bucket, and the row that may be
 * equal or what a new one is linked to. */
enum { AHEAD = 8, RING = 4 * AHEAD, FAR = 1 << 15 };

typedef struct adding {
  eg_sat *s;
  const eg_addition *a;
  size_t n, first;
  const eg_class *made;
  uint32_t hash[RING]; /* of those ahead; meant where all children were there */
  bool known[RING];
} adding;

static uint32_t arity_of(const adding *x, size_t i) { return x->s->op[x->a[i].op.i].arity; }

static void ask_children(const adding *x, size_t i) {
  for (uint32_t k = 0; k < arity_of(x, i); k++) __builtin_prefetch(&x->made[x->a[i].child[k]]);
}

/* Those that are there before the `done`-th is added. */
static void ask_classes(adding *x, size_t i, size_t done) {
  bool known = true;
  for (uint32_t k = 0; k < arity_of(x, i); k++) known &= x->a[i].child[k] < x->first + done;
  x->known[i % RING] = known;
  for (uint32_t k = 0; known && k < arity_of(x, i); k++)
    __builtin_prefetch(&x->s->up[x->made[x->a[i].child[k]].i]);
}

static void ask_bucket(adding *x, size_t i) {
  eg_sat *s = x->s;
  uint64_t h = egi_mix_op(x->a[i].op.i);
  if (!x->known[i % RING]) return;
  for (uint32_t k = 0; k < arity_of(x, i); k++)
    h = egi_mix(h, egi_sat_find(s, x->made[x->a[i].child[k]].i));
  x->hash[i % RING] = egi_mix_end(h);
  __builtin_prefetch(&s->bucket[x->hash[i % RING] & (s->n_buckets - 1)], 1);
}

static void ask_row(const adding *x, size_t i) {
  eg_sat *s = x->s;
  const uint32_t hash = x->hash[i % RING];
  if (!x->known[i % RING]) return;
  const egi_bucket *b = &s->bucket[hash & (s->n_buckets - 1)];
  const uint32_t m = egi_bucket_match(b, egi_tag(hash));
  if (m) __builtin_prefetch(&s->w[b->row[__builtin_ctz(m)]]);
  for (uint32_t k = 0; !m && k < arity_of(x, i); k++)
    __builtin_prefetch(&s->cls[x->made[x->a[i].child[k]].i], 1);
}

static iso_code add_one(eg_sat *s, const eg_addition *a, eg_class *made, size_t to, eg_class *kid,
                        iso_error *err) {
  for (uint32_t k = 0; k < s->op[a->op.i].arity; k++) kid[k] = made[a->child[k]];
  return eg_sat_add(s, a->op, kid, &made[to], err);
}

iso_code eg_sat_add_all(eg_sat *s, const eg_addition *a, size_t n, eg_class *made, size_t first,
                        iso_error *err) {
  adding x = {.s = s, .a = a, .n = n, .first = first, .made = made};
  const bool far = s->n_buckets >= FAR;
  eg_class few[8], *kid = s->max_arity <= 8 ? few : malloc(s->max_arity * sizeof *kid);
  if (!kid) return iso_fail(err, ISO_NOMEM, "out of memory for e-nodes");
  iso_code code = ISO_OK;
  /* Each step is behind the one before it: i runs through what is asked for first. */
  for (size_t i = 0; !code && far && i < n + RING; i++) {
    if (i < n) ask_children(&x, i);
    if (i >= AHEAD && i - AHEAD < n) ask_classes(&x, i - AHEAD, i < RING ? 0 : i - RING);
    if (i >= 2 * AHEAD && i - 2 * AHEAD < n) ask_bucket(&x, i - 2 * AHEAD);
    if (i >= 3 * AHEAD && i - 3 * AHEAD < n) ask_row(&x, i - 3 * AHEAD);
    if (i >= RING) code = add_one(s, &a[i - RING], made, first + i - RING, kid, err);
  }
  for (size_t i = 0; !code && !far && i < n; i++)
    code = add_one(s, &a[i], made, first + i, kid, err);
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
    const iso_code code = eg_sat_merge(s, e[i].a, e[i].b, why, err);
    if (code) return code;
  }
  return ISO_OK;
}
