/* Whether two outputs differ by more than disturbed roundings move them. */
#include "synth/refute/margins.h"

#include <math.h>

enum { STORAGE_MARGIN = 8 };

double st_moved(const rule_tensor *base, const rule_tensor *const *run, int from, int to,
                int64_t i) {
  double m = 0;
  const double x = rule_tensor_get(base, i);
  for (int k = from; k < to; k++) {
    const double y = rule_tensor_get(run[k], i);
    if (x == y || (isnan(x) && isnan(y))) continue;
    if (!(fabs(x - y) <= m)) m = isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
  }
  return m;
}

static bool ordinary(double x) { return fabs(x) < 1e30; }

/* How far the number at `i` is moved by half of the runs. */
static double median_moved(const rule_tensor *base, const rule_tensor *const *run, int64_t i) {
  double m[STORAGE_RUN];
  for (int k = 0; k < STORAGE_RUN; k++) {
    m[k] = st_moved(base, run, k, k + 1, i);
    for (int j = k; j > 0 && m[j] < m[j - 1]; j--) {
      const double x = m[j];
      m[j] = m[j - 1], m[j - 1] = x;
    }
  }
  return m[STORAGE_RUN / 2];
}

/* Whether the number at `i` is one because of rounding alone: 1 / (3x - x - x - x) has no value,
 * and a quotient of two such sums has none. Rounding moves such numbers by their own size, and
 * larger noise moves them no further; a sum that cancels is 0, which larger noise moves further;
 * and a 0 that replaced a NaN is moved by none, or as what may have underflowed is. */
static bool only_rounded(const rule_tensor *base, const rule_tensor *const *run,
                         const rule_tensor *const *wide, int64_t i) {
  const double x = fabs(rule_tensor_get(base, i)), small = median_moved(base, run, i);
  return isfinite(x) && small > ST_FAINT && 100 * small >= x &&
         !(median_moved(base, wide, i) > 256 * small);
}

static const rule_tensor *one_in_reals(const rule_tensor *t, rule_tensor *room) {
  if (!t || !rule_dtype_is_complex(t->dtype)) return t;
  *room = *t;
  room->dtype = t->dtype == RULE_C64 ? RULE_F32 : RULE_F64;
  room->numel *= 2;
  if (room->shape.rank == 0) room->shape = (rule_shape){.rank = 1, .dim = {1}};
  room->shape.dim[room->shape.rank - 1] *= 2;
  return room;
}

/* Complex outputs become real and imaginary parts in turn, which borrow their values. */
void st_in_reals(st_outputs *o, st_reals *room) {
  o->pairs =
      o->pairs || (o->base[LEFT] && o->base[RIGHT] && rule_dtype_is_complex(o->base[LEFT]->dtype) &&
                   rule_dtype_is_complex(o->base[RIGHT]->dtype));
  for (int side = 0; side < 2 && o->pairs; side++) {
    o->base[side] = one_in_reals(o->base[side], &room->base[side]);
    for (int k = 0; k < NOISE_RUNS; k++) {
      o->run[side][k] = one_in_reals(o->run[side][k], &room->run[side][k]);
      o->wide[side][k] = one_in_reals(o->wide[side][k], &room->wide[side][k]);
    }
    for (int k = 0; k < ORDERS; k++)
      o->order[side][k] = one_in_reals(o->order[side][k], &room->order[side][k]);
  }
}

/* Whether `i` is a part of a complex number that is infinite or none on a side: kernels leave open
 * which parts of it are. */
static bool open_part(const st_outputs *o, int64_t i) {
  for (int side = 0; side < 2 && o->pairs; side++)
    if (!ordinary(rule_tensor_get(o->base[side], i)) ||
        !ordinary(rule_tensor_get(o->base[side], i ^ 1)))
      return true;
  return false;
}

/* Whether element `i` depends on which of equal numbers an operator takes first, where that is left
 * open. */
static bool by_open_order(const st_outputs *o, int64_t i) {
  for (int side = 0; side < 2; side++)
    if (o->order[side][0] && st_moved(o->base[side], o->order[side], 0, ORDERS, i) > 0) return true;
  return false;
}

/* Whether an infinity at `i` has the sign of a zero that was computed: real numbers have no such
 * sign, and no quotient there. */
static bool either_sign(const rule_tensor *base, const rule_tensor *const *wide, int64_t i) {
  const double x = rule_tensor_get(base, i);
  for (int k = 0; k < STORAGE_RUN && isinf(x); k++) {
    const double y = rule_tensor_get(wide[k], i);
    if (isfinite(y) || (isinf(y) && signbit(x) != signbit(y))) return true;
  }
  return false;
}

/* Whether both are a quotient by 0, and differ only by rounding or by the zero's sign. */
static bool is_rounded_pole(const st_outputs *o, int64_t i) {
  bool infinite = true, free = false;
  for (int k = 0; k < 2; k++) {
    if (!o->wide[k][0]) return false;
    if (only_rounded(o->base[k], o->run[k], o->wide[k], i)) return true;
    infinite &= isinf(rule_tensor_get(o->base[k], i)) != 0;
    free |= either_sign(o->base[k], o->wide[k], i);
  }
  return infinite && free;
}

bool st_beyond_rounding(const st_outputs *o, st_margin sc, rule_diff *d) {
  const rule_tensor *l = o->base[LEFT], *r = o->base[RIGHT];
  const rule_tensor *const *nl = o->run[LEFT], *const *nr = o->run[RIGHT];
  *d = (rule_diff){.equal = true, .index = -1};
  const int64_t row =
      l->shape.rank && l->shape.dim[l->shape.rank - 1] > 0 ? l->shape.dim[l->shape.rank - 1] : 1;
  const bool is_float = rule_dtype_is_float(l->dtype);
  /* Ten times the error of kernels that compute in few bits: no difference is found in it. */
  const double least = fmax(sc.rel, 10 * fmax(l->coarse, r->coarse));
  for (int64_t from = 0; from < l->numel; from += row) {
    double norm = 0, shaken = 0;
    for (int64_t i = from; i < from + row; i++) {
      const double x = rule_tensor_get(l, i);
      if (ordinary(x)) norm = fmax(norm, fabs(x));
      shaken = fmax(shaken, sc.noise * fmax(st_moved(l, nl, 0, STORAGE_RUN, i),
                                            st_moved(r, nr, 0, STORAGE_RUN, i)));
      shaken = fmax(shaken, STORAGE_MARGIN * fmax(st_moved(l, nl, STORAGE_RUN, NOISE_RUNS, i),
                                                  st_moved(r, nr, STORAGE_RUN, NOISE_RUNS, i)));
    }
    if (!is_float && shaken > 0) continue; /* an order or a decision that rounding makes */
    for (int64_t i = from; i < from + row; i++) {
      const double x = rule_tensor_get(l, i), y = rule_tensor_get(r, i);
      double abs_diff = fabs(x - y), rel;
      if (x == y || (isnan(x) && isnan(y)) || open_part(o, i) || by_open_order(o, i)) continue;
      if (!is_float) {
        rel = abs_diff / fmax(1, fabs(x));
      } else if (!ordinary(x) || !ordinary(y)) {
        const double size = fmax(fabs(x), fabs(y));
        if (fabs(x - y) <= 1e-6 * size && isfinite(size)) continue; /* both are masks, or large */
        rel = isfinite(size) && !ordinary(x) && !ordinary(y) ? abs_diff / size : INFINITY;
        if (rel == INFINITY ? !sc.nonfinite || shaken == INFINITY : !(abs_diff > shaken)) continue;
        if (rel == INFINITY && is_rounded_pole(o, i)) continue;
        if (rel == INFINITY) abs_diff = INFINITY;
      } else {
        if (!(abs_diff > least * norm) || !(abs_diff > shaken)) continue;
        rel = norm > 0 ? abs_diff / norm : INFINITY;
      }
      d->equal = false;
      d->max_abs = fmax(d->max_abs, abs_diff);
      if (rel > d->max_rel) d->max_rel = rel, d->index = i;
    }
  }
  return !d->equal;
}
