/* Shows that an output cannot be put together: an element of it that no right output holds.
 *
 * For every clean relation, each element of its value is an element of a right output, or a sum of
 * elements of several right outputs that stand in one place of tensors of one shape. These are
 * finitely many numbers; one that is far from all of them is a witness. */
#include "synth/refine/refine.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_SUMMED = 8, MOST_NUMBERS = 1 << 22 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef struct numbers {
  double *of;
  size_t n;
} numbers;

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The first of a shape, or another: those before it count it, too. */
static bool same_shape_before(const st_refiner *x, size_t k) {
  for (size_t i = 0; i < k; i++)
    if (rule_shape_eq(&st_right_value(x, (uint32_t)i, 0)->shape,
                      &st_right_value(x, (uint32_t)k, 0)->shape))
      return true;
  return false;
}

/* Outputs of the shape of output `k`. Returns: how many; 0 where they are too many. */
static size_t of_shape(const st_refiner *x, size_t k, size_t n_right, uint32_t *out) {
  size_t n = 0;
  for (size_t i = k; i < n_right; i++) {
    if (!rule_shape_eq(&st_right_value(x, (uint32_t)i, 0)->shape,
                       &st_right_value(x, (uint32_t)k, 0)->shape))
      continue;
    if (n == MOST_SUMMED) return 0;
    out[n++] = (uint32_t)i;
  }
  return n;
}

/* How many numbers there are; 0 where they are too many to be looked at. */
static size_t count(const st_refiner *x, size_t n_right) {
  size_t all = 0;
  for (size_t k = 0; k < n_right; k++) {
    uint32_t same[MOST_SUMMED];
    if (same_shape_before(x, k)) continue;
    const size_t n = of_shape(x, k, n_right, same);
    const int64_t numel = st_right_value(x, (uint32_t)k, 0)->numel;
    if (n == 0 || (double)all + (double)numel * (1 << n) > MOST_NUMBERS) return 0;
    all += (size_t)numel << n;
  }
  return all;
}

/* Every sum of some of the outputs of one shape, element by element. */
static void collect(const st_refiner *x, size_t n_right, size_t draw, numbers *out) {
  for (size_t k = 0; k < n_right; k++) {
    uint32_t same[MOST_SUMMED];
    if (same_shape_before(x, k)) continue;
    const size_t n = of_shape(x, k, n_right, same);
    for (int64_t e = 0; e < st_right_value(x, (uint32_t)k, draw)->numel; e++)
      for (size_t some = 1; some < (size_t)1 << n; some++) {
        double sum = 0;
        for (size_t i = 0; i < n; i++)
          if (some >> i & 1) sum += rule_tensor_get(st_right_value(x, same[i], draw), e);
        if (!isnan(sum)) out->of[out->n++] = sum;
      }
  }
  if (out->n) qsort(out->of, out->n, sizeof *out->of, ascending);
}

static double nearest(const numbers *all, double v) {
  size_t lo = 0, hi = all->n;
  while (lo < hi) {
    const size_t mid = (lo + hi) / 2;
    if (all->of[mid] < v) lo = mid + 1;
    else hi = mid;
  }
  if (lo == all->n) return all->of[lo - 1];
  return lo > 0 && v - all->of[lo - 1] < all->of[lo] - v ? all->of[lo - 1] : all->of[lo];
}

iso_code st_seek_apart(const st_refiner *x, uint32_t left, size_t n_right, synth_found *out,
                       iso_error *err) {
  const size_t n = count(x, n_right);
  numbers all = {n ? malloc(n * sizeof *all.of) : NULL, 0};
  if (n && !all.of) return nomem(err);
  for (size_t d = 0; n && d < x->n_draws && out->apart < 0; d++) {
    const rule_tensor *t = st_left_value(x, left, d);
    double size = 0, most = 0;
    for (int64_t e = 0; e < t->numel; e++) size = fmax(size, fabs(rule_tensor_get(t, e)));
    all.n = 0;
    collect(x, n_right, d, &all);
    for (int64_t e = 0; e < t->numel && all.n && isfinite(size); e++) {
      const double v = rule_tensor_get(t, e), near = nearest(&all, v), by = fabs(v - near);
      if (!(by > 1e-6 * size) || by <= most) continue;
      most = by;
      out->apart = e;
      out->value = v;
      out->nearest = near;
      out->redrawn = d >= st_n_captured(x->s);
    }
  }
  free(all.of);
  return ISO_OK;
}
