/* Samples of rules with operators that compute in a narrower dtype than float64 (narrow_kernels.h).
 */
#include "validate/exec/narrow_kernels.h"
#include "rules/operators.h"

#include <math.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "validate/oracle_int.h"

/* An operator's own rounding, of the tolerance that stands for it. */
static const double rounding = 1e-2;
/* So many tolerances apart is no rounding any more, nor so many moves. */
static const double surely = 10;
enum { RUNS = 3 };

static uint64_t hash_of(const rule_term *t, rule_tensor *const *bind, uint64_t h) {
  h = iso_hash(&t->kind, sizeof t->kind, h);
  if (t->kind == RULE_VAR) {
    const rule_tensor *x = bind[t->u.i];
    h = iso_hash(&x->shape, sizeof x->shape, h);
    return iso_hash(x->data, (size_t)x->numel * rule_dtype_size(x->dtype), h);
  }
  if (t->kind == RULE_OP || t->kind == RULE_STRING) h = iso_hash(t->u.s, strlen(t->u.s), h);
  else if (t->kind != RULE_LIST) h = iso_hash(&t->u.i, sizeof t->u.i, h);
  for (uint32_t i = 0; i < t->n; i++) h = hash_of(t->child[i], bind, h);
  return h;
}

void val_narrow_note(val_probe *p, const rule_term *call, rule_tensor *const *bind,
                     rule_tensor *const *out, size_t n) {
  bool narrow = false;
  for (size_t k = 0; k < n; k++) narrow |= out[k]->coarse > 0;
  /* A sum: the order in which a side calls them is not looked at. */
  const bool here = rule_operator_of(call->u.s)->narrow || !rule_is_aten(call->u.s);
  if (narrow && here) p->narrow_calls += hash_of(call, bind, 0);
}

bool val_narrow_apart(const val_trial *t, const val_probe *a, const val_probe *b) {
  return (t->lhs->coarse > 0 || t->rhs->coarse > 0) && a->narrow_calls != b->narrow_calls;
}

/* Each float variable, every number of it off by as much as the narrow dtype rounds. */
static iso_code shake(const rule *r, rule_tensor *const *bind, double by, iso_rng *rng,
                      rule_tensor **out, iso_error *err) {
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const rule_tensor *x = bind[i];
    if (!x || x->dtype != RULE_F64) {
      out[i] = rule_tensor_ref(bind[i]);
      continue;
    }
    const iso_code c = rule_tensor_new(RULE_F64, &x->shape, &out[i], err);
    if (c) return c;
    for (int64_t k = 0; k < x->numel; k++) {
      const double v = rule_tensor_get(x, k);
      rule_tensor_set(out[i], k,
                      fabs(v) < 1e30 ? v * (1 + by * (2 * iso_rng_uniform(rng) - 1)) : v);
    }
  }
  return ISO_OK;
}

/* How far the results move with the variables, as a kernel that rounds them may move them. */
static iso_code conditioning(val_engine *e, const rule *r, rule_tensor *const *bind, iso_rng *rng,
                             const val_trial *t, double *move, iso_error *err) {
  const double by = rounding * t->coarse;
  iso_code c = ISO_OK;
  for (int run = 0; run < RUNS && !c; run++) {
    rule_tensor *near[RULE_MAX_VARS] = {NULL};
    c = shake(r, bind, by, rng, near, err);
    for (int side = 0; side < 2 && !c; side++) {
      const rule_tensor *base = side ? t->rhs : t->lhs;
      val_probe p = {0};
      rule_tensor *x = NULL;
      iso_error local;
      const iso_code rc = val_eval_probe(e, side ? r->rhs : r->lhs, near, &p, &x, &local);
      if (rc == ISO_NOMEM) c = iso_fail(err, rc, "out of memory");
      const bool same = !rc && rule_shape_eq(&x->shape, &base->shape);
      for (int64_t i = 0; i < base->numel && !c; i++) {
        const double d =
            same ? fabs(rule_tensor_get(x, i) - rule_tensor_get(base, i)) : (double)INFINITY;
        if (!(d <= *move)) *move = isnan(d) ? (double)INFINITY : d;
      }
      rule_tensor_unref(x);
    }
    for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(near[i]);
  }
  return c;
}

static double largest(const rule_tensor *t) {
  double size = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = fabs(rule_tensor_get(t, i));
    if (x < 1e30) size = fmax(size, x);
  }
  return size;
}

/* How far two of its least numbers are apart: results near 0 are off by that, however small they
 * are. float16 alone has least numbers that results meet. */
static double least_step(double tol) {
  return tol == narrow_tolerance(RULE_F16) ? rule_dtype_unit(RULE_F16, 0) : 0;
}

/* Whether one side has a number where the other has none: few bits end early, and where they do
 * says nothing of what is computed. */
static bool ends_early(const rule_tensor *a, const rule_tensor *b) {
  bool ends = false;
  for (int64_t i = 0; i < a->numel && a->numel == b->numel && !ends; i++)
    ends = isfinite(rule_tensor_get(a, i)) != isfinite(rule_tensor_get(b, i));
  return ends;
}

iso_code val_narrow_judge(val_engine *e, const rule *r, rule_tensor *const *bind, iso_rng *rng,
                          val_trial *t, iso_error *err) {
  const double tol = t->coarse = fmax(t->lhs->coarse, t->rhs->coarse);
  double move = 0;
  const iso_code c = conditioning(e, r, bind, rng, t, &move, err);
  if (c) return c;
  const double floored = surely * fmax(move, least_step(tol));
  const val_diff near = val_compare(t->lhs, t->rhs, tol, 0),
                 far = val_compare(t->lhs, t->rhs, surely * tol, floored);
  t->max_rel = near.max_rel;
  t->outcome = VAL_BLIND;
  if (ends_early(t->lhs, t->rhs)) return ISO_OK;
  if (near.equal && t->lhs->numel > 0 && move <= 1e-1 * largest(t->lhs)) t->outcome = VAL_AGREE;
  t->doubt = !val_compare(t->lhs, t->rhs, tol, floored).equal;
  if (far.equal) return ISO_OK;
  t->outcome = VAL_DIFFER;
  t->what = 'v';
  t->index = far.index;
  t->abs = far.max_abs;
  t->rel = far.max_rel;
  return ISO_OK;
}
