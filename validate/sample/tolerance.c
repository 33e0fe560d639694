/* When two tensors count as equal.
 *
 * Per slice of the last dimension, against the slice's largest value: elementwise relative error
 * does not work, because cancellation makes correct pairs differ, and one bound for the whole
 * tensor lets a single large element hide the rest. Elements that are infinite, NaN or beyond 1e30
 * (a mask's finfo.min) take no part in the norm, and must be in the same places. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "egraph/base/wide.h"
#include "validate/validate.h"

static const double huge_value =
    1e30; /* masks' finfo.min of every format but float16 lies beyond */

/* One row of doubles that are compared: components of complex numbers lie side by side. */
typedef struct reader {
  const rule_tensor *t;
  int per; /* components of an element: 2 for complex */
} reader;

static reader reader_of(const rule_tensor *t) {
  return (reader){t, rule_dtype_is_complex(t->dtype) ? 2 : 1};
}

/* Component `c` of element `i`; the imaginary part of a real number is 0. */
static double component(reader r, int64_t i, int c) {
  if (r.per == 2) {
    if (r.t->dtype == RULE_C128) return ((const double *)r.t->data)[2 * i + c];
    return (double)((const float *)r.t->data)[2 * i + c];
  }
  if (c == 1) return 0;
  if (r.t->dtype == RULE_F64) return ((const double *)r.t->data)[i];
  if (r.t->dtype == RULE_F32) return (double)((const float *)r.t->data)[i];
  return rule_tensor_get(r.t, i);
}

static bool exact(const rule_tensor *t) {
  return !rule_dtype_is_float(t->dtype) && !rule_dtype_is_complex(t->dtype);
}

/* Of the slices that the comparison takes: the last dimension of `t`. */
static int64_t slice_length(const rule_tensor *t) {
  if (t->shape.rank == 0) return 1;
  int64_t n = t->shape.dim[t->shape.rank - 1];
  return n > 0 ? n : 1;
}

typedef enum relation { SAME, BOTH_NAN, COMPARE, WRONG } relation;

/* The relation of two numbers before any tolerance. */
static relation relate(double a, double b) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b) ? BOTH_NAN : WRONG;
  bool far_a = fabs(a) > huge_value, far_b = fabs(b) > huge_value;
  if (far_a || far_b) return far_a && far_b && signbit(a) == signbit(b) ? SAME : WRONG;
  return a == b ? SAME : COMPARE;
}

/* The difference allowed, and the largest one that the floor alone allowed: of a slice that is as
 * good as zero beside its tensor, whose rounding is as large as the slice. */
typedef struct allowance {
  double rel, floor_abs, floored;
} allowance;

static void note_worst(val_diff *d, double abs_diff, double rel, int64_t i) {
  if (abs_diff > d->max_abs) d->max_abs = abs_diff;
  if (rel > d->max_rel) {
    d->max_rel = rel;
    d->index = i;
  }
}

static void compare_exact(const rule_tensor *a, const rule_tensor *b, val_diff *d) {
  for (int64_t i = 0; i < a->numel; i++) {
    int64_t x = rule_tensor_get_int(a, i), y = rule_tensor_get_int(b, i);
    if (x == y) continue;
    d->equal = false;
    double diff = fabs((double)x - (double)y);
    if (!(diff > 0)) diff = 1; /* neighbours beyond 2^53 */
    note_worst(d, diff, diff / fmax(1, fabs((double)x)), i);
  }
}

static void note_slice(allowance *by, double diff, double norm, int64_t i, val_diff *d) {
  const bool close = diff <= by->rel * norm;
  if (!close && diff <= by->floor_abs) {
    by->floored = fmax(by->floored, diff);
    note_worst(d, diff, 0, i);
    return;
  }
  if (!close) d->equal = false;
  note_worst(d, diff, norm > 0 ? diff / norm : INFINITY, i);
}

/* The largest sizes, as bits: numbers without their sign are in the order of their bits, NaN behind
 * all others, and integers' maxima may be taken in any order. */
typedef struct extremes {
  uint64_t x, y, diff;
} extremes;

static double number(uint64_t bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

static inline uint64_t size_bits(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits & (UINT64_MAX >> 1);
}

static inline uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

ISO_WIDE static extremes extremes_of(const double *x, const double *y, int64_t n) {
  enum { BLOCK = 16 }; /* of one length: compilers turn it into vectors */
  extremes e = {0};
  int64_t i = 0;
  for (; n - i >= BLOCK; i += BLOCK) {
    uint64_t a = 0, b = 0, d = 0;
    for (int64_t k = i; k < i + BLOCK; k++) {
      a = larger(a, size_bits(x[k]));
      b = larger(b, size_bits(y[k]));
      d = larger(d, size_bits(x[k] - y[k]));
    }
    e = (extremes){larger(e.x, a), larger(e.y, b), larger(e.diff, d)};
  }
  for (; i < n; i++)
    e = (extremes){larger(e.x, size_bits(x[i])), larger(e.y, size_bits(y[i])),
                   larger(e.diff, size_bits(x[i] - y[i]))};
  return e;
}

/* The same for plain doubles: most of what is compared. Returns: false, and nothing noted, where
 * the slice holds NaN, infinities or masked values. */
static bool compare_plain(const double *x, const double *y, int64_t from, int64_t n, allowance *by,
                          val_diff *d) {
  const extremes e = extremes_of(x + from, y + from, n);
  const double norm = number(e.x), worst = number(e.diff);
  if (!(norm <= huge_value && number(e.y) <= huge_value)) return false;
  if (worst == 0) return true;
  int64_t at = from;
  while (fabs(x[at] - y[at]) != worst) at++;
  note_slice(by, worst, norm, at, d);
  return true;
}

/* The slice that begins at `from`. */
static void compare_slice(reader a, reader b, int64_t from, int64_t n, allowance *by, val_diff *d) {
  if (a.t->dtype == RULE_F64 && b.t->dtype == RULE_F64 &&
      compare_plain(a.t->data, b.t->data, from, n, by, d))
    return;
  int per = a.per > b.per ? a.per : b.per;
  double norm = 0;
  for (int64_t i = from; i < from + n; i++)
    for (int c = 0; c < a.per; c++) {
      double x = fabs(component(a, i, c));
      if (x > norm && x <= huge_value) norm = x;
    }
  for (int64_t i = from; i < from + n; i++) {
    bool nan = false;
    for (int c = 0; c < per; c++) {
      double x = component(a, i, c), y = component(b, i, c);
      relation r = relate(x, y);
      if (r == BOTH_NAN) nan = true;
      if (r == WRONG) {
        d->equal = false;
        note_worst(d, INFINITY, INFINITY, i);
      } else if (r == COMPARE) {
        note_slice(by, fabs(x - y), norm, i, d);
      }
    }
    d->n_nan += nan;
  }
}

static double norm_of(reader r) {
  double norm = 0;
  for (int64_t i = 0; i < r.t->numel; i++)
    for (int c = 0; c < r.per; c++) {
      const double x = fabs(component(r, i, c));
      if (x > norm && x <= huge_value) norm = x;
    }
  return norm;
}

val_diff val_compare(const rule_tensor *a, const rule_tensor *b, double rel_tol, double floor_abs) {
  val_diff d = {.equal = true, .index = -1};
  if (a->numel != b->numel)
    return (val_diff){.equal = false, .max_abs = INFINITY, .max_rel = INFINITY, .index = -1};
  if (exact(a) && exact(b)) {
    compare_exact(a, b, &d);
    return d;
  }
  reader ra = reader_of(a), rb = reader_of(b);
  allowance by = {rel_tol, floor_abs, 0};
  int64_t n = slice_length(a);
  for (int64_t from = 0; from < a->numel; from += n) compare_slice(ra, rb, from, n, &by, &d);
  const double norm = by.floored > 0 ? norm_of(ra) : 0;
  if (norm > 0) d.max_rel = fmax(d.max_rel, by.floored / norm);
  return d;
}

double val_ulp_normwise(const rule_tensor *trace, const rule_tensor *got) {
  if (trace->numel != got->numel) return INFINITY;
  if (exact(trace) && exact(got)) {
    val_diff d = val_compare(trace, got, 0, 0);
    return d.equal ? 0 : INFINITY;
  }
  reader a = reader_of(trace), b = reader_of(got);
  int per = a.per > b.per ? a.per : b.per;
  double norm = 0, worst = 0;
  for (int64_t i = 0; i < trace->numel; i++)
    for (int c = 0; c < per; c++) {
      double x = component(a, i, c), y = component(b, i, c);
      relation r = relate(x, y);
      if (r == WRONG) return INFINITY;
      if (r != BOTH_NAN && fabs(x) <= huge_value) norm = fmax(norm, fabs(x));
      if (r == COMPARE) worst = fmax(worst, fabs(x - y));
    }
  if (worst == 0) return 0;
  double eps = fmax(rule_dtype_unit(trace->dtype, 1), rule_dtype_unit(got->dtype, 1));
  return norm > 0 ? worst / (eps * norm) : INFINITY;
}

void val_sample_normal(iso_rng *rng, rule_tensor *t, double mean, double deviation) {
  if (rule_dtype_is_complex(t->dtype)) {
    for (int64_t i = 0; i < 2 * t->numel; i++) {
      double v = (i % 2 == 0 ? mean : 0) + deviation * iso_rng_normal(rng);
      if (t->dtype == RULE_C128) ((double *)t->data)[i] = v;
      else ((float *)t->data)[i] = (float)v;
    }
    return;
  }
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i, mean + deviation * iso_rng_normal(rng));
}
