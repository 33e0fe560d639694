/* Tensors held against each other, and rounded. */
#include "localise/rounding/rounding_int.h"
#include "egraph/base/rng.h"

#include <math.h>
#include <string.h>

/* Digits of masks, and of numbers as large, do not count. */
static bool counts(double x) { return fabs(x) < 1e30; }

double lr_distance(const rule_tensor *a, const rule_tensor *b, const rule_tensor *scale) {
  double apart = 0, size = 0;
  if (a->numel != b->numel || a->numel != scale->numel) return INFINITY;
  for (int64_t i = 0; i < a->numel; i++) {
    const double s = rule_tensor_get(scale, i), x = rule_tensor_get(a, i),
                 y = rule_tensor_get(b, i);
    if (!counts(s) || (!isfinite(x) && !isfinite(y))) continue;
    if (!isfinite(x) || !isfinite(y)) return INFINITY;
    apart += (x - y) * (x - y);
    size += s * s;
  }
  return apart > 0 ? sqrt(apart / (size > 0 ? size : 1)) : 0;
}

bool lr_overflows(const rule_tensor *t, const rule_tensor *exact) {
  if (!rule_dtype_is_float(t->dtype) || t->numel != exact->numel) return false;
  for (int64_t i = 0; i < t->numel; i++)
    if (!isfinite(rule_tensor_get(t, i)) && counts(rule_tensor_get(exact, i))) return true;
  return false;
}

int lr_digits(rule_dtype d) { return rule_dtype_is_float(d) ? rule_dtype_digits(d) : 0; }

static double rounded(double x, rule_dtype to, iso_rng *rng) {
  if (!isfinite(x) || x == 0) return x;
  const double step = rule_dtype_unit(to, x), below = floor(x / step), part = x / step - below;
  if (part <= 0) return x;
  const double y = (below + (iso_rng_uniform(rng) < part)) * step;
  return fabs(y) > rule_dtype_largest(to) ? copysign(INFINITY, y) : y;
}

iso_code lr_round(rule_tensor *t, rule_dtype to, iso_rng *rng, rule_tensor **out, iso_error *err) {
  const int digits = rule_dtype_digits(to);
  *out = rule_tensor_ref(t);
  if (digits == 0 || digits == 53 || (t->dtype != RULE_F64 && t->dtype != RULE_C128)) return ISO_OK;
  rule_tensor_unref(*out);
  const iso_code c = rule_tensor_new_unset(t->dtype, &t->shape, out, err);
  const double *x = t->data;
  double *y = c ? NULL : (*out)->data;
  for (int64_t i = 0, n = t->dtype == RULE_C128 ? 2 * t->numel : t->numel; i < n && !c; i++)
    y[i] = rounded(x[i], to, rng);
  return c;
}

iso_code lr_cast(rule_tensor *t, rule_dtype to, rule_tensor **out, iso_error *err) {
  const iso_code c = rule_tensor_new_unset(to, &t->shape, out, err);
  for (int64_t i = 0; i < t->numel && !c; i++) rule_tensor_set(*out, i, rule_tensor_get(t, i));
  return c;
}
