/* Stochastic arithmetic: numbers as rounding may have left them. */
#include "synth/joint/run_int.h"

#include <float.h>
#include <math.h>
#include <string.h>

bool st_few_digits(double x, double digits) {
  int exponent;
  const double mantissa = frexp(x, &exponent) * digits;
  return mantissa == floor(mantissa);
}

double st_least_operand(const rule_term *t, rule_tensor *const *bind) {
  double least = t->kind == RULE_FLOAT && fabs(t->u.f) > 0 ? fabs(t->u.f) : INFINITY;
  for (uint32_t k = 0; k < t->n; k++) least = fmin(least, st_least_operand(t->child[k], bind));
  const rule_tensor *v = t->kind == RULE_VAR ? bind[t->u.i] : NULL;
  if (!v || (v->dtype != RULE_F64 && v->dtype != RULE_C128)) return least;
  const double *x = v->data;
  for (int64_t i = 0, n = v->dtype == RULE_C128 ? 2 * v->numel : v->numel; i < n; i++)
    if (fabs(x[i]) > 0) least = fmin(least, fabs(x[i]));
  return least;
}

/* Of a sum or a product `x` that has few digits: whether it has them because nothing was rounded.
 * Beside a power of two an operand may have been swallowed; `least` is the smallest one. */
static bool short_and_exact(double x, double least) {
  return st_few_digits(x, 0x1p26) && least > fabs(x) * 0x1p-27;
}

double st_up_or_down(iso_rng *rng, bool whole) {
  const double by = 2 * iso_rng_uniform(rng) - 1;
  return whole ? copysign(1, by) : by;
}

static double sign_of_zero(st_signs signs, iso_rng *rng) {
  const bool below = signs == ST_ZEROS_DRAWN ? iso_rng_below(rng, 2) : signs == ST_ZEROS_BELOW;
  return below ? -0.0 : 0.0;
}

/* Each number by a part of `noise` of its own: all weights of a model pass here, in each run, some
 * of them as they are stored. */
static void disturb_each(const rule_tensor *from, double *to, int64_t n, double noise,
                         iso_rng *rng) {
  enum { BLOCK = 4096 };
  double by[BLOCK], wide[BLOCK];
  const bool narrow = st_is_narrow(from);
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t m = n - at < BLOCK ? n - at : BLOCK;
    const double *x = narrow ? wide : (const double *)from->data + at;
    if (narrow) rule_tensor_widen(from, at, m, wide);
    iso_rng_fill_even(rng, 1, noise * 0x1p-63, by, (size_t)m);
    for (int64_t i = 0; i < m; i++) to[at + i] = x[i] * (fabs(x[i]) < 1e30 ? by[i] : 1);
  }
}

iso_code st_disturbed(const rule_tensor *t, const st_disturbing *how, iso_rng *rng,
                      rule_tensor **out, iso_error *err) {
  const bool narrow = st_is_narrow(t);
  iso_code c = rule_tensor_new_unset(narrow ? RULE_F64 : t->dtype, &t->shape, out, err);
  if (c) return c;
  double *x = (*out)->data;
  const bool real = narrow || t->dtype == RULE_F64 || t->dtype == RULE_C128;
  const int64_t n = t->dtype == RULE_C128 ? 2 * t->numel : t->numel;
  if (real && !how->but_short && !how->faint && !how->whole && !how->signs) {
    disturb_each(t, x, n, how->noise, rng);
    return ISO_OK;
  }
  if (narrow) rule_tensor_widen(t, 0, n, x);
  else memcpy(x, t->data, (size_t)t->numel * rule_dtype_size(t->dtype));
  if (!real) return ISO_OK;
  for (int64_t i = 0; i < n; i++)
    if (how->signs && x[i] == 0) x[i] = sign_of_zero(how->signs, rng);
    else if (fabs(x[i]) < DBL_MIN && how->faint)
      x[i] = copysign(ST_FAINT * iso_rng_uniform(rng),
                      x[i] == 0 ? 1 : x[i]); /* what underflowed, and ties because of it */
    else if (fabs(x[i]) < 1e30 && !(how->but_short && short_and_exact(x[i], how->least)))
      x[i] *= 1 + how->noise * st_up_or_down(rng, how->whole);
  return ISO_OK;
}
