/* Intervals with outward rounding. Monotone functions are taken at both ends; the others are
 * widened by their slope. */
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

/* Exponents are noted, for the precision that is needed; NaN ends the evaluation. */
void vn_note(vp *v, const vn *r) {
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
  vn_note(v, r);
}

void vn_double(vp *v, vn *r, double d) {
  mpfr_set_d(&r->lo, d, MPFR_RNDD);
  mpfr_set_d(&r->hi, d, MPFR_RNDU);
  vn_note(v, r);
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
  /* Room for three roundings on the way to it. */
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
  vn_note(v, r);
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
  vn_note(v, r);
}

void vn_negate(vp *v, vn *r, const vn *a) {
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
  vn_note(v, r);
}

bool vn_is_point(const vn *a) { return mpfr_equal_p(&a->lo, &a->hi) != 0; }
bool vn_is_zero(const vn *a) { return mpfr_zero_p(&a->lo) && mpfr_zero_p(&a->hi); }

void vn_mul(vp *v, vn *r, const vn *a, const vn *b) {
  vn *t = &v->tmp[0], *p = &v->tmp[1];
  if (vn_is_zero(a) || vn_is_zero(b)) { /* where both are numbers; an infinity has stopped before */
    v->open |= mpfr_inf_p(&a->lo) || mpfr_inf_p(&a->hi) || mpfr_inf_p(&b->lo) || mpfr_inf_p(&b->hi);
    mpfr_set_zero(&r->lo, 1);
    mpfr_set_zero(&r->hi, 1);
    return;
  }
  const __mpfr_struct *x[2] = {&a->lo, &a->hi}, *y[2] = {&b->lo, &b->hi};
  const int n = vn_is_point(a) ? 1 : 2, m = vn_is_point(b) ? 1 : 2;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      mpfr_mul(i || j ? &p->lo : &t->lo, x[i], y[j], MPFR_RNDD);
      mpfr_mul(i || j ? &p->hi : &t->hi, x[i], y[j], MPFR_RNDU);
      if (!i && !j) continue;
      mpfr_min(&t->lo, &t->lo, &p->lo, MPFR_RNDD);
      mpfr_max(&t->hi, &t->hi, &p->hi, MPFR_RNDU);
    }
  vn_set(r, t);
  vn_note(v, r);
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
  vn_note(v, r);
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
  vn_note(v, r);
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
    vn_negate(v, r, a);
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
  vn_note(v, r);
}

int vn_compare(const vn *a, const vn *b) {
  if (mpfr_less_p(&a->hi, &b->lo)) return -1;
  if (mpfr_greater_p(&a->lo, &b->hi)) return 1;
  return vn_is_point(a) && vn_is_point(b) ? 0 : 2;
}

#endif
