/* Intervals with outward rounding. Functions that grow are taken at both ends; what is not monotone
 * is widened by its slope. */
#include "validate/precise/precise_int.h"

#ifdef VAL_HAS_MPFR
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t vn_limb_bytes(const vp *v) { return 2 * mpfr_custom_get_size(v->prec); }

void vn_init(vp *v, vn *x, void *limbs) {
  const size_t one = mpfr_custom_get_size(v->prec);
  mpfr_custom_init(limbs, v->prec);
  mpfr_custom_init_set(&x->lo, MPFR_ZERO_KIND, 0, v->prec, limbs);
  mpfr_custom_init(((char *)limbs + one), v->prec);
  mpfr_custom_init_set(&x->hi, MPFR_ZERO_KIND, 0, v->prec, (char *)limbs + one);
}

/* What was met, for the precision that is needed; a number that is none stops. */
static void note(vp *v, const vn *r) {
  if (mpfr_nan_p(&r->lo) || mpfr_nan_p(&r->hi)) {
    v->open = true;
    return;
  }
  const bool away = mpfr_sgn(&r->lo) > 0 || mpfr_sgn(&r->hi) < 0;
  if (!away || mpfr_inf_p(&r->lo) || mpfr_inf_p(&r->hi)) return;
  const long a = mpfr_get_exp(&r->lo), b = mpfr_get_exp(&r->hi), low = a < b ? a : b,
             high = a < b ? b : a;
  if (!v->any || low < v->low) v->low = low;
  if (!v->any || high > v->high) v->high = high;
  v->any = true;
}

void vn_set(vn *r, const vn *a) {
  mpfr_set(&r->lo, &a->lo, MPFR_RNDD);
  mpfr_set(&r->hi, &a->hi, MPFR_RNDU);
}

void vn_int(vp *v, vn *r, int64_t i) {
  mpfr_set_sj(&r->lo, i, MPFR_RNDD);
  mpfr_set_sj(&r->hi, i, MPFR_RNDU);
  note(v, r);
}

void vn_double(vp *v, vn *r, double d) {
  mpfr_set_d(&r->lo, d, MPFR_RNDD);
  mpfr_set_d(&r->hi, d, MPFR_RNDU);
  note(v, r);
}

/* The shortest decimal that is this double. Returns: its digits. */
static int shortest(double d, char *text, size_t n) {
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, n, "%.*e", digits - 1, d);
    if (!(strtod(text, NULL) < d) && !(strtod(text, NULL) > d)) return digits;
  }
  return 17;
}

bool vn_long_decimal(double d) {
  char text[40];
  enum { LONG = 15 };
  return isfinite(d) && shortest(d, text, sizeof text) >= LONG;
}

void vn_literal(vp *v, vn *r, double d) {
  char text[40];
  enum { LONG = 15 };
  vn_double(v, r, d);
  if (v->reading == VP_DOUBLES || !isfinite(d)) return;
  const int digits = shortest(d, text, sizeof text);
  mpfr_set_str(&r->lo, text, 10, MPFR_RNDD);
  mpfr_set_str(&r->hi, text, 10, MPFR_RNDU);
  if (v->reading == VP_DECIMALS || digits < LONG) return;
  /* What three roundings on the way to it may have done. */
  mpfr_set_d(&r->lo, d - 1.5 * DBL_EPSILON * fabs(d), MPFR_RNDD);
  mpfr_set_d(&r->hi, d + 1.5 * DBL_EPSILON * fabs(d), MPFR_RNDU);
}

void vn_hull(vn *r, const vn *a, const vn *b) {
  mpfr_min(&r->lo, &a->lo, &b->lo, MPFR_RNDD);
  mpfr_max(&r->hi, &a->hi, &b->hi, MPFR_RNDU);
}

/* 128 bits in two halves. */
static void wide_int(vp *v, vn *r, __int128 i) {
  vn *t = &v->tmp[11];
  const bool below = i < 0;
  const unsigned __int128 u = below ? -(unsigned __int128)i : (unsigned __int128)i;
  mpfr_set_uj_2exp(&r->lo, (uintmax_t)(u >> 64), 64, MPFR_RNDD);
  mpfr_set_uj(&t->lo, (uintmax_t)u, MPFR_RNDD);
  mpfr_add(&r->lo, &r->lo, &t->lo, MPFR_RNDD);
  if (below) mpfr_neg(&r->lo, &r->lo, MPFR_RNDD);
  mpfr_set(&r->hi, &r->lo, MPFR_RNDU);
}

/* A whole number of any length. */
static void long_int(vn *r, mpz_srcptr i) {
  mpfr_set_z(&r->lo, i, MPFR_RNDD);
  mpfr_set_z(&r->hi, i, MPFR_RNDU);
}

void vn_rational(vp *v, vn *r, const pv_rationals *c, uint32_t q) {
  vn *t = &v->tmp[10];
  const pv_number *x = &c->q[q];
  if (x->large) long_int(r, x->large->n);
  else wide_int(v, r, x->small.n);
  if (x->large || x->small.d != 1) {
    if (x->large) long_int(t, x->large->d);
    else wide_int(v, t, x->small.d);
    vn_div(v, r, r, t);
  }
  mpfr_mul_2si(&r->lo, &r->lo, x->small.e, MPFR_RNDD);
  mpfr_mul_2si(&r->hi, &r->hi, x->small.e, MPFR_RNDU);
  note(v, r);
}

void vn_gelu_root(vp *v, vn *r) {
  vn *two = &v->tmp[10];
  mpfr_const_pi(&r->lo, MPFR_RNDD);
  mpfr_const_pi(&r->hi, MPFR_RNDU);
  vn_int(v, two, 2);
  vn_div(v, r, two, r);
  vn_sqrt(v, r, r);
}

/* ---- arithmetic ---- */

void vn_add(vp *v, vn *r, const vn *a, const vn *b) {
  mpfr_add(&r->lo, &a->lo, &b->lo, MPFR_RNDD);
  mpfr_add(&r->hi, &a->hi, &b->hi, MPFR_RNDU);
  note(v, r);
}

static void negate(vp *v, vn *r, const vn *a) {
  vn *t = &v->tmp[0];
  mpfr_neg(&t->lo, &a->hi, MPFR_RNDD);
  mpfr_neg(&t->hi, &a->lo, MPFR_RNDU);
  vn_set(r, t);
}

void vn_sub(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[0];
  mpfr_sub(&t->lo, &a->lo, &b->hi, MPFR_RNDD);
  mpfr_sub(&t->hi, &a->hi, &b->lo, MPFR_RNDU);
  vn_set(r, t);
  note(v, r);
}

static bool point(const vn *a) { return mpfr_equal_p(&a->lo, &a->hi) != 0; }
static bool is_zero(const vn *a) { return mpfr_zero_p(&a->lo) && mpfr_zero_p(&a->hi); }

void vn_mul(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[0], *p = &v->tmp[1];
  if (is_zero(a) || is_zero(b)) { /* where both are numbers; an infinity has stopped before */
    v->open |= mpfr_inf_p(&a->lo) || mpfr_inf_p(&a->hi) || mpfr_inf_p(&b->lo) || mpfr_inf_p(&b->hi);
    mpfr_set_zero(&r->lo, 1);
    mpfr_set_zero(&r->hi, 1);
    return;
  }
  const __mpfr_struct *x[2] = {&a->lo, &a->hi}, *y[2] = {&b->lo, &b->hi};
  const int n = point(a) ? 1 : 2, m = point(b) ? 1 : 2;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      mpfr_mul(i || j ? &p->lo : &t->lo, x[i], y[j], MPFR_RNDD);
      mpfr_mul(i || j ? &p->hi : &t->hi, x[i], y[j], MPFR_RNDU);
      if (!i && !j) continue;
      mpfr_min(&t->lo, &t->lo, &p->lo, MPFR_RNDD);
      mpfr_max(&t->hi, &t->hi, &p->hi, MPFR_RNDU);
    }
  vn_set(r, t);
  note(v, r);
}

void vn_recip(vp *v, vn *r, const vn *a) {
  vn *t = &v->tmp[2];
  if (mpfr_sgn(&a->lo) <= 0 && mpfr_sgn(&a->hi) >= 0) {
    v->open = true;
    return;
  }
  mpfr_ui_div(&t->lo, 1, &a->hi, MPFR_RNDD);
  mpfr_ui_div(&t->hi, 1, &a->lo, MPFR_RNDU);
  vn_set(r, t);
  note(v, r);
}

void vn_div(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[3], *p = &v->tmp[1];
  if (mpfr_sgn(&b->lo) <= 0 && mpfr_sgn(&b->hi) >= 0) {
    v->open = true;
    return;
  }
  const __mpfr_struct *x[2] = {&a->lo, &a->hi}, *y[2] = {&b->lo, &b->hi};
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++) {
      mpfr_div(i || j ? &p->lo : &t->lo, x[i], y[j], MPFR_RNDD);
      mpfr_div(i || j ? &p->hi : &t->hi, x[i], y[j], MPFR_RNDU);
      if (!i && !j) continue;
      mpfr_min(&t->lo, &t->lo, &p->lo, MPFR_RNDD);
      mpfr_max(&t->hi, &t->hi, &p->hi, MPFR_RNDU);
    }
  vn_set(r, t);
  note(v, r);
}

void vn_max(vp *v, vn *r, const vn *a, const vn *b) {
  (void)v;
  mpfr_max(&r->lo, &a->lo, &b->lo, MPFR_RNDD);
  mpfr_max(&r->hi, &a->hi, &b->hi, MPFR_RNDU);
}

void vn_min(vp *v, vn *r, const vn *a, const vn *b) {
  (void)v;
  mpfr_min(&r->lo, &a->lo, &b->lo, MPFR_RNDD);
  mpfr_min(&r->hi, &a->hi, &b->hi, MPFR_RNDU);
}

void vn_abs(vp *v, vn *r, const vn *a) {
  vn *t = &v->tmp[4];
  if (mpfr_sgn(&a->lo) >= 0) {
    vn_set(r, a);
  } else if (mpfr_sgn(&a->hi) <= 0) {
    negate(v, r, a);
  } else {
    mpfr_neg(&t->lo, &a->lo, MPFR_RNDU);
    mpfr_max(&t->hi, &t->lo, &a->hi, MPFR_RNDU);
    mpfr_set_zero(&t->lo, 1);
    vn_set(r, t);
  }
}

void vn_square(vp *v, vn *r, const vn *a) {
  vn_abs(v, r, a);
  mpfr_sqr(&r->lo, &r->lo, MPFR_RNDD);
  mpfr_sqr(&r->hi, &r->hi, MPFR_RNDU);
  note(v, r);
}

int vn_compare(const vn *a, const vn *b) {
  if (mpfr_less_p(&a->hi, &b->lo)) return -1;
  if (mpfr_greater_p(&a->lo, &b->hi)) return 1;
  return point(a) && point(b) ? 0 : 2;
}

/* ---- functions that grow, or fall ---- */

#define GROWS(name, f) \
  static void name(vp *v, vn *r, const vn *a) { \
    f(&r->lo, &a->lo, MPFR_RNDD); \
    f(&r->hi, &a->hi, MPFR_RNDU); \
    note(v, r); \
  }
#define FALLS(name, f) \
  static void name(vp *v, vn *r, const vn *a) { \
    vn *t = &v->tmp[5]; \
    f(&t->lo, &a->hi, MPFR_RNDD); \
    f(&t->hi, &a->lo, MPFR_RNDU); \
    vn_set(r, t); \
    note(v, r); \
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

/* A rule speaks of where it is defined: what may be less than 0 by rounding alone is not. */
void vn_sqrt(vp *v, vn *r, const vn *a) {
  if (mpfr_sgn(&a->lo) < 0) mpfr_set_zero(&r->lo, 1);
  else mpfr_sqrt(&r->lo, &a->lo, MPFR_RNDD);
  mpfr_sqrt(&r->hi, &a->hi, MPFR_RNDU);
  note(v, r);
}

static void cosh_(vp *v, vn *r, const vn *a) {
  vn_abs(v, r, a);
  mpfr_cosh(&r->lo, &r->lo, MPFR_RNDD);
  mpfr_cosh(&r->hi, &r->hi, MPFR_RNDU);
  note(v, r);
}

/* `f` has a slope of at most 1: at one end, and the interval's width to either side. */
static void gentle(vp *v, vn *r, const vn *a, int (*f)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t)) {
  vn *w = &v->tmp[5], *t = &v->tmp[6];
  mpfr_sub(&w->hi, &a->hi, &a->lo, MPFR_RNDU);
  f(&t->lo, &a->lo, MPFR_RNDD);
  f(&t->hi, &a->lo, MPFR_RNDU);
  mpfr_sub(&r->lo, &t->lo, &w->hi, MPFR_RNDD);
  mpfr_add(&r->hi, &t->hi, &w->hi, MPFR_RNDU);
  note(v, r);
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

/* One bound: moved outwards by some units, and held against what its error function is. */
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
  if (is_zero(a)) {
    vn_set(r, a);
    return;
  }
  erfinv_bound(v, &t->lo, &a->lo, true);
  erfinv_bound(v, &t->hi, &a->hi, false);
  vn_set(r, t);
  note(v, r);
}

static void one_plus(vp *v, vn *r) {
  mpfr_add_ui(&r->lo, &r->lo, 1, MPFR_RNDD);
  mpfr_add_ui(&r->hi, &r->hi, 1, MPFR_RNDU);
  note(v, r);
}

void vn_sigmoid(vp *v, vn *r, const vn *a) {
  negate(v, r, a);
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
  negate(v, r, a);
  softplus1(v, r, r);
  negate(v, r, r);
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
      note(v, r);
}
static void ceil_(vp *v, vn *r, const vn *a) {
  mpfr_rint_ceil(&r->lo, &a->lo, MPFR_RNDD), mpfr_rint_ceil(&r->hi, &a->hi, MPFR_RNDU), note(v, r);
}
static void trunc_(vp *v, vn *r, const vn *a) {
  mpfr_rint_trunc(&r->lo, &a->lo, MPFR_RNDD), mpfr_rint_trunc(&r->hi, &a->hi, MPFR_RNDU),
      note(v, r);
}
static void round_(vp *v, vn *r, const vn *a) {
  mpfr_rint_roundeven(&r->lo, &a->lo, MPFR_RNDD), mpfr_rint_roundeven(&r->hi, &a->hi, MPFR_RNDU),
      note(v, r);
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
  note(v, r);
}

static void digamma_(vp *v, vn *r, const vn *a) {
  v->open |= mpfr_sgn(&a->lo) <= 0;
  mpfr_digamma(&r->lo, &a->lo, MPFR_RNDD);
  mpfr_digamma(&r->hi, &a->hi, MPFR_RNDU);
  note(v, r);
}

/* ---- two operands ---- */

static bool whole(const vn *a) {
  return point(a) && mpfr_integer_p(&a->lo) && mpfr_fits_slong_p(&a->lo, MPFR_RNDN);
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
  note(v, r);
}

void vn_pow(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[9];
  if (whole(b)) {
    whole_power(v, r, a, mpfr_get_si(&b->lo, MPFR_RNDN));
    return;
  }
  if (is_zero(a) && mpfr_sgn(&b->lo) > 0) {
    vn_set(r, a);
    return;
  }
  if (point(b) && mpfr_cmp_d(&b->lo, 0.5) == 0) {
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
    v->open = true;
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
  if (is_zero(a)) {
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
  v->open |= !point(q);
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

vn_unary vn_unary_find(const char *name, int *cost) {
  static const struct {
    const char *name;
    vn_unary f;
    int cost;
  } table[] = {{"neg", negate, CHEAP},
               {"negative", negate, CHEAP},
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
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].name, name) == 0) {
      *cost = table[i].cost;
      return table[i].f;
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
