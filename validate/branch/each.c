/* All integers that a variable may have, one after another. Two formulas over integers (a quotient,
 * and the product and shift that replace it) may differ at a few of thousands, where nothing jumps
 * that a search could look for. Where there is arithmetic between a variable and the table that
 * bounds it, running the sides tells how far the variable goes. */
#include <math.h>

#include "validate/branch/meet_int.h"

enum { MOST_BITS = 40 };
static const double countable = 0x1p40;

/* ---- how far a variable goes ---- */

typedef struct reach {
  val_engine *e;
  const rule *r;
  rule_tensor **bind;
  uint32_t var;
} reach;

/* Whether both sides run where the variable is `v` everywhere. */
static iso_code runs_at(const reach *s, int64_t v, bool *yes, iso_error *err) {
  rule_tensor *was = s->bind[s->var], *x = NULL;
  iso_code c = rule_tensor_new(was->dtype, &was->shape, &x, err);
  if (c) return c;
  for (int64_t i = 0; i < x->numel; i++) rule_tensor_set(x, i, (double)v);
  *yes = x->numel > 0 && rule_tensor_get_int(x, 0) == v; /* its dtype has such a number */
  s->bind[s->var] = x;
  for (int side = 0; side < 2 && !c && *yes; side++) {
    rule_tensor *y = NULL;
    iso_error local;
    c = val_eval(s->e, side ? s->r->rhs : s->r->lhs, s->bind, VAL_FLOAT64, &y, &local);
    if (c && c != ISO_NOMEM) *yes = false, c = ISO_OK;
    rule_tensor_unref(y);
  }
  s->bind[s->var] = was;
  rule_tensor_unref(x);
  return c ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* From 0, where they run, in steps of `sign`: the last number before they fail, as far as it is
 * looked for. */
static iso_code farthest(const reach *s, int sign, int64_t *out, iso_error *err) {
  int64_t good = 0, bad = 0;
  iso_code c = ISO_OK;
  for (int k = 0; k <= MOST_BITS && !bad && !c; k++) {
    bool yes = false;
    const int64_t v = sign * (INT64_C(1) << k);
    c = runs_at(s, v, &yes, err);
    if (yes) good = v;
    else bad = v;
  }
  while (!c && bad && sign * (bad - good) > 1) {
    bool yes = false;
    const int64_t middle = good + (bad - good) / 2;
    c = runs_at(s, middle, &yes, err);
    if (yes) good = middle;
    else bad = middle;
  }
  *out = good;
  return c;
}

iso_code val_reach(val_engine *e, const rule *r, rule_tensor **bind, val_domain *domain,
                   iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t v = 0; v < r->n_vars && !c; v++) {
    const rule_variable *x = &r->var[v];
    val_domain *d = &domain[v];
    const reach s = {e, r, bind, v};
    bool yes = false;
    int64_t last = 0;
    if (x->kind != 'i' || x->low || x->high || d->size != INT64_MAX || d->behind == INT64_MAX)
      continue;
    c = runs_at(&s, 0, &yes, err);
    if (c || !yes) continue;
    c = farthest(&s, -1, &d->low, err);
    if (!c) c = farthest(&s, 1, &last, err);
    d->high = last + 1;
    d->reached = !c;
  }
  return c;
}

/* ---- its numbers ---- */

/* The range of a variable that has few enough. */
static bool countable_range(const rule *r, uint32_t v, const val_domain *d, const rule_tensor *t,
                            double *low, double *count) {
  double high;
  if (r->var[v].kind != 'i' || t->numel == 0) return false;
  val_variable_range(r, v, d, t->dtype, low, &high);
  *count = high - *low;
  return *count >= 1 && *count < countable;
}

unsigned val_each_turns(const rule *r, const val_domain *domain, rule_tensor *const *bind,
                        unsigned most) {
  double turns = 0, low, count;
  for (uint32_t v = 0; v < r->n_vars; v++)
    if (countable_range(r, v, &domain[v], bind[v], &low, &count))
      turns = fmax(turns, ceil(count / (double)bind[v]->numel));
  return turns < most ? (unsigned)turns : most;
}

void val_each_fill(const rule *r, const val_domain *domain, unsigned turn, unsigned turns,
                   iso_rng *rng, rule_tensor **bind) {
  double low, count;
  for (uint32_t v = 0; v < r->n_vars; v++) {
    rule_tensor *t = bind[v];
    if (!countable_range(r, v, &domain[v], t, &low, &count)) continue;
    const double all = (double)turns * (double)t->numel, first = (double)turn * (double)t->numel,
                 shift = v ? floor(iso_rng_uniform(rng) * count) : 0;
    for (int64_t i = 0; i < t->numel; i++) {
      const double k = first + (double)i;
      const double at = count <= all ? k : floor((k + iso_rng_uniform(rng)) * (count / all));
      rule_tensor_set(t, i, low + fmod(at + shift, count));
    }
  }
}
