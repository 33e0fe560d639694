/* Samples in which several conditions hold at one place. Each by itself is met on purpose
 * (solve.c); that two rare ones hold together, chance does not show. So each variable takes its
 * numbers from a few, one for each way in which the comparisons that read it can be answered: then
 * every combination of answers is as frequent as any other. */
#include "validate/branch/meet_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "rules/operators.h"
#include "validate/branch/choice_int.h"

enum { SITES = 24, NUMBERS = 10, CANDIDATES = 64, MOST = 1 << 14 };

static bool reads(const rule_term *t, uint32_t var) {
  if (t->kind == RULE_VAR) return t->u.i == (int64_t)var;
  for (uint32_t i = 0; i < t->n; i++)
    if (reads(t->child[i], var)) return true;
  return false;
}

static bool varies(const rule_term *t) {
  if (t->kind == RULE_VAR) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (varies(t->child[i])) return true;
  return false;
}

typedef struct conditions {
  const rule_term *at[SITES];
  size_t n;
} conditions;

/* The comparisons of a term; one below another counts by itself. */
static void collect(const rule_term *t, conditions *c) {
  for (uint32_t i = 0; i < t->n; i++) collect(t->child[i], c);
  if (t->kind != RULE_OP || c->n == SITES || !varies(t)) return;
  if (rule_operator_of(t->u.s)->choice != RULE_CHOICE_COMPARE) return;
  for (size_t i = 0; i < c->n; i++)
    if (rule_term_eq(c->at[i], t)) return;
  c->at[c->n++] = t;
}

static void add(double v, double *out, size_t *n, size_t cap) {
  for (size_t i = 0; i < *n; i++)
    if (out[i] == v) return;
  if (*n < cap && isfinite(v)) out[(*n)++] = v;
}

static void numbers(const rule_term *t, double *out, size_t *n) {
  if (t->kind == RULE_FLOAT || t->kind == RULE_INT)
    add(t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i, out, n, NUMBERS);
  for (uint32_t i = 0; i < t->n; i++) numbers(t->child[i], out, n);
}

/* Numbers that may answer the comparisons in different ways: their literals, the numbers beside
 * these, and a sum, product or quotient of two of these, of either sign. */
static size_t candidates(const conditions *c, uint32_t var, double low, double high, bool whole,
                         double *out) {
  double lit[NUMBERS], all[CANDIDATES];
  size_t n_lit = 0, n = 0, kept = 0;
  for (size_t i = 0; i < c->n; i++)
    if (reads(c->at[i], var)) numbers(c->at[i], lit, &n_lit);
  add(0.5, all, &n, CANDIDATES);
  for (size_t i = 0; i < n_lit; i++)
    add(lit[i], all, &n, CANDIDATES), add(-lit[i], all, &n, CANDIDATES);
  for (size_t i = 0; i < n_lit && whole; i++)
    add(lit[i] + 1, all, &n, CANDIDATES), add(lit[i] - 1, all, &n, CANDIDATES);
  for (size_t i = 0; i < n_lit && !whole; i++)
    add(2 * lit[i], all, &n, CANDIDATES), add(-2 * lit[i], all, &n, CANDIDATES);
  static const double plain[] = {0, 1, -1, 1e3, -1e3};
  for (size_t i = 0; i < 5; i++) add(plain[i], all, &n, CANDIDATES);
  if (whole) add(low, all, &n, CANDIDATES), add(high - 1, all, &n, CANDIDATES);
  for (size_t i = 0; i < n_lit; i++)
    for (size_t k = 0; k < n_lit; k++) {
      add(lit[i] - lit[k], all, &n, CANDIDATES);
      add(lit[i] + lit[k], all, &n, CANDIDATES);
      if (lit[k] != 0) add(lit[i] / lit[k], all, &n, CANDIDATES);
      add(lit[i] * lit[k], all, &n, CANDIDATES);
    }
  for (size_t i = 0; i < n; i++) {
    const double v = whole ? floor(all[i]) : all[i];
    if (v >= low && v < high) add(v, out, &kept, CANDIDATES);
  }
  return kept;
}

/* How the comparisons that read the variable answer where it is `v` everywhere; 0: they cannot. */
static iso_code answers(val_engine *e, const conditions *c, uint32_t var, double v,
                        rule_tensor **bind, uint64_t *out, iso_error *err) {
  rule_tensor *was = bind[var], *x = NULL;
  iso_code code = rule_tensor_new(was->dtype, &was->shape, &x, err);
  if (code) return code;
  for (int64_t i = 0; i < x->numel; i++) rule_tensor_set(x, i, v);
  bind[var] = x;
  uint64_t h = 1;
  for (size_t i = 0; i < c->n && !code && h; i++) {
    rule_tensor *y = NULL;
    iso_error local;
    if (!reads(c->at[i], var)) continue;
    code = val_eval(e, c->at[i], bind, VAL_FLOAT64, &y, &local);
    if (!code) h = iso_hash(y->data, (size_t)y->numel * rule_dtype_size(y->dtype), h);
    else h = 0;
    rule_tensor_unref(y);
    if (code != ISO_NOMEM) code = ISO_OK;
  }
  *out = h;
  bind[var] = was;
  rule_tensor_unref(x);
  return code ? iso_fail(err, code, "out of memory") : ISO_OK;
}

typedef struct pool_range {
  bool whole; /* of integers */
  double low, high;
} pool_range;

/* Numbers of a variable in its range that answer the conditions differently. */
static iso_code pool_of(val_engine *e, const conditions *c, uint32_t var, pool_range in,
                        rule_tensor **bind, val_pool *out, iso_error *err) {
  double v[CANDIDATES];
  uint64_t known[VAL_POOL];
  iso_code code = ISO_OK;
  const size_t n = candidates(c, var, in.low, in.high, in.whole, v);
  for (size_t i = 0; i < n && out->n < VAL_POOL && !code; i++) {
    uint64_t h = 0;
    code = answers(e, c, var, v[i], bind, &h, err);
    bool again = h == 0;
    for (size_t k = 0; k < out->n; k++) again |= known[k] == h;
    if (!code && !again) known[out->n] = h, out->at[out->n++] = v[i];
  }
  return code;
}

iso_code val_pools(val_engine *e, const rule *r, const val_domain *domain, rule_tensor **bind,
                   val_pool *out, size_t *n_conditions, iso_error *err) {
  conditions c = {.n = 0};
  collect(r->lhs, &c);
  collect(r->rhs, &c);
  *n_conditions = c.n;
  for (uint32_t v = 0; v < r->n_vars; v++) *n_conditions += r->var[v].kind == 'b';
  iso_code code = ISO_OK;
  for (uint32_t v = 0; v < r->n_vars && !code; v++) {
    bool any = false;
    out[v].n = 0;
    for (size_t i = 0; i < c.n; i++) any |= reads(c.at[i], v);
    if (!any || (r->var[v].kind != 'i' && r->var[v].kind != 'f')) continue;
    if (bind[v]->numel == 0 || bind[v]->numel > MOST) continue;
    pool_range in = {r->var[v].kind == 'i', -1e300, 1e300};
    if (in.whole) val_variable_range(r, v, &domain[v], bind[v]->dtype, &in.low, &in.high);
    code = pool_of(e, &c, v, in, bind, &out[v], err);
  }
  return code;
}

void val_meet_fill(const rule *r, const val_pool *pool, unsigned turn, iso_rng *rng,
                   rule_tensor **bind) {
  uint64_t stride = 1;
  const uint64_t start = iso_rng_next(rng) >> 32;
  for (uint32_t v = 0; v < r->n_vars; v++) {
    const size_t n = pool[v].n;
    /* Two variables that are held against one another have one number in common. */
    for (int64_t i = 0; i < bind[v]->numel && n == 1; i++)
      if (iso_rng_below(rng, 2)) rule_tensor_set(bind[v], i, pool[v].at[0]);
    if (n < 2) continue;
    const uint64_t base = (uint64_t)(turn / 2) * (uint64_t)bind[v]->numel + (turn % 4 ? start : 0);
    for (int64_t i = 0; i < bind[v]->numel; i++) {
      const uint64_t k = turn % 2 ? iso_rng_below(rng, n) : (base + (uint64_t)i) / stride % n;
      rule_tensor_set(bind[v], i, pool[v].at[k]);
    }
    if (stride < 1 << 20) stride *= n;
  }
}
