/* Whether a table of few digits is another one times a number, or plus one. In each element of
 * bfloat16 a factor of 1.004 is no more than rounding. But roundings go up and down, and in all
 * elements together a factor goes one way. */
#include "synth/constants/rounding.h"

#include <math.h>
#include <stdlib.h>

/* An element of the other table: by how many units it is off, and where in its binade. */
typedef struct flip {
  double at, by;
} flip;

static int by_place(const void *l, const void *r) {
  const flip *a = l, *b = r;
  return a->at != b->at ? (a->at > b->at) - (a->at < b->at) : (a->by > b->by) - (a->by < b->by);
}

/* Elements of one place are rounded alike and count once, as those of a layout that repeats. */
static size_t distinct(flip *f, size_t n) {
  size_t kept = 0;
  qsort(f, n, sizeof *f, by_place);
  for (size_t i = 0; i < n; i++)
    if (!kept || by_place(&f[kept - 1], &f[i]) != 0) f[kept++] = f[i];
  return kept;
}

/* As unlikely as 2.75 deviations of the sum of so many signs; of few elements, all of them that are
 * off. */
static bool one_way(const flip *f, size_t n) {
  enum { SOME = 4 };
  double sum = 0, squares = 0;
  size_t up = 0, down = 0;
  for (size_t i = 0; i < n; i++) {
    sum += f[i].by, squares += f[i].by * f[i].by;
    up += f[i].by > 0, down += f[i].by < 0;
  }
  if (sum * sum > 2.75 * 2.75 * squares) return true;
  return (up == 0 || down == 0) && up + down + (2 * (up + down) >= n) >= SOME;
}

/* By a factor that is further from 1 than half a unit: further than if one number was rounded by
 * which all were multiplied, or if one side rounded towards zero. In the mean, beyond three
 * deviations. */
static bool is_factor(const flip *f, size_t n, rule_dtype in) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; i++) {
    const double by = f[i].by / (fabs(f[i].at) * rule_dtype_unit(in, 1));
    sum += by, squares += by * by;
  }
  const double mean = sum / (double)n;
  return n > 1 && fabs(mean) > 0.5 + 3 * sqrt((squares / (double)n - mean * mean) / (double)n);
}

/* `away`: from 0 counts as up, as of a factor. */
static rx_drift goes_one_way(const rule_tensor *a, const rule_tensor *b, rule_dtype in, bool away,
                             flip *f) {
  size_t n = 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (x == 0 || !isfinite(x) || !isfinite(y) || fabs(x) > 1e30) continue;
    const double unit = pr_ulp(x, in), sign = away && x < 0 ? -1 : 1;
    f[n++] = (flip){sign * x / unit, sign * rint((y - x) / unit)};
  }
  n = distinct(f, n);
  if (!one_way(f, n)) return RX_STAYS;
  return away && is_factor(f, n, in) ? RX_DRIFTS_FAR : RX_DRIFTS;
}

iso_code rx_drifts(const rule_tensor *stored, const rule_tensor *made, rule_dtype in, rx_drift *how,
                   iso_error *err) {
  *how = RX_STAYS;
  if (in != RULE_BF16 && in != RULE_F16) return ISO_OK;
  flip *f = malloc(((size_t)stored->numel + 1) * sizeof *f);
  if (!f) return iso_fail(err, ISO_NOMEM, "out of memory");
  const rx_drift up = goes_one_way(stored, made, in, false, f),
                 away = goes_one_way(stored, made, in, true, f);
  *how = up > away ? up : away;
  free(f);
  return ISO_OK;
}
