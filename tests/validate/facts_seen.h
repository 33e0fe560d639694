/* Facts of an operator as a sample of a call shows them: for each of rules/operators.def that can
 * be seen by running it, whether it holds there. */
#ifndef TESTS_VALIDATE_FACTS_SEEN_H
#define TESTS_VALIDATE_FACTS_SEEN_H

#include "rules/operators.h"
#include "tests/validate/prove_diff.h"
#include "validate/exec/engine_int.h"

enum { TIMES = 12, MOST = 4096 };

/* Besides those calls: operators that the prover's tests have only within others. */
static const call more[] = {
    {X, "(aten::alias x)", false},
    {X, "(aten::clone x)", false},
    {X, "(aten::contiguous x)", false},
    {X, "(aten::angle x)", false},
    {X, "(aten::conj x)", false},
    {X, "(aten::real x)", false},
    {X, "(aten::isfinite x)", false},
    {X, "(aten::isinf x)", false},
    {X, "(aten::isneginf x)", false},
    {X, "(aten::isposinf x)", false},
    {X, "(aten::logical_not x)", false},
    {X, "(aten::signbit x)", false},
    {X, "(aten::median x)", false},
    {"(var d f (3 3))", "(aten::trace d)", false},
    {"(var d f (1 4 4))", "(getitem (aten::max_pool2d_with_indices d (list 2 2)) 1)", false},
    {"(var d f (2 4))", "(getitem (aten::max_pool1d_with_indices d (list 2)) 1)", false},
    {"(var d f (1 4 4 2))", "(getitem (aten::max_pool3d_with_indices d (list 2 2 2)) 1)", false},
    {"(var x f (3 4)) (var i i (3)) (var w f (4))", "(aten::nll_loss_nd x i w)", false},
    {X, "(aten::acos x)", false},
    {X, "(aten::arccos x)", false},
    {X, "(aten::arcsin x)", false},
    {X, "(aten::asin x)", false},
    {X, "(aten::arctanh x)", false},
    {X, "(aten::atanh x)", false},
    {X, "(aten::acosh x)", false},
    {X, "(aten::arccosh x)", false},
    {X, "(aten::sqrt x)", false},
    {X, "(aten::rsqrt x)", false},
    {X, "(aten::reciprocal x)", false},
    {X, "(aten::log x)", false},
    {X, "(aten::log1p x)", false},
    {X, "(aten::log2 x)", false},
    {X, "(aten::log10 x)", false},
    {X, "(aten::logit x)", false},
    {XY, "(aten::div.Tensor x y)", false},
    {XY, "(aten::divide.Tensor x y)", false},
    {XY, "(aten::true_divide.Tensor x y)", false},
    {XY, "(aten::fmod.Tensor x y)", false},
    {XY, "(aten::remainder.Tensor x y)", false},
    {XY, "(aten::pow.Tensor_Tensor x y)", false},
    {XY, "(aten::xlogy.Tensor x y)", false},
    {X, "(aten::pow.Tensor_Scalar x 0)", false},
    {X, "(aten::pow.Tensor_Scalar x -1)", false},
    {X, "(aten::pow.Tensor_Scalar x 2)", false},
    {X, "(aten::to.dtype x int64)", false},
    {X, "(aten::_to_copy x :dtype int64)", false},
    {"(var x f ($A $B)) (var n i ($A $B))", "(aten::type_as x n)", false},
    {"(var x f ($A $B)) (var n i ($A $B))", "(aten::copy n x)", false},
    {X, "(aten::nanmedian x)", false},
    {X, "(getitem (aten::cummax x 0) 0)", false},
    {X, "(getitem (aten::cummax x 0) 1)", false},
    {X, "(getitem (aten::cummin x 0) 1)", false},
    {X, "(getitem (aten::mode x 0 false) 1)", false},
    {X, "(getitem (aten::kthvalue x 1 0 false) 1)", false},
    {X, "(getitem (aten::cummin x 0) 0)", false},
    {X, "(getitem (aten::kthvalue x 1 0 false) 0)", false},
    {X, "(getitem (aten::mode x 0 false) 0)", false}};

typedef struct run {
  const rule *r;
  const rule_term *call; /* behind the choice of a result */
  const rule_operator *o;
  const sample *s;
  bool second; /* the choice of another result than the first */
} run;

/* ---- numbers that a call is given ---- */

typedef struct pool {
  double x[MOST];
  size_t n;
} pool;

static void add(pool *p, double x) {
  if (p->n < MOST) p->x[p->n++] = x;
}

static void add_tensor(pool *p, const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++) add(p, rule_tensor_get(t, i));
}

static void gather(pool *p, const run *k, const rule_term *t) {
  if (t->kind == RULE_VAR) add_tensor(p, k->s->v.bind[t->u.i]);
  if (t->kind == RULE_FLOAT) add(p, t->u.f);
  if (t->kind == RULE_INT || t->kind == RULE_BOOLEAN) add(p, (double)t->u.i);
  for (uint32_t i = 0; i < t->n; i++) gather(p, k, t->child[i]);
}

static bool holds(const pool *p, double x) {
  for (size_t i = 0; i < p->n; i++)
    if (p->x[i] == x) return true;
  return false;
}

/* ---- facts tested on a sample ---- */

/* Not to be asked here; or whether the fact holds. */
typedef enum seen { NOT_ASKED, FAILS, HOLDS } seen;
static seen asked(bool holds) { return holds ? HOLDS : FAILS; }

/* A number that was given, its negative, or a whole one. */
static seen is_exact(const run *k) {
  pool given = {.n = 0};
  gather(&given, k, k->call);
  if (given.n == MOST || !rule_dtype_is_float(k->s->want->dtype)) return NOT_ASKED;
  for (int64_t i = 0; i < k->s->want->numel; i++) {
    const double y = rule_tensor_get(k->s->want, i);
    if (!isnan(y) && y != nearbyint(y) && !holds(&given, y) && !holds(&given, -y)) return FAILS;
  }
  return HOLDS;
}

/* A number that was given, or one that fills: 0 or 1. */
static seen is_moved(const run *k) {
  pool given = {.n = 0};
  gather(&given, k, k->call);
  if (given.n == MOST || k->o->fills) return NOT_ASKED;
  for (int64_t i = 0; i < k->s->want->numel; i++) {
    const double y = rule_tensor_get(k->s->want, i);
    if (!isnan(y) && y != 0 && y != 1 && !holds(&given, y)) return FAILS;
  }
  return HOLDS;
}

/* The only operand as int32 gives int64. */
static seen is_widened(const run *k) {
  rule_tensor *bind[8], *out = NULL;
  iso_error err;
  const rule_term *t = k->call->n ? k->call->child[0] : NULL;
  if (!t || t->kind != RULE_VAR || k->r->n_vars > 1) return NOT_ASKED;
  const rule_tensor *x = k->s->v.bind[t->u.i];
  memcpy(bind, k->s->v.bind, sizeof bind);
  ck_assert(rule_tensor_new(RULE_I32, &x->shape, &bind[t->u.i], &err) == ISO_OK);
  for (int64_t i = 0; i < x->numel; i++)
    rule_tensor_set(bind[t->u.i], i, nearbyint(rule_tensor_get(x, i)));
  const bool ok = val_eval(engine, k->r->lhs, bind, VAL_FLOAT64, &out, &err) == ISO_OK;
  const bool whole = ok && rule_dtype_is_int(out->dtype), wide = ok && out->dtype == RULE_I64;
  rule_tensor_unref(bind[t->u.i]);
  if (ok) rule_tensor_unref(out);
  return whole ? asked(wide) : NOT_ASKED;
}

static const rule_tensor *first_operand(const run *k) {
  const rule_term *t = k->call->n ? k->call->child[0] : NULL;
  return t && t->kind == RULE_VAR ? k->s->v.bind[t->u.i] : NULL;
}

/* All numbers of `a` are numbers of `b`. */
static bool within(const rule_tensor *a, const rule_tensor *b) {
  pool p = {.n = 0};
  add_tensor(&p, b);
  for (int64_t i = 0; i < a->numel; i++)
    if (!holds(&p, rule_tensor_get(a, i))) return false;
  return true;
}

static bool same(const rule_tensor *a, const rule_tensor *b) {
  bool equal = rule_shape_eq(&a->shape, &b->shape);
  for (int64_t i = 0; i < a->numel && equal; i++)
    equal = rule_tensor_get(a, i) == rule_tensor_get(b, i);
  return equal;
}

static seen is_part(const run *k) {
  const rule_tensor *x = first_operand(k);
  return x ? asked(within(k->s->want, x)) : NOT_ASKED;
}
static seen is_rearranged(const run *k) {
  const rule_tensor *x = first_operand(k);
  if (!x || k->s->want->numel == 0) return NOT_ASKED;
  return asked(within(k->s->want, x) && within(x, k->s->want));
}
/* Each element of the result is the operand's at its own place, counted from the last dimension; of
 * a size of 1 there is one place. */
static seen is_broadcast(const run *k) {
  const rule_tensor *x = first_operand(k), *y = k->s->want;
  if (!x || y->numel == 0) return NOT_ASKED;
  if (x->shape.rank > y->shape.rank) return FAILS;
  for (int64_t i = 0; i < y->numel; i++) {
    int64_t rest = i, from = 0, step = 1;
    for (uint32_t d = 1; d <= y->shape.rank; d++) {
      const int64_t size = y->shape.dim[y->shape.rank - d], at = rest % size;
      rest /= size;
      if (d > x->shape.rank) continue;
      const int64_t own = x->shape.dim[x->shape.rank - d];
      if (own != 1 && own != size) return FAILS;
      from += own == 1 ? 0 : at * step;
      step *= own;
    }
    const double a = rule_tensor_get(y, i), b = rule_tensor_get(x, from);
    if (!(a == b || (isnan(a) && isnan(b)))) return FAILS;
  }
  return HOLDS;
}
static seen is_identity(const run *k) {
  const rule_tensor *x = first_operand(k);
  return x ? asked(same(k->s->want, x)) : NOT_ASKED;
}

/* ---- the call again, on other numbers ---- */

typedef double (*change)(double x, int64_t i, double by);

static rule_tensor *changed(const rule_tensor *x, change f, double by) {
  rule_tensor *t = NULL;
  iso_error err;
  ck_assert(rule_tensor_new(x->dtype, &x->shape, &t, &err) == ISO_OK);
  for (int64_t i = 0; i < x->numel; i++) rule_tensor_set(t, i, f(rule_tensor_get(x, i), i, by));
  return t;
}

/* With the float operands `vars` (bits) changed. NULL: libtorch refuses. */
static rule_tensor *again(const run *k, unsigned vars, change f, double by) {
  rule_tensor *bind[8], *out = NULL;
  iso_error err;
  for (uint32_t v = 0; v < k->r->n_vars; v++) {
    const bool this = (vars >> v & 1) && k->r->var[v].kind == 'f';
    bind[v] = this ? changed(k->s->v.bind[v], f, by) : rule_tensor_ref(k->s->v.bind[v]);
  }
  const bool ok = val_eval(engine, k->r->lhs, bind, VAL_FLOAT64, &out, &err) == ISO_OK;
  for (uint32_t v = 0; v < k->r->n_vars; v++) rule_tensor_unref(bind[v]);
  return ok ? out : NULL;
}

static bool is_float(const run *k, uint32_t v) {
  return k->r->var[v].kind == 'f' && k->s->v.bind[v]->numel > 0;
}

static double moved_at(double x, int64_t i, double at) {
  return (double)i == at ? x * 1.25 + 0.25 : x;
}
static double other(double x, int64_t i, double by) {
  return x * 1.5 + 0.01 * (double)(i + 1) * by;
}
static double above(double x, int64_t i, double by) { return (void)i, fabs(x) + by; }
static double at(double x, int64_t i, double by) { return (void)x, (void)i, by; }
static double first_at(double x, int64_t i, double by) { return i == 0 ? by : x; }
static double first_nonzero(double x, int64_t i, double by) {
  return i == 0 ? by : x == 0 ? 0.75 : x;
}

/* Nothing changes with the numbers of any operand, of which there is one. */
static seen is_filled(const run *k) {
  bool any = false, equal = true;
  for (uint32_t v = 0; v < k->r->n_vars; v++) any |= is_float(k, v);
  for (int by = -1; by <= 1 && any && equal; by += 2) {
    rule_tensor *y = again(k, ~0u, other, by * 40);
    if (!y) return NOT_ASKED;
    equal = same(y, k->s->want);
    rule_tensor_unref(y);
  }
  return any ? asked(equal) : NOT_ASKED;
}

static bool no_dimension_of_1(const rule_tensor *x) {
  for (uint32_t d = 0; d < x->shape.rank; d++)
    if (x->shape.dim[d] < 2) return false;
  return x->shape.rank > 0;
}

/* All operands are as large as the result, and no row has one element alone. */
static bool is_aligned(const run *k) {
  for (uint32_t v = 0; v < k->r->n_vars; v++)
    if (!rule_shape_eq(&k->s->v.bind[v]->shape, &k->s->want->shape)) return false;
  return k->r->n_vars > 0 && no_dimension_of_1(k->s->want);
}

static bool reads(const rule_term *t, uint32_t v) {
  bool any = t->kind == RULE_VAR && (uint32_t)t->u.i == v;
  for (uint32_t i = 0; i < t->n; i++) any |= reads(t->child[i], v);
  return any;
}

/* The result has the shape to which all operands are spread. */
static bool is_spread(const run *k) {
  rule_shape s = {.rank = 0};
  for (uint32_t v = 0; v < k->r->n_vars; v++) {
    const rule_shape *x = &k->s->v.bind[v]->shape;
    if (!reads(k->call, v)) continue;
    for (; s.rank < x->rank; s.rank++) {
      memmove(s.dim + 1, s.dim, s.rank * sizeof *s.dim);
      s.dim[0] = 1;
    }
    for (uint32_t d = 0; d < x->rank; d++) {
      int64_t *to = &s.dim[s.rank - x->rank + d];
      if (*to != x->dim[d] && *to != 1 && x->dim[d] != 1) return false;
      if (*to == 1) *to = x->dim[d];
    }
  }
  return rule_shape_eq(&s, &k->s->want->shape);
}

static bool alike(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* With all elements of all operands in the opposite order. */
static rule_tensor *turned(const run *k) {
  rule_tensor *bind[8], *out = NULL;
  iso_error err;
  for (uint32_t v = 0; v < k->r->n_vars; v++) {
    const rule_tensor *x = k->s->v.bind[v];
    ck_assert(rule_tensor_new(x->dtype, &x->shape, &bind[v], &err) == ISO_OK);
    for (int64_t i = 0; i < x->numel; i++)
      rule_tensor_set(bind[v], i, rule_tensor_get(x, x->numel - 1 - i));
  }
  const bool ok = val_eval(engine, k->r->lhs, bind, VAL_FLOAT64, &out, &err) == ISO_OK;
  for (uint32_t v = 0; v < k->r->n_vars; v++) rule_tensor_unref(bind[v]);
  return ok ? out : NULL;
}

/* Moving one element of an operand moves that element of the result alone, and elements may change
 * places. */
static seen is_by_elements(const run *k) {
  const rule_tensor *want = k->s->want;
  if (k->r->n_vars > 0 && !is_spread(k)) return FAILS;
  if (!is_aligned(k)) return NOT_ASKED;
  bool all = true, any = false;
  for (uint32_t v = 0; v < k->r->n_vars; v++) {
    const int64_t place = want->numel / 2;
    rule_tensor *y = is_float(k, v) ? again(k, 1u << v, moved_at, (double)place) : NULL;
    any |= y != NULL;
    for (int64_t i = 0; y && i < y->numel; i++)
      all &= i == place || alike(rule_tensor_get(y, i), rule_tensor_get(want, i));
    rule_tensor_unref(y);
  }
  rule_tensor *y = turned(k);
  for (int64_t i = 0; y && i < y->numel; i++)
    all &= alike(rule_tensor_get(y, i), rule_tensor_get(want, want->numel - 1 - i));
  rule_tensor_unref(y);
  return any ? asked(all) : NOT_ASKED;
}

/* The least result; 0 of none, NaN where some result is none. */
static double least(const rule_tensor *y) {
  double m = INFINITY;
  for (int64_t i = 0; y && i < y->numel; i++) {
    const double e = rule_tensor_get(y, i);
    m = isnan(e) ? e : fmin(m, e);
    if (isnan(e)) break;
  }
  return m;
}

static seen never(const run *k, bool or_zero) {
  bool any = false;
  for (uint32_t v = 0; v < k->r->n_vars; v++) any |= is_float(k, v);
  static const double tried[] = {-3, -0.5, 0, 1, 3};
  double m = least(k->s->want);
  for (size_t i = 0; i < sizeof tried / sizeof *tried && any && !(m < 0); i++) {
    rule_tensor *y = again(k, ~0u, at, tried[i]);
    if (y) m = fmin(m, least(y));
    rule_tensor_unref(y);
  }
  return any && isfinite(m) ? asked(m > 0 || (or_zero && m == 0)) : NOT_ASKED;
}
static seen is_positive(const run *k) { return never(k, false); }
static seen is_nonnegative(const run *k) { return never(k, true); }

/* Positive where the first operand is, and not negative where that is not. */
static seen keeps_sign(const run *k) {
  const rule_term *t = k->call->n ? k->call->child[0] : NULL;
  if (!t || t->kind != RULE_VAR || !is_float(k, (uint32_t)t->u.i)) return NOT_ASKED;
  rule_tensor *y = again(k, 1u << t->u.i, above, 0.03), *z = again(k, 1u << t->u.i, at, 0);
  const double a = least(y), b = least(z);
  rule_tensor_unref(y);
  rule_tensor_unref(z);
  return isfinite(a) && isfinite(b) ? asked(a > 0 && b >= 0) : NOT_ASKED;
}

static double greatest(const rule_tensor *y) {
  double m = -INFINITY;
  for (int64_t i = 0; y && i < y->numel; i++) m = fmax(m, rule_tensor_get(y, i));
  return m;
}

static seen has_same_sign(const run *k) {
  const rule_term *t = k->call->n ? k->call->child[0] : NULL;
  if (!t || t->kind != RULE_VAR || !is_float(k, (uint32_t)t->u.i)) return NOT_ASKED;
  rule_tensor *y = again(k, 1u << t->u.i, at, 0.7), *z = again(k, 1u << t->u.i, at, -0.7);
  const double a = least(y), b = greatest(z);
  rule_tensor_unref(y);
  rule_tensor_unref(z);
  return isfinite(a) && isfinite(b) ? asked(a >= 0 && b <= 0) : NOT_ASKED;
}

/* ---- at the ends of the numbers ---- */

static bool infinite(const rule_tensor *y) {
  for (int64_t i = 0; y && i < y->numel; i++)
    if (isinf(rule_tensor_get(y, i))) return true;
  return false;
}

/* An infinity where an element of one operand is 0, and none where it is 0.6. */
static seen has_pole(const run *k) {
  bool pole = false, any = false;
  for (uint32_t v = 0; v < k->r->n_vars; v++) {
    if (!is_float(k, v)) continue;
    rule_tensor *y = again(k, 1u << v, first_nonzero, 0),
                *z = again(k, 1u << v, first_nonzero, 0.6);
    any |= y && z && !infinite(z);
    pole |= y && z && infinite(y) && !infinite(z);
    rule_tensor_unref(y);
    rule_tensor_unref(z);
  }
  return any ? asked(pole) : NOT_ASKED;
}

/* How results at 0 and -0 differ: not, in the sign of a zero, in that of an infinity, or else. */
typedef enum zeros { ALIKE, CARRIED, OPPOSITE, TOLD } zeros;
static zeros zeros_of(const run *k, uint32_t v, change f) {
  rule_tensor *y = again(k, 1u << v, f, 0), *z = again(k, 1u << v, f, -0.0);
  zeros how = ALIKE;
  for (int64_t i = 0; y && z && i < y->numel; i++) {
    const double a = rule_tensor_get(y, i), b = rule_tensor_get(z, i);
    const zeros here = a == b || isnan(a) || isnan(b)
                           ? (a == 0 && signbit(a) != signbit(b) ? CARRIED : ALIKE)
                       : isinf(a) && a == -b ? OPPOSITE
                                             : TOLD;
    if (here > how) how = here;
  }
  rule_tensor_unref(y);
  rule_tensor_unref(z);
  return how;
}

static seen worst_zeros(const run *k, change f, zeros *how) {
  seen any = NOT_ASKED;
  *how = ALIKE;
  for (uint32_t v = 0; v < k->r->n_vars; v++) {
    if (!is_float(k, v)) continue;
    const zeros here = zeros_of(k, v, f);
    any = HOLDS;
    if (here > *how) *how = here;
  }
  return any;
}
static seen reads_zero_sign(const run *k) {
  zeros how;
  return worst_zeros(k, at, &how) ? asked(how == TOLD) : NOT_ASKED;
}
static seen has_signed_pole(const run *k) {
  zeros how;
  return worst_zeros(k, first_nonzero, &how) ? asked(how == OPPOSITE) : NOT_ASKED;
}
/* A sum of one term is that term, and one of zeros is their zero: neither is asked. */
static seen drops_zero_sign(const run *k) {
  zeros how;
  bool apart = true;
  for (uint32_t v = 0; v < k->r->n_vars; v++) {
    const rule_tensor *x = k->s->v.bind[v];
    apart &= !is_float(k, v) || no_dimension_of_1(x);
    for (int64_t i = 0; i < x->numel; i++) apart &= !is_float(k, v) || rule_tensor_get(x, i) != 0;
  }
  if (!apart) return NOT_ASKED;
  return worst_zeros(k, first_nonzero, &how) ? asked(how == ALIKE) : NOT_ASKED;
}

/* The result where an element that decides over it is no number: some are numbers there
 * (observes), and some are none (passes it on). */
typedef struct undefined {
  bool depends, number, none;
} undefined;
static undefined of_none(const run *k) {
  undefined u = {false, false, false};
  for (uint32_t v = 0; v < k->r->n_vars; v++) {
    if (!is_float(k, v)) continue;
    rule_tensor *y = again(k, 1u << v, first_at, 5), *z = again(k, 1u << v, first_at, -5),
                *n = again(k, 1u << v, first_at, NAN);
    for (int64_t i = 0; y && z && n && i < n->numel && i < y->numel && i < z->numel; i++) {
      const bool this = rule_tensor_get(y, i) != rule_tensor_get(z, i);
      u.depends |= this;
      u.number |= this && !isnan(rule_tensor_get(n, i));
      u.none |= this && isnan(rule_tensor_get(n, i));
    }
    rule_tensor_unref(y);
    rule_tensor_unref(z);
    rule_tensor_unref(n);
  }
  return u;
}
static seen observes(const run *k) {
  const undefined u = of_none(k);
  return u.depends ? asked(u.number) : NOT_ASKED;
}

/* Numbers of all sizes and signs of which none, or an infinity, is made, though some are none. */
static bool any_infinite(const rule_term *t) {
  bool any = t->kind == RULE_FLOAT && !isfinite(t->u.f);
  for (uint32_t i = 0; i < t->n; i++) any |= any_infinite(t->child[i]);
  return any;
}

static seen makes_undefined(const run *k) {
  static const double tried[] = {0, 1, -1, -2.5, 3};
  bool makes = false, number = false;
  if (any_infinite(k->call)) return NOT_ASKED;
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++)
    for (unsigned v = 0; v <= k->r->n_vars; v++) {
      if (v < k->r->n_vars && !is_float(k, v)) continue;
      rule_tensor *y = again(k, v < k->r->n_vars ? 1u << v : ~0u, at, tried[i]);
      for (int64_t e = 0; y && e < y->numel; e++) {
        makes |= !isfinite(rule_tensor_get(y, e));
        number |= isfinite(rule_tensor_get(y, e));
      }
      rule_tensor_unref(y);
    }
  return number ? asked(makes) : NOT_ASKED;
}

/* Signs in turn. */
static double alternating(double x, int64_t i, double by) { return (void)x, i % 2 ? by : -by; }

/* No infinity of the largest numbers, nor NaN but by a pole. */
static seen no_overflow(const run *k) {
  bool any = false, finite = true;
  for (uint32_t v = 0; v < k->r->n_vars; v++) any |= is_float(k, v);
  for (int how = 0; how < 6 && any && finite; how++) {
    rule_tensor *y = again(k, ~0u, how % 2 ? alternating : at,
                           (how < 4 ? 1.7e308 : 800) * (how % 4 < 2 ? 1 : -1));
    any = y != NULL;
    for (int64_t e = 0; y && e < y->numel; e++) {
      const double x = rule_tensor_get(y, e);
      finite &= isfinite(x) || (isnan(x) && k->o->makes_undefined);
    }
    rule_tensor_unref(y);
  }
  return any ? asked(finite) : NOT_ASKED;
}

/* ---- arithmetic ---- */

static double step(rule_arithmetic a, double x, double y) {
  switch (a) {
  case RULE_ARITHMETIC_ADD: return x + y;
  case RULE_ARITHMETIC_SUB: return x - y;
  case RULE_ARITHMETIC_RSUB: return y - x;
  case RULE_ARITHMETIC_MUL: return x * y;
  case RULE_ARITHMETIC_DIV: return x / y;
  case RULE_ARITHMETIC_SQRT: return sqrt(x);
  case RULE_ARITHMETIC_SQUARE: return x * x;
  case RULE_ARITHMETIC_RECIPROCAL: return 1 / x;
  case RULE_ARITHMETIC_RSQRT: return 1 / sqrt(x);
  case RULE_ARITHMETIC_NEG: return -x;
  default: return fabs(x);
  }
}
static bool of_two(rule_arithmetic a) {
  return a >= RULE_ARITHMETIC_ADD && a <= RULE_ARITHMETIC_DIV;
}

/* Whether the result is that step: bits: the steps that it is. -1: not to be asked. */
static int steps_of(const run *k) {
  val_operands o;
  int is = 0;
  const rule_term *third = k->call->n > 2 ? k->call->child[2] : NULL;
  const bool plain =
      !third || third->kind == RULE_NONE || (third->kind == RULE_INT && third->u.i == 1);
  if (!val_operands_of(k->call, k->s->v.bind, k->r->n_vars, k->s->want, &o) || o.numel == 0 ||
      !plain || !rule_dtype_is_float(k->s->want->dtype))
    return -1;
  for (int a = RULE_ARITHMETIC_ADD; a <= RULE_ARITHMETIC_ABS; a++) {
    bool all = of_two((rule_arithmetic)a) == o.two;
    for (int64_t i = 0; i < o.numel && all; i++) {
      const double y = rule_tensor_get(k->s->want, i),
                   x = step((rule_arithmetic)a, val_operand(&o, 0, i),
                            o.two ? val_operand(&o, 1, i) : 0);
      all = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= 1e-15 * fabs(y);
    }
    is |= all << a;
  }
  return is;
}

/* The result at `x` everywhere is a whole number of quarters. */
static seen short_at(const run *k, double x) {
  if (k->r->n_vars == 0 || !is_float(k, 0)) return NOT_ASKED;
  if (!is_spread(k)) return FAILS;
  rule_tensor *y = again(k, 1, at, x);
  const double e = y && y->numel ? rule_tensor_get(y, 0) * 4 : (double)NAN;
  rule_tensor_unref(y);
  return isfinite(e) ? asked(e == nearbyint(e)) : NOT_ASKED;
}
static seen is_short_at_0(const run *k) { return short_at(k, 0); }
static seen is_short_at_1(const run *k) { return short_at(k, 1); }

#endif
