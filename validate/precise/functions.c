/* Functions of intervals, with outward rounding. Monotone ones are taken at both ends; the others
 * are widened by their slope. Operators find theirs by name. */
#include "validate/precise/precise_int.h"

#ifdef VAL_HAS_MPFR
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions that grow, or fall ---- */

#define GROWS(name, f) \
  static void name(vp *v, vn *r, const vn *a) { \
    f(&r->lo, &a->lo, MPFR_RNDD); \
    f(&r->hi, &a->hi, MPFR_RNDU); \
    vn_note(v, r); \
  }
#define FALLS(name, f) \
  static void name(vp *v, vn *r, const vn *a) { \
    vn *t = &v->tmp[5]; \
    f(&t->lo, &a->hi, MPFR_RNDD); \
    f(&t->hi, &a->lo, MPFR_RNDU); \
    vn_set(r, t); \
    vn_note(v, r); \
  }
GROWS(grow_exp, mpfr_exp)
GROWS(exp2_, mpfr_exp2)
GROWS(expm1_, mpfr_expm1)
GROWS(grow_log, mpfr_log)
GROWS(log2_, mpfr_log2)
GROWS(log10_, mpfr_log10)
GROWS(log1p_, mpfr_log1p)
GROWS(grow_tanh, mpfr_tanh)
GROWS(grow_erf, mpfr_erf)
GROWS(sinh_, mpfr_sinh)
GROWS(asin_, mpfr_asin)
GROWS(asinh_, mpfr_asinh)
GROWS(acosh_, mpfr_acosh)
GROWS(atan_, mpfr_atan)
GROWS(atanh_, mpfr_atanh)
FALLS(erfc_, mpfr_erfc)
FALLS(acos_, mpfr_acos)
FALLS(rsqrt_, mpfr_rec_sqrt)

void vn_exp(vp *v, vn *r, const vn *a) { grow_exp(v, r, a); }
void vn_log(vp *v, vn *r, const vn *a) { grow_log(v, r, a); }
void vn_tanh(vp *v, vn *r, const vn *a) { grow_tanh(v, r, a); }
void vn_erf(vp *v, vn *r, const vn *a) { grow_erf(v, r, a); }

/* A rule makes a claim only where it is defined: an operand that may be below 0 only by rounding is
 * not. */
void vn_sqrt(vp *v, vn *r, const vn *a) {
  if (mpfr_sgn(&a->lo) < 0) mpfr_set_zero(&r->lo, 1);
  else mpfr_sqrt(&r->lo, &a->lo, MPFR_RNDD);
  mpfr_sqrt(&r->hi, &a->hi, MPFR_RNDU);
  vn_note(v, r);
}

static void cosh_(vp *v, vn *r, const vn *a) {
  vn_abs(v, r, a);
  mpfr_cosh(&r->lo, &r->lo, MPFR_RNDD);
  mpfr_cosh(&r->hi, &r->hi, MPFR_RNDU);
  vn_note(v, r);
}

/* `f` has a slope of at most 1: at one end, and the interval's width to either side. */
static void gentle(vp *v, vn *r, const vn *a, int (*f)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)) {
  vn *w = &v->tmp[5], *t = &v->tmp[6];
  mpfr_sub(&w->hi, &a->hi, &a->lo, MPFR_RNDU);
  f(&t->lo, &a->lo, MPFR_RNDD);
  f(&t->hi, &a->lo, MPFR_RNDU);
  mpfr_sub(&r->lo, &t->lo, &w->hi, MPFR_RNDD);
  mpfr_add(&r->hi, &t->hi, &w->hi, MPFR_RNDU);
  vn_note(v, r);
}

static void sin_(vp *v, vn *r, const vn *a) { gentle(v, r, a, mpfr_sin); }
static void cos_(vp *v, vn *r, const vn *a) { gentle(v, r, a, mpfr_cos); }

static void tan_(vp *v, vn *r, const vn *a) {
  vn *s = &v->tmp[7];
  sin_(v, s, a);
  cos_(v, r, a);
  vn_div(v, r, s, r);
}

/* A number whose error function is `y` to all its bits: Newton's steps, each of which doubles them.
 */
static void erf_inverse(vp *v, mpfr_ptr x, mpfr_srcptr y) {
  enum { STEPS = 40 };
  __mpfr_struct *f = &v->tmp[6].lo, *slope = &v->tmp[6].hi;
  mpfr_set_zero(x, 1);
  for (int i = 0; i < STEPS; i++) {
    mpfr_erf(f, x, MPFR_RNDN);
    mpfr_sub(f, y, f, MPFR_RNDN);
    mpfr_sqr(slope, x, MPFR_RNDN);
    mpfr_exp(slope, slope, MPFR_RNDN);
    mpfr_mul(f, f, slope, MPFR_RNDN);
    mpfr_const_pi(slope, MPFR_RNDN);
    mpfr_sqrt(slope, slope, MPFR_RNDN);
    mpfr_div_2ui(slope, slope, 1, MPFR_RNDN);
    mpfr_mul(f, f, slope, MPFR_RNDN);
    mpfr_add(x, x, f, MPFR_RNDN);
    if (mpfr_zero_p(f) || mpfr_get_exp(f) < mpfr_get_exp(x) - (mpfr_exp_t)v->prec + 4) return;
  }
}

/* One bound: moved outwards by some units, and checked against its error function. */
static void erfinv_bound(vp *v, mpfr_ptr r, mpfr_srcptr y, bool below) {
  enum { UNITS = 64 };
  __mpfr_struct *f = &v->tmp[6].lo;
  const mpfr_rnd_t in = below ? MPFR_RNDU : MPFR_RNDD;
  erf_inverse(v, r, y);
  for (int i = 0; i < UNITS; i++) below ? mpfr_nextbelow(r) : mpfr_nextabove(r);
  mpfr_erf(f, r, in);
  v->open |= below ? mpfr_greater_p(f, y) != 0 : mpfr_less_p(f, y) != 0;
}

static void erfinv_(vp *v, vn *r, const vn *a) {
  vn *t = &v->tmp[5];
  if (mpfr_cmp_d(&a->lo, -0.999) <= 0 || mpfr_cmp_d(&a->hi, 0.999) >= 0) {
    v->open = true;
    return;
  }
  if (vn_is_zero(a)) {
    vn_set(r, a);
    return;
  }
  erfinv_bound(v, &t->lo, &a->lo, true);
  erfinv_bound(v, &t->hi, &a->hi, false);
  vn_set(r, t);
  vn_note(v, r);
}

static void one_plus(vp *v, vn *r) {
  mpfr_add_ui(&r->lo, &r->lo, 1, MPFR_RNDD);
  mpfr_add_ui(&r->hi, &r->hi, 1, MPFR_RNDU);
  vn_note(v, r);
}

static void vn_sigmoid(vp *v, vn *r, const vn *a) {
  vn_negate(v, r, a);
  vn_exp(v, r, r);
  one_plus(v, r);
  vn_recip(v, r, r);
}

static void silu(vp *v, vn *r, const vn *a) {
  vn *x = &v->tmp[7];
  vn_set(x, a);
  vn_sigmoid(v, r, a);
  vn_mul(v, r, r, x);
}

static void softplus1(vp *v, vn *r, const vn *a) {
  vn_exp(v, r, a);
  log1p_(v, r, r);
}

static void log_sigmoid(vp *v, vn *r, const vn *a) {
  vn_negate(v, r, a);
  softplus1(v, r, r);
  vn_negate(v, r, r);
}

/* By a softplus that is x from its threshold on, or by one that is not: nothing that float64 shows,
 * and so both. */
static void mish(vp *v, vn *r, const vn *a) {
  vn *x = &v->tmp[7], *s = &v->tmp[8];
  vn_set(x, a);
  softplus1(v, s, a);
  if (mpfr_cmp_ui(&x->hi, 20) >= 0) mpfr_min(&s->lo, &s->lo, &x->lo, MPFR_RNDD);
  vn_tanh(v, s, s);
  vn_mul(v, r, s, x);
}

static void relu(vp *v, vn *r, const vn *a) {
  (void)v;
  if (mpfr_sgn(&a->lo) < 0) mpfr_set_zero(&r->lo, 1);
  else mpfr_set(&r->lo, &a->lo, MPFR_RNDD);
  if (mpfr_sgn(&a->hi) < 0) mpfr_set_zero(&r->hi, 1);
  else mpfr_set(&r->hi, &a->hi, MPFR_RNDU);
}

static void same(vp *v, vn *r, const vn *a) { (void)v, vn_set(r, a); }
static void floor_(vp *v, vn *r, const vn *a) {
  mpfr_rint_floor(&r->lo, &a->lo, MPFR_RNDD), mpfr_rint_floor(&r->hi, &a->hi, MPFR_RNDU),
      vn_note(v, r);
}
static void ceil_(vp *v, vn *r, const vn *a) {
  mpfr_rint_ceil(&r->lo, &a->lo, MPFR_RNDD), mpfr_rint_ceil(&r->hi, &a->hi, MPFR_RNDU),
      vn_note(v, r);
}
static void trunc_(vp *v, vn *r, const vn *a) {
  mpfr_rint_trunc(&r->lo, &a->lo, MPFR_RNDD), mpfr_rint_trunc(&r->hi, &a->hi, MPFR_RNDU),
      vn_note(v, r);
}
static void round_(vp *v, vn *r, const vn *a) {
  mpfr_rint_roundeven(&r->lo, &a->lo, MPFR_RNDD), mpfr_rint_roundeven(&r->hi, &a->hi, MPFR_RNDU),
      vn_note(v, r);
}

static void frac_(vp *v, vn *r, const vn *a) {
  vn *x = &v->tmp[7];
  vn_set(x, a);
  trunc_(v, r, a);
  vn_sub(v, r, x, r);
}

static void sign_(vp *v, vn *r, const vn *a) {
  const int low = mpfr_sgn(&a->lo), high = mpfr_sgn(&a->hi);
  (void)v;
  mpfr_set_si(&r->lo, low > 0 ? 1 : low < 0 ? -1 : 0, MPFR_RNDD);
  mpfr_set_si(&r->hi, high > 0 ? 1 : high < 0 ? -1 : 0, MPFR_RNDU);
}

/* To the right of its least value, or to the left of it and of 0. */
static void lgamma_(vp *v, vn *r, const vn *a) {
  vn *t = &v->tmp[5];
  int sign;
  if (mpfr_cmp_d(&a->lo, 1.5) >= 0) {
    mpfr_lgamma(&r->lo, &sign, &a->lo, MPFR_RNDD);
    mpfr_lgamma(&r->hi, &sign, &a->hi, MPFR_RNDU);
  } else if (mpfr_sgn(&a->lo) > 0 && mpfr_cmp_d(&a->hi, 1.4) <= 0) {
    mpfr_lgamma(&t->lo, &sign, &a->hi, MPFR_RNDD);
    mpfr_lgamma(&t->hi, &sign, &a->lo, MPFR_RNDU);
    vn_set(r, t);
  } else {
    v->open = true;
  }
  vn_note(v, r);
}

static void digamma_(vp *v, vn *r, const vn *a) {
  v->open |= mpfr_sgn(&a->lo) <= 0;
  mpfr_digamma(&r->lo, &a->lo, MPFR_RNDD);
  mpfr_digamma(&r->hi, &a->hi, MPFR_RNDU);
  vn_note(v, r);
}

/* ---- two operands ---- */

static bool whole(const vn *a) {
  return vn_is_point(a) && mpfr_integer_p(&a->lo) && mpfr_fits_slong_p(&a->lo, MPFR_RNDN);
}

static void whole_power(vp *v, vn *r, const vn *a, long n) {
  vn *t = &v->tmp[9];
  const bool even = n % 2 == 0;
  if (n < 0) {
    vn_recip(v, t, a);
    n = -n;
  } else {
    vn_set(t, a);
  }
  if (even) vn_abs(v, t, t);
  mpfr_pow_si(&r->lo, &t->lo, n, MPFR_RNDD);
  mpfr_pow_si(&r->hi, &t->hi, n, MPFR_RNDU);
  vn_note(v, r);
}

void vn_pow(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[9];
  if (whole(b)) {
    whole_power(v, r, a, mpfr_get_si(&b->lo, MPFR_RNDN));
    return;
  }
  if (vn_is_zero(a) && mpfr_sgn(&b->lo) > 0) {
    vn_set(r, a);
    return;
  }
  if (vn_is_point(b) && mpfr_cmp_d(&b->lo, 0.5) == 0) {
    vn_sqrt(v, r, a);
    return;
  }
  vn_log(v, t, a);
  vn_mul(v, t, t, b);
  vn_exp(v, r, t);
}

static void hypot_(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[9];
  vn_square(v, t, a);
  vn_square(v, r, b);
  vn_add(v, r, r, t);
  vn_sqrt(v, r, r);
}

/* Whether the sign of `a` is open, as that of an interval around 0, or of a 0 of which no digits
 * tell whether it is -0. Then float64, where a 0 has its sign, says what there is to say. */
static bool sign_open(vp *v, const vn *a) {
  const bool known = mpfr_sgn(&a->lo) > 0 || mpfr_sgn(&a->hi) < 0;
  v->lacks |= vn_is_zero(a);
  v->open |= !known;
  return !known;
}

static void copysign_(vp *v, vn *r, const vn *a, const vn *b) {
  const bool below = mpfr_sgn(&b->hi) < 0;
  if (vn_is_zero(a)) vn_set(r, a);
  else if (sign_open(v, b)) return;
  else vn_abs(v, r, a);
  if (below) vn_negate(v, r, r);
}

/* Where the first quadrants' angle grows with y and falls with x; else open. */
static void atan2_(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[9];
  if (mpfr_sgn(&b->lo) > 0) {
    vn_div(v, t, a, b);
    atan_(v, r, t);
  } else if (mpfr_sgn(&a->lo) > 0 || mpfr_sgn(&a->hi) < 0) {
    const int sign = mpfr_sgn(&a->lo) > 0 ? 1 : -1;
    vn_div(v, t, b, a);
    atan_(v, t, t);
    mpfr_const_pi(&r->lo, sign > 0 ? MPFR_RNDD : MPFR_RNDU);
    mpfr_const_pi(&r->hi, sign > 0 ? MPFR_RNDU : MPFR_RNDD);
    mpfr_mul_d(&r->lo, &r->lo, sign * 0.5, MPFR_RNDD);
    mpfr_mul_d(&r->hi, &r->hi, sign * 0.5, MPFR_RNDU);
    vn_sub(v, r, r, t);
  } else {
    (void)sign_open(v, a);
  }
}

static void logaddexp(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[9];
  vn_exp(v, t, a);
  vn_exp(v, r, b);
  vn_add(v, r, r, t);
  vn_log(v, r, r);
}

static void xlogy(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[9];
  if (vn_is_zero(a)) {
    vn_set(r, a);
    return;
  }
  vn_log(v, t, b);
  vn_mul(v, r, t, a);
}

static void remainder_by(vp *v, vn *r, const vn *a, const vn *b, vn_unary whole_part) {
  vn *q = &v->tmp[9], *x = &v->tmp[10], *y = &v->tmp[11];
  vn_set(x, a);
  vn_set(y, b);
  vn_div(v, q, x, y);
  whole_part(v, q, q);
  v->open |= !vn_is_point(q);
  vn_mul(v, q, q, y);
  vn_sub(v, r, x, q);
}
static void remainder_(vp *v, vn *r, const vn *a, const vn *b) { remainder_by(v, r, a, b, floor_); }
static void fmod_(vp *v, vn *r, const vn *a, const vn *b) { remainder_by(v, r, a, b, trunc_); }

static void floor_divide(vp *v, vn *r, const vn *a, const vn *b) {
  vn_div(v, r, a, b);
  floor_(v, r, r);
}

enum { CHEAP = 1, DEAR = 24 };

static const struct {
  const char *name;
  vn_unary f;
  int cost;
} unaries[] = {{"neg", vn_negate, CHEAP},
               {"negative", vn_negate, CHEAP},
               {"abs", vn_abs, CHEAP},
               {"absolute", vn_abs, CHEAP},
               {"square", vn_square, CHEAP},
               {"sqrt", vn_sqrt, 2},
               {"rsqrt", rsqrt_, 4},
               {"reciprocal", vn_recip, 2},
               {"exp", vn_exp, DEAR},
               {"exp2", exp2_, DEAR},
               {"special_exp2", exp2_, DEAR},
               {"expm1", expm1_, DEAR},
               {"log", vn_log, DEAR},
               {"log2", log2_, DEAR},
               {"log10", log10_, DEAR},
               {"log1p", log1p_, DEAR},
               {"tanh", vn_tanh, DEAR},
               {"sigmoid", vn_sigmoid, DEAR},
               {"special_expit", vn_sigmoid, DEAR},
               {"silu", silu, DEAR},
               {"mish", mish, 3 * DEAR},
               {"log_sigmoid", log_sigmoid, 2 * DEAR},
               {"relu", relu, CHEAP},
               {"erf", vn_erf, 12 * DEAR},
               {"special_erf", vn_erf, 12 * DEAR},
               {"erfc", erfc_, 12 * DEAR},
               {"special_erfc", erfc_, 12 * DEAR},
               {"sin", sin_, DEAR},
               {"cos", cos_, DEAR},
               {"tan", tan_, 2 * DEAR},
               {"sinh", sinh_, DEAR},
               {"cosh", cosh_, DEAR},
               {"asin", asin_, DEAR},
               {"arcsin", asin_, DEAR},
               {"acos", acos_, DEAR},
               {"arccos", acos_, DEAR},
               {"atan", atan_, DEAR},
               {"arctan", atan_, DEAR},
               {"asinh", asinh_, DEAR},
               {"arcsinh", asinh_, DEAR},
               {"acosh", acosh_, DEAR},
               {"arccosh", acosh_, DEAR},
               {"atanh", atanh_, DEAR},
               {"arctanh", atanh_, DEAR},
               {"floor", floor_, CHEAP},
               {"ceil", ceil_, CHEAP},
               {"round", round_, CHEAP},
               {"trunc", trunc_, CHEAP},
               {"fix", trunc_, CHEAP},
               {"frac", frac_, CHEAP},
               {"sign", sign_, CHEAP},
               {"sgn", sign_, CHEAP},
               {"positive", same, CHEAP},
               {"lgamma", lgamma_, 8 * DEAR},
               {"special_gammaln", lgamma_, 8 * DEAR},
               {"digamma", digamma_, 8 * DEAR},
               {"special_digamma", digamma_, 8 * DEAR},
               {"special_psi", digamma_, 8 * DEAR},
               {"special_log1p", log1p_, DEAR},
               {"special_expm1", expm1_, DEAR},
               {"erfinv", erfinv_, 60 * DEAR},
               {"special_erfinv", erfinv_, 60 * DEAR}};

vn_unary vn_unary_find(const char *name, int *cost) {
  for (size_t i = 0; i < sizeof unaries / sizeof *unaries; i++)
    if (strcmp(unaries[i].name, name) == 0) {
      *cost = unaries[i].cost;
      return unaries[i].f;
    }
  return NULL;
}

vn_binary vn_binary_find(const char *name, int *cost) {
  static const struct {
    const char *name;
    vn_binary f;
    int cost;
  } table[] = {{"mul", vn_mul, CHEAP},
               {"multiply", vn_mul, CHEAP},
               {"div", vn_div, 2},
               {"divide", vn_div, 2},
               {"true_divide", vn_div, 2},
               {"pow", vn_pow, 2 * DEAR},
               {"maximum", vn_max, CHEAP},
               {"fmax", vn_max, CHEAP},
               {"minimum", vn_min, CHEAP},
               {"fmin", vn_min, CHEAP},
               {"atan2", atan2_, DEAR},
               {"arctan2", atan2_, DEAR},
               {"copysign", copysign_, CHEAP},
               {"hypot", hypot_, 4},
               {"logaddexp", logaddexp, 3 * DEAR},
               {"xlogy", xlogy, DEAR},
               {"special_xlogy", xlogy, DEAR},
               {"remainder", remainder_, 4},
               {"fmod", fmod_, 4},
               {"floor_divide", floor_divide, 4},
               {"outer", vn_mul, CHEAP},
               {"ger", vn_mul, CHEAP}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].name, name) == 0) {
      *cost = table[i].cost;
      return table[i].f;
    }
  return NULL;
}
#endif
