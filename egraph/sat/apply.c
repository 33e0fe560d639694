/* Matches applied: the right side built with hash-consing, and merged with the class that matched.
 *
 * Matches are taken in batches. For each term of the right side, children first, hashes of the
 * whole batch are computed and their cells prefetched, then the rows that may be equal, and only
 * then is anything compared or added: the misses of a batch overlap. The topmost e-node goes
 * straight into the class that matched, so a new one costs neither a class nor a merge. Merges of a
 * batch come at its end, so that ids canonicalised in the batch stay canonical. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "egraph/sat/log_int.h"
#include "egraph/sat/query_int.h"

/* From FAR buckets on looking up waits so long that a pass of its own pays. */
enum { BATCH = 128, GROUP = 8, CHECK_EVERY = 32, FAR = 1 << 14 };

typedef struct egi_batch {
  size_t cap_values, cap_kids, cap_col;
  uint32_t
      *value; /* canonical classes: column t holds what term t gave, for each match of the batch */
  uint32_t *kid;        /* children of one term, match after match */
  const uint32_t **col; /* columns of one term's children */
  uint32_t root[BATCH]; /* the classes that matched, canonical */
  uint32_t hash[BATCH];
  uint32_t maybe[BATCH]; /* rows that may be equal */
  const uint32_t *match; /* the first one, and from one to the next */
  size_t stride;
} egi_batch;

void egi_batch_free(egi_batch *b) {
  if (!b) return;
  egi_grown_free(b->value, b->cap_values);
  egi_grown_free(b->kid, b->cap_kids);
  egi_grown_free(b->col, b->cap_col);
  free(b);
}

double egi_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t mem_bytes(const eg_sat *s, const egi_limits *l) {
  if (l->others) return l->others + l->found->bytes;
  return eg_sat_mem_bytes(s) + l->found->bytes + s->flat->mem.bytes;
}

bool egi_limits_search(eg_sat *s, egi_limits *l) {
  if (l->reached) return true;
  l->reached = true;
  if (l->mem_bytes && mem_bytes(s, l) > l->mem_bytes) l->stop = EG_MEMORY_LIMIT;
  else if (l->deadline_s > 0 && egi_now() > l->deadline_s) l->stop = EG_TIME_LIMIT;
  else l->reached = false;
  return l->reached;
}

bool egi_limits_check(eg_sat *s, egi_limits *l) {
  if (!l->reached && l->nodes && eg_sat_count_nodes(s) > l->nodes) {
    l->reached = true;
    l->stop = EG_NODE_LIMIT;
  }
  return egi_limits_search(s, l);
}

static iso_code no_room(eg_sat *s, iso_error *err) {
  if (s->n_w > ROW_MAX - (1u << 20) || s->n_cls > ROW_MAX - BATCH)
    return iso_fail(err, ISO_LIMIT, "too many e-nodes");
  return iso_fail(err, ISO_NOMEM, "out of memory for e-nodes");
}

/* ---- a batch ---- */

static void build_leaf(eg_sat *s, uint32_t op, uint32_t *out, size_t n) {
  if (!s->op[op].leaf) egi_row_append(s, op, NULL, 0, egi_mix_end(egi_mix_op(op)), EG_NONE);
  const uint32_t c = egi_row_class(s, s->op[op].leaf);
  for (size_t b = 0; b < n; b++) out[b] = c;
}

/* The body of the loops below, for a term of `arity` children. Inlined with the arity as a
 * constant: most have one or two. */
static inline __attribute__((always_inline)) void hash_kids(eg_sat *s, egi_batch *x,
                                                            const uint32_t *const *col, uint32_t op,
                                                            uint32_t arity, size_t n) {
  const egi_bucket *bucket = s->bucket;
  const size_t mask = s->n_buckets - 1;
  for (size_t b = 0; b < n; b++) {
    uint64_t h = egi_mix_op(op);
    for (uint32_t k = 0; k < arity; k++) h = egi_mix(h, x->kid[b * arity + k] = col[k][b]);
    x->hash[b] = egi_mix_end(h);
    __builtin_prefetch(&bucket[x->hash[b] & mask]);
  }
  /* A row that may be equal is looked at next; where there is none, the classes that a new row is
   * linked to. */
  for (size_t b = 0; b < n; b++) {
    const egi_bucket *at = &bucket[x->hash[b] & mask];
    const uint32_t m = egi_bucket_match(at, egi_tag(x->hash[b]));
    x->maybe[b] = m ? at->row[__builtin_ctz(m)] : 0;
    if (m) __builtin_prefetch(&s->w[x->maybe[b]]);
    else
      for (uint32_t k = 0; k < arity; k++) __builtin_prefetch(&s->cls[x->kid[b * arity + k]], 1);
  }
}

static inline __attribute__((always_inline)) void find_rows(eg_sat *s, egi_batch *x, uint32_t op,
                                                            uint32_t arity, size_t n,
                                                            const uint32_t *root, uint32_t *out) {
  for (size_t b = 0; b < n; b++) {
    const uint32_t *kid = x->kid + b * arity;
    uint32_t row = x->maybe[b];
    if (!row || !egi_row_is(s, row, op, kid, arity))
      row = egi_row_find_in(s, op, kid, arity, x->hash[b]);
    if (!row) row = egi_row_append(s, op, kid, arity, x->hash[b], root ? root[b] : EG_NONE);
    out[b] = s->w[row + ROW_CLASS];
  }
}

/* The same in one loop: where the table is near nothing is gained by asking ahead. */
static inline __attribute__((always_inline)) void find_near(eg_sat *s, const uint32_t *const *col,
                                                            uint32_t op, uint32_t arity, size_t n,
                                                            const uint32_t *root, uint32_t *kid,
                                                            uint32_t *out) {
  for (size_t b = 0; b < n; b++) {
    uint64_t h = egi_mix_op(op);
    for (uint32_t k = 0; k < arity; k++) h = egi_mix(h, kid[k] = col[k][b]);
    const uint32_t hash = egi_mix_end(h);
    uint32_t row = egi_row_find_in(s, op, kid, arity, hash);
    if (!row) row = egi_row_append(s, op, kid, arity, hash, root ? root[b] : EG_NONE);
    out[b] = s->w[row + ROW_CLASS];
  }
}

static inline __attribute__((always_inline)) void find_or_add(eg_sat *s, egi_batch *x, uint32_t op,
                                                              uint32_t arity, size_t n,
                                                              const uint32_t *root, uint32_t *out) {
  if (s->n_buckets < EGI_NEAR) {
    find_near(s, x->col, op, arity, n, root, x->kid, out);
    return;
  }
  hash_kids(s, x, x->col, op, arity, n);
  find_rows(s, x, op, arity, n, root, out);
}

/* An application: found, or added, into the classes in `root` unless that is NULL. */
static void build_term(eg_sat *s, egi_batch *x, const eg_pattern *p, uint32_t term,
                       const uint32_t *root, size_t n) {
  const egi_term *t = &p->term[term];
  uint32_t *out = x->value + (size_t)term * BATCH;
  for (uint32_t k = 0; k < t->n; k++) x->col[k] = x->value + (size_t)p->kid[t->kid + k] * BATCH;
  switch (t->n) {
  case 1: find_or_add(s, x, t->sym, 1, n, root, out); break;
  case 2: find_or_add(s, x, t->sym, 2, n, root, out); break;
  default: find_or_add(s, x, t->sym, t->n, n, root, out);
  }
  if (!root)
    for (size_t b = 0; b < n; b++) out[b] = egi_sat_find(s, out[b]);
}

/* Those to be merged are first collected, from a group with one of them without a branch: few are,
 * and nobody could foretell which. */
static void merge_batch(eg_sat *s, egi_batch *x, const uint32_t *value, size_t n) {
  const uint32_t *root = x->root;
  uint32_t *at = x->hash;
  size_t n_at = 0, b = 0;
  for (; b + GROUP <= n; b += GROUP) {
    uint32_t other = 0;
    for (size_t i = b; i < b + GROUP; i++) other |= root[i] ^ value[i];
    for (size_t i = b; other && i < b + GROUP; i++) {
      at[n_at] = (uint32_t)i;
      n_at += root[i] != value[i];
    }
  }
  for (; b < n; b++) {
    at[n_at] = (uint32_t)b;
    n_at += root[b] != value[b];
  }
  for (size_t i = 0; i < n_at; i++) {
    const uint32_t a = egi_sat_find(s, root[at[i]]), c = egi_sat_find(s, value[at[i]]);
    if (a != c) egi_sat_union(s, a, c);
  }
}

bool egi_batch_reserve(eg_rules *r, const eg_pattern *p) {
  if (!r->batch && !(r->batch = calloc(1, sizeof *r->batch))) return false;
  egi_batch *x = r->batch;
  uint32_t arity = 1;
  for (size_t i = 0; i < p->n_terms; i++)
    if (!p->term[i].is_var && p->term[i].n > arity) arity = p->term[i].n;
  return egi_grow(x->value, x->cap_values, p->n_terms * BATCH + 1) &&
         egi_grow(x->kid, x->cap_kids, (size_t)arity * BATCH) &&
         egi_grow(x->col, x->cap_col, (size_t)arity);
}

/* The classes to which a variable is bound. */
static void bound(const eg_sat *s, const egi_batch *x, uint32_t var, uint32_t *out, size_t n) {
  const uint32_t *at = x->match + 1 + var;
  const size_t stride = x->stride;
  for (size_t b = 0; b < n; b++) out[b] = egi_sat_find(s, at[b * stride]);
}

/* Of the rows that were added. */
static void make_data(eg_sat *s, size_t from, uint32_t arity, bool top) {
  for (size_t r = from; r < s->n_w; r += egi_row_words(arity)) {
    if (top) egi_sat_data_row(s, (uint32_t)r);
    else egi_sat_data_new(s, (uint32_t)r);
  }
}

/* Canonical ids stay canonical until the merges at the end. */
static iso_code apply_batch(eg_sat *s, egi_batch *x, const eg_pattern *p, size_t n,
                            iso_error *err) {
  for (size_t b = 0; b < n; b++) x->root[b] = egi_sat_find(s, x->match[b * x->stride]);
  for (size_t i = 0; i < p->n_terms; i++) {
    const egi_term *t = &p->term[i];
    uint32_t *out = x->value + i * BATCH;
    if (t->is_var) {
      bound(s, x, t->sym, out, n);
      continue;
    }
    if (!egi_rows_reserve(s, n, t->n)) return no_room(s, err);
    const size_t from = s->n_w;
    const bool top = t->n && i == p->root[0];
    if (t->n == 0) build_leaf(s, t->sym, out, n);
    else build_term(s, x, p, (uint32_t)i, top ? x->root : NULL, n);
    if (s->analysis.make) make_data(s, from, t->n, top);
  }
  uint32_t root = p->n_roots ? p->root[0] : 0;
  while (!p->n_roots && !(p->term[root].is_var && p->term[root].sym == p->root_var)) root++;
  merge_batch(s, x, x->value + (size_t)root * BATCH, n);
  return egi_sat_repair_all(s, err);
}

/* ---- one match ---- */

static void find_only(const eg_sat *s, const egi_batch *x, const egi_term *t, uint32_t *out,
                      size_t n) {
  for (size_t b = 0; b < n; b++) {
    const uint32_t row = egi_row_find_in(s, t->sym, x->kid + b * t->n, t->n, x->hash[b]);
    out[b] = row ? egi_row_class(s, row) : 0;
  }
}

/* Matches of a batch are applied one by one where a callback takes part. This looks up beforehand
 * the entries that they will need, only to bring them into the cache. */
static void look_ahead(eg_sat *s, egi_batch *x, const eg_pattern *p, size_t n) {
  for (size_t i = 0; s->n_buckets >= FAR && i < p->n_terms; i++) {
    const egi_term *t = &p->term[i];
    uint32_t *out = x->value + i * BATCH;
    if (t->is_var) {
      bound(s, x, t->sym, out, n);
    } else if (t->n == 0) {
      const uint32_t leaf = s->op[t->sym].leaf, c = leaf ? egi_row_class(s, leaf) : 0;
      for (size_t b = 0; b < n; b++) out[b] = c;
    } else {
      for (uint32_t k = 0; k < t->n; k++) x->col[k] = x->value + (size_t)p->kid[t->kid + k] * BATCH;
      hash_kids(s, x, x->col, t->sym, t->n, n);
      if (i != p->root[0]) find_only(s, x, t, out, n);
    }
  }
}

static uint32_t value_of(const egi_batch *x, const eg_pattern *p, uint32_t term,
                         const uint32_t *match) {
  return p->term[term].is_var ? match[1 + p->term[term].sym] : x->value[term * BATCH];
}

/* Merges the classes that a right side names, or the one that matched, with the terms built for
 * them. */
static iso_code merge_parts(eg_sat *s, const egi_batch *x, const eg_pattern *p,
                            const uint32_t *match, iso_error *err) {
  uint32_t i = 0;
  for (size_t k = 0; k < p->n_parts; k++)
    for (; i < p->part[k].end; i++) {
      const uint32_t a =
          egi_sat_find(s, p->part[k].var == EG_NONE ? match[0] : match[1 + p->part[k].var]);
      const uint32_t c = egi_sat_find(s, value_of(x, p, p->root[i], match));
      if (a == c) continue;
      egi_sat_union(s, a, c);
      const iso_code code = egi_sat_repair_all(s, err);
      if (code) return code;
    }
  return ISO_OK;
}

static iso_code build_one(eg_sat *s, egi_batch *x, const egi_rule *rule, const uint32_t *match,
                          iso_error *err) {
  const eg_pattern *p = &rule->rhs;
  for (size_t i = 0; i < p->n_terms; i++) {
    const egi_term *t = &p->term[i];
    if (t->is_var) continue;
    uint64_t h = egi_mix_op(t->sym);
    for (uint32_t k = 0; k < t->n; k++) {
      h = egi_mix(h, x->kid[k] = egi_sat_find(s, value_of(x, p, p->kid[t->kid + k], match)));
    }
    const uint32_t hash = egi_mix_end(h);
    const bool top = i == p->root[0] && !rule->several;
    uint32_t row = egi_row_find(s, t->sym, x->kid, t->n, hash);
    if (!row) {
      if (!egi_rows_reserve(s, 1, t->n) || !egi_log_reserve(s, 1, t->n)) return no_room(s, err);
      row =
          egi_row_append(s, t->sym, x->kid, t->n, hash, top ? egi_sat_find(s, match[0]) : EG_NONE);
      x->value[i * BATCH] = s->w[row + ROW_CLASS];
      if (!top) egi_log_class(s, row);
      if (s->analysis.make) {
        if (top) egi_sat_data_row(s, row);
        else egi_sat_data_new(s, row);
        const iso_code code = egi_sat_repair_all(s, err);
        if (code) return code;
      }
    } else {
      x->value[i * BATCH] = s->w[row + ROW_CLASS];
    }
  }
  if (rule->several) return merge_parts(s, x, p, match, err);
  const uint32_t a = egi_sat_find(s, match[0]);
  const uint32_t c =
      egi_sat_find(s, p->n_roots ? x->value[p->root[0] * BATCH] : match[1 + p->root_var]);
  if (a == c) return ISO_OK;
  egi_sat_union(s, a, c);
  return egi_sat_repair_all(s, err);
}

static iso_code apply_one(eg_sat *s, eg_rules *r, size_t k, const uint32_t *match, iso_error *err) {
  const egi_rule *rule = &r->rule[k];
  const eg_rule *u = &rule->user;
  const eg_class *var = (const eg_class *)(match + 1);
  bool holds = true;
  iso_code code = u->condition ? u->condition(u->ctx, s, var, &holds, err) : ISO_OK;
  if (code || !holds) return code;
  if (u->apply) return u->apply(u->ctx, s, (eg_class){match[0]}, var, err);
  /* Logged first: an application that is in the log without effect does no harm, one that is
   * missing would. */
  const uint64_t before = eg_sat_version(s);
  const size_t n_event = s->log ? s->log->n_event : 0;
  if (!egi_log_rule(s, (uint32_t)k, match + 1, rule->lhs.n_vars)) return no_room(s, err);
  code = build_one(s, r->batch, rule, match, err);
  if (s->log && !code && eg_sat_version(s) == before) s->log->n_event = n_event;
  return code;
}

iso_code egi_apply(eg_sat *s, eg_rules *r, size_t k, egi_limits *limits, iso_error *err) {
  egi_rule *rule = &r->rule[k];
  const eg_rule *u = &rule->user;
  const bool one_by_one = u->condition || u->apply || s->log || rule->several;
  const uint64_t before = s->n_added;
  iso_code code = ISO_OK;
  size_t left = rule->n_stored;
  for (size_t n_batches = 1; left > 0 && !code; n_batches++) {
    if (n_batches % CHECK_EVERY == 0 && egi_limits_check(s, limits)) break;
    size_t n;
    r->batch->match = egi_words_take(&r->found, rule->stride, left < BATCH ? left : BATCH, &n);
    r->batch->stride = rule->stride;
    left -= n;
    if (!one_by_one) {
      code = apply_batch(s, r->batch, &rule->rhs, n, err);
      continue;
    }
    if (!u->apply) look_ahead(s, r->batch, &rule->rhs, n);
    for (size_t b = 0; b < n && !code; b++)
      code = apply_one(s, r, k, r->batch->match + b * rule->stride, err);
  }
  rule->n_made = s->n_added - before;
  return code;
}
