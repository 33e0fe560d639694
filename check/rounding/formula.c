/* Other formulas for the numbers of a geometric progression, as frameworks compute them in float32:
 * a table that was stored may have come of any of them. */
#include <math.h>

#include "check/check_int.h"

static double single(double x) { return (double)(float)x; }

/* Whether `t` is first, first q, first q q, ... along its last dimension, all others being 1. */
static bool progresses(const rule_tensor *t, double *first, double *q) {
  const uint32_t rank = t->shape.rank;
  if (rank == 0 || t->numel < 3 || t->shape.dim[rank - 1] != t->numel) return false;
  *first = rule_tensor_get(t, 0);
  *q = pow(rule_tensor_get(t, t->numel - 1) / *first, 1.0 / (double)(t->numel - 1));
  if (!(*first > 0) || !(*q > 0) || *q == 1 || !isfinite(*q)) return false;
  for (int64_t i = 1; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (!(fabs(x - *first * pow(*q, (double)i)) <= 1e-12 * x)) return false;
  }
  return true;
}

/* base ** (-2 i / d), where d is twice the number of them: frequencies of a rotary embedding. */
static double frequency(unsigned formula, double base, double d, double i) {
  const double exponent = single(2 * i / d);
  switch (formula) {
  case 1: return single(1 / single(pow(base, exponent)));
  case 2: return single(pow(base, -exponent));
  case 3: return single(exp(single(-exponent * single(log(base)))));
  default: return single(exp(single(2 * i * single(-log(base) / d))));
  }
}

void chk_by_formula(unsigned formula, rule_tensor *t) {
  double first, q, power;
  const double n = (double)t->numel;
  if (!progresses(t, &first, &q) || (formula < CHK_FORMULAS && (first != 1 || q > 1))) return;
  double base = exp(-log(q) * n);
  if (fabs(base - nearbyint(base)) < 1e-9 * base) base = nearbyint(base);
  power = single(first);
  for (int64_t i = 0; i < t->numel; i++) {
    const bool times = formula == CHK_FORMULAS; /* each is the one before times the ratio */
    rule_tensor_set(t, i, times ? power : frequency(formula, base, 2 * n, (double)i));
    power = single(power * single(q));
  }
}
