/* How far rounding may move an output where it was captured.
 *
 * A chain of true steps joins numbers that are one over the reals. In float64 they may be two: a
 * sum that cancels, a saturated sigmoid, an exponential that is too large. So the terms are run
 * again with every operator that rounds disturbed in its last places (stochastic arithmetic: Vignes
 * 1993). Outputs that differ by no more than this moves them have not been seen to differ. */
#include <math.h>
#include <stdlib.h>

#include "check/check_int.h"
#include "rules/operators.h"

enum { RUNS = 4, MORE = 16 };
#define NOISE_SEED UINT64_C(0x6e6f697365)

static const double unit = 0x1p-50;   /* libraries' functions are off by some units */
static const double narrow = 0x1p-22; /* and by float32's, what has such numbers inside */

bool chk_any_number(const rule_tensor *t, bool (*what)(double)) {
  for (int64_t i = 0; rule_dtype_is_float(t->dtype) && i < t->numel; i++)
    if (what(rule_tensor_get(t, i))) return true;
  return false;
}

static bool is_infinite(double x) { return isinf(x); }
static bool is_no_number(double x) { return !isfinite(x); }
static bool is_zero(double x) { return x == 0; }

/* Whether a product with `x` may round: `x` has many binary digits, or is far from 1. */
static bool is_long(double x) {
  return isfinite(x) && !(fabs(x) <= 8192 && ldexp(x, 10) == floor(ldexp(x, 10)));
}

static bool any_argument(const chk_state *k, const rule_term *t, bool (*what)(double)) {
  if (t->kind == RULE_FLOAT) return what(t->u.f);
  if (t->kind == RULE_VAR)
    return k->here.real[t->u.i].n && chk_any_number(k->here.real[t->u.i].v[0], what);
  for (uint32_t i = 0; i < t->n; i++)
    if (any_argument(k, t->child[i], what)) return true;
  return false;
}

bool chk_overflows(const chk_state *k, uint32_t id) {
  const rule_term *call = k->term[id].call;
  if (k->here.real[id].n == 0 || !chk_any_number(k->here.real[id].v[0], is_infinite) ||
      any_argument(k, call, is_no_number))
    return false;
  return !(rule_operator_of(call->u.s)->pole && any_argument(k, call, is_zero));
}

bool chk_casts_no_number(const chk_state *k, uint32_t id) {
  const chk_values *v = &k->here.real[id];
  const rule_term *call = k->term[id].call;
  if (v->n != 1 || !rule_operator_of(call->u.s)->cast || v->v[0]->dtype == RULE_BOOL ||
      rule_dtype_is_float(v->v[0]->dtype) || rule_dtype_is_complex(v->v[0]->dtype))
    return false;
  return any_argument(k, call, is_no_number);
}

/* ---- disturbed ---- */

static bool may_round(const chk_state *k, uint32_t id) {
  const rule_term *call = k->term[id].call;
  const rule_operator *o = rule_operator_of(call->u.s);
  if (rule_is_getitem(call->u.s) || o->exact || o->fills || o->cast ||
      chk_rounds_nothing(call->u.s))
    return false;
  return !o->algebraic || any_argument(k, call, is_long);
}

/* A 0 that is a number above 0 over the reals is a small one, unless masks made it. */
static bool may_underflow(const chk_state *k, uint32_t id) {
  const rule_term *call = k->term[id].call;
  return rule_operator_of(call->u.s)->positive && !any_argument(k, call, is_no_number);
}

/* By how much of itself a result is: numbers that a narrow operator is given decide there by as
 * much. */
static double unit_of(const chk_state *k, const bool *need) {
  for (uint32_t i = 0; i < k->n_terms; i++)
    if (need[i] && k->term[i].call && rule_operator_of(k->term[i].call->u.s)->narrow) return narrow;
  return unit;
}

static iso_code disturb(chk_state *k, uint32_t id, double by, iso_rng *rng) {
  const double least = may_underflow(k, id) ? 1e-300 : 0;
  iso_code c = ISO_OK;
  for (size_t n = 0; n < k->here.real[id].n && !c && may_round(k, id); n++) {
    rule_tensor *t = k->here.real[id].v[n], *now;
    if (t->dtype != RULE_F64) continue;
    if ((c = rule_tensor_new(t->dtype, &t->shape, &now, k->err))) break;
    for (int64_t i = 0; i < t->numel; i++) {
      const double x = rule_tensor_get(t, i), u = iso_rng_uniform(rng);
      rule_tensor_set(now, i, x == 0 ? least * u : x * (1 + by * (2 * u - 1)));
    }
    rule_tensor_unref(t);
    k->here.real[id].v[n] = now;
  }
  return c;
}

/* `rng` NULL: undisturbed. Returns: in `far` whether numbers grew too large for float64, in `done`
 * whether all could be run. */
static iso_code run(chk_state *k, const bool *need, iso_rng *rng, bool *far, bool *done) {
  const double by = rng ? unit_of(k, need) : 0;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < k->n_terms && !c && !chk_settled(k); i++) {
    if (!need[i]) continue;
    c = chk_run_term(k, i);
    if (c || chk_settled(k) || !k->term[i].call || k->here.konst[chk_root(k, i)].v) continue;
    *far |= chk_overflows(k, i);
    if (rng) c = disturb(k, i, by, rng);
  }
  *done = !c && !chk_settled(k);
  chk_unsettle(k); /* an operator that cannot take what it was given here */
  return c;
}

/* ---- how far ---- */

static const rule_tensor *value(const chk_state *k, uint32_t t, int64_t numel) {
  const bool one = k->here.real[t].n == 1 && k->here.real[t].v[0]->numel == numel;
  return one ? k->here.real[t].v[0] : NULL;
}

static double apart(double x, double y) {
  return x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
}

/* Returns: in `room` how far noise moved each element at most; infinity where one of the two is
 * NaN. */
static void note_moves(const rule_tensor *before, const rule_tensor *now, double *room) {
  for (int64_t i = 0; i < before->numel; i++) {
    const double d = apart(rule_tensor_get(before, i), rule_tensor_get(now, i));
    room[i] = isnan(d) ? (double)INFINITY : fmax(room[i], d);
  }
}

/* Whether each element differs by no more than MORE times the `room` in which noise moved it, or by
 * no more than `tol` of the largest number. Where one of the two is infinite or NaN, it is
 * explained if `far`, or if noise moved it without bound. */
static bool within(const rule_tensor *a, const rule_tensor *b, const double *room, bool far,
                   double tol) {
  double size = 0;
  for (int64_t i = 0; i < a->numel; i++)
    if (isfinite(rule_tensor_get(a, i))) size = fmax(size, fabs(rule_tensor_get(a, i)));
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i), d = apart(x, y);
    const bool numbers = isfinite(x) && isfinite(y);
    if (d <= tol * size || (numbers ? d <= MORE * room[i] : far || isinf(room[i]))) continue;
    return false;
  }
  return true;
}

iso_code chk_rounding_explains(chk_state *k, const bool *need, const chk_output *o, double tol,
                               bool *yes) {
  rule_tensor *a = rule_tensor_ref(k->here.real[o->a].v[0]),
              *b = rule_tensor_ref(k->here.real[o->b].v[0]);
  double *room = calloc((size_t)a->numel + 1, sizeof *room);
  iso_code c = room ? ISO_OK : chk_nomem(k);
  bool far = false, done;
  iso_rng rng = iso_rng_new(NOISE_SEED, 0);
  for (int i = 0; i < RUNS && !c; i++) {
    if ((c = run(k, need, &rng, &far, &done)) || !done) continue;
    const rule_tensor *x = value(k, o->a, a->numel), *y = value(k, o->b, a->numel);
    if (x) note_moves(a, x, room);
    if (y) note_moves(b, y, room);
  }
  *yes = !c && !rule_dtype_is_complex(a->dtype) && a->numel == b->numel &&
         within(a, b, room, far, tol);
  if (!c) c = run(k, need, NULL, &far, &done);
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  free(room);
  return c;
}
