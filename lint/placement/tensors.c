/* Tensors of ranks put together, and cut. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"

static const double slack = 1e-9; /* of the largest number on the way: rounding in float64 */

double plc_largest(const rule_tensor *t) {
  double most = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    const double v = fabs(rule_tensor_get(t, i));
    if (isfinite(v) && v > most && v < 1e30) most = v;
  }
  return most;
}

static bool near(double a, double b, double room) {
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  if (isinf(a) || isinf(b) || fabs(a) > 1e30 || fabs(b) > 1e30) return a == b;
  return fabs(a - b) <= room;
}

bool plc_near(const rule_tensor *a, const rule_tensor *b, double factor, double size,
              double floor) {
  if (a->dtype != b->dtype || !rule_shape_eq(&a->shape, &b->shape)) return false;
  const double most = plc_largest(b), room = floor + slack * (size > most ? size : most);
  for (int64_t i = 0; i < a->numel; i++)
    if (!near(rule_tensor_get(a, i), factor * rule_tensor_get(b, i), room)) return false;
  return true;
}

static rule_tensor *fresh(plc *x, rule_dtype dtype, const rule_shape *s) {
  rule_tensor *t = NULL;
  if (!plc_failed(x)) x->code = rule_tensor_new(dtype, s, &t, x->err);
  return t;
}

/* ---- together ---- */

static int64_t inner_of(const rule_shape *s, uint32_t d) {
  int64_t n = 1;
  for (uint32_t i = d + 1; i < s->rank; i++) n *= s->dim[i];
  return n;
}

static void copy_run(rule_tensor *to, int64_t at, const rule_tensor *from, int64_t start,
                     int64_t n) {
  const size_t w = rule_dtype_size(to->dtype);
  memcpy((char *)to->data + (size_t)at * w, (const char *)from->data + (size_t)start * w,
         (size_t)n * w);
}

/* The shape of a concatenation. Returns: false where there is none. */
static bool joined_shape(rule_tensor *const *t, uint32_t n, const plc_one *o, rule_shape *out) {
  int64_t each[PLC_BLOCKS];
  *out = t[0]->shape;
  if (o->dim >= out->rank) return false;
  out->dim[o->dim] = 0;
  for (uint32_t i = 0; i < n; i++) {
    const rule_shape *p = &t[i]->shape;
    if (p->rank != out->rank || t[i]->dtype != t[0]->dtype ||
        !plc_sections(o, p->dim[o->dim], each))
      return false;
    for (uint32_t k = 0; k < out->rank; k++)
      if (k != o->dim && p->dim[k] != out->dim[k]) return false;
    out->dim[o->dim] += p->dim[o->dim];
  }
  return true;
}

static rule_tensor *cat(plc *x, rule_tensor *const *t, uint32_t n, const plc_one *o) {
  rule_shape s;
  int64_t each[PLC_BLOCKS];
  if (!joined_shape(t, n, o, &s)) return NULL;
  rule_tensor *out = fresh(x, t[0]->dtype, &s);
  if (!out || !out->numel) return out;
  const int64_t inner = inner_of(&s, o->dim), rows = out->numel / (inner * s.dim[o->dim]);
  int64_t at = 0;
  for (int64_t r = 0; r < rows; r++)
    for (uint32_t k = 0; k < plc_blocks(o); k++)
      for (uint32_t i = 0; i < n; i++) {
        int64_t before = r * t[i]->shape.dim[o->dim];
        plc_sections(o, t[i]->shape.dim[o->dim], each);
        for (uint32_t j = 0; j < k; j++) before += each[j];
        copy_run(out, at, t[i], before * inner, each[k] * inner);
        at += each[k] * inner;
      }
  return out;
}

static rule_tensor *reduced(plc *x, rule_tensor *const *t, uint32_t n, plc_reduce how) {
  for (uint32_t i = 1; i < n; i++)
    if (!rule_shape_eq(&t[i]->shape, &t[0]->shape) || t[i]->dtype != t[0]->dtype) return NULL;
  rule_tensor *out =
      t[0]->dtype == RULE_BOOL && how == PLC_SUM ? NULL : fresh(x, t[0]->dtype, &t[0]->shape);
  for (int64_t k = 0; out && k < out->numel; k++) {
    double v = rule_tensor_get(t[0], k);
    for (uint32_t i = 1; i < n; i++) {
      const double w = rule_tensor_get(t[i], k);
      v = how == PLC_SUM    ? v + w
          : how == PLC_NORM ? hypot(v, w)
          : how == PLC_MAX  ? fmax(v, w)
                            : fmin(v, w);
    }
    rule_tensor_set(out, k, v);
  }
  return out;
}

static rule_tensor *one(plc *x, rule_tensor *const *t, uint32_t n, plc_one how, double size,
                        double floor) {
  if (how.kind == PLC_S) return cat(x, t, n, &how);
  if (how.kind == PLC_P) return reduced(x, t, n, how.reduce);
  for (uint32_t i = 1; i < n; i++)
    if (t[i] != t[0] && !plc_near(t[i], t[0], 1, size, floor)) return NULL;
  return rule_tensor_ref(t[0]);
}

/* The last axis first: its ranks are neighbours, and shards of shards of one dimension are so too.
 */
rule_tensor *plc_combine(plc *x, rule_tensor *const *each, const plc_place *p, double floor) {
  rule_tensor *now[PLC_RANKS];
  double size = 0;
  uint32_t n = x->mesh.n;
  for (uint32_t r = 0; r < n; r++) {
    if (!each[r]) return NULL;
    if (r && each[r] == each[r - 1]) continue;
    const double most = plc_largest(each[r]);
    if (most > size) size = most;
  }
  for (uint32_t r = 0; r < n; r++) now[r] = rule_tensor_ref(each[r]);
  bool fits = true;
  for (uint32_t a = x->mesh.n_axes; a-- > 0 && fits;) {
    const uint32_t m = x->mesh.size[a];
    rule_tensor *next[PLC_RANKS];
    uint32_t made = 0;
    while (fits && made < n / m) {
      next[made] = one(x, now + made * m, m, p->axis[a], size, floor);
      fits = next[made] != NULL;
      made += fits;
    }
    for (uint32_t r = 0; r < n; r++) rule_tensor_unref(now[r]);
    for (uint32_t r = 0; r < made; r++) now[r] = next[r];
    n = made;
  }
  for (uint32_t r = fits ? 1 : 0; r < n; r++) rule_tensor_unref(now[r]);
  return fits ? now[0] : NULL;
}

bool plc_holds(plc *x, rule_tensor *const *each, const rule_tensor *whole, const plc_place *p,
               double floor) {
  rule_tensor *t = plc_combine(x, each, p, floor);
  double size = 0;
  for (uint32_t r = 0; t && r < x->mesh.n; r++) {
    const double most = plc_largest(each[r]);
    if (most > size) size = most;
  }
  const bool holds = t && plc_near(t, whole, p->scale, size, floor);
  rule_tensor_unref(t);
  return holds;
}

/* ---- apart ---- */

/* How much of dimension `d` the ranks from `rank` on hold together, along axes from `axis` on. */
static int64_t extent(const plc *x, const plc_place *p, const rule_shape *shape, uint32_t rank,
                      uint32_t axis, uint32_t d) {
  if (axis == x->mesh.n_axes) return shape[rank].dim[d];
  const uint32_t step = plc_stride(&x->mesh, axis);
  if (p->axis[axis].kind != PLC_S || p->axis[axis].dim != d)
    return extent(x, p, shape, rank, axis + 1, d);
  int64_t all = 0;
  for (uint32_t k = 0; k < x->mesh.size[axis]; k++)
    all += extent(x, p, shape, rank + k * step, axis + 1, d);
  return all;
}

bool plc_shapes(const plc *x, rule_tensor *const *each, rule_shape *out) {
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    if (!each[r]) return false;
    out[r] = each[r]->shape;
  }
  return true;
}

bool plc_shapes_fit(const plc *x, const rule_shape *each, const plc_place *p,
                    const rule_shape *whole) {
  if (each[0].rank != whole->rank) return false;
  for (uint32_t d = 0; d < whole->rank; d++)
    if (extent(x, p, each, 0, 0, d) != whole->dim[d]) return false;
  return true;
}

/* `n` from `from` on along a dimension: the same share of each of its blocks. */
static rule_tensor *slice(plc *x, const rule_tensor *t, const plc_one *o, int64_t from, int64_t n) {
  const uint32_t d = o->dim;
  int64_t whole[PLC_BLOCKS], skip[PLC_BLOCKS], own[PLC_BLOCKS];
  rule_shape s = t->shape;
  if (from + n > s.dim[d] || !plc_sections(o, s.dim[d], whole) || !plc_sections(o, from, skip) ||
      !plc_sections(o, n, own))
    return NULL;
  s.dim[d] = n;
  rule_tensor *out = fresh(x, t->dtype, &s);
  if (!out || !out->numel) return out;
  const int64_t inner = inner_of(&s, d), rows = out->numel / (n * inner);
  int64_t at = 0, before = 0;
  for (int64_t r = 0; r < rows; r++)
    for (uint32_t k = 0; k < plc_blocks(o); k++) {
      copy_run(out, at, t, (before + skip[k]) * inner, own[k] * inner);
      at += own[k] * inner;
      before += whole[k];
    }
  return out;
}

/* Piece k of m whose sum is `t`: drawn, and the first makes it right. */
static rule_tensor *piece(plc *x, const rule_tensor *t, uint32_t k, uint32_t m, uint64_t seed) {
  rule_tensor *out = fresh(x, t->dtype, &t->shape);
  for (int64_t i = 0; out && i < t->numel; i++) {
    iso_rng rng = iso_rng_new(seed, (uint64_t)i);
    double sum = 0, own = 0;
    for (uint32_t j = 1; j < m; j++) {
      const double v = rule_dtype_is_float(t->dtype) ? iso_rng_normal(&rng) : 0;
      sum += v;
      if (j == k) own = v;
    }
    rule_tensor_set(out, i, k ? own : rule_tensor_get(t, i) - sum);
  }
  return out;
}

static rule_tensor *scaled(plc *x, rule_tensor *t, double by) {
  if (by == 1) return rule_tensor_ref(t);
  rule_tensor *out = fresh(x, t->dtype, &t->shape);
  for (int64_t i = 0; out && i < t->numel; i++) rule_tensor_set(out, i, by * rule_tensor_get(t, i));
  return out;
}

typedef struct cutting {
  const plc_place *p;
  const rule_shape *shape;
  uint64_t seed;
  rule_tensor **out;
} cutting;

/* Part `k` of `t` along an axis, of which `from` is behind it; `first`: the rank that has it. */
static rule_tensor *part_of(plc *x, rule_tensor *t, const cutting *c, uint32_t axis, uint32_t k,
                            uint32_t first, int64_t *from) {
  const plc_one *o = &c->p->axis[axis];
  if (o->kind == PLC_S) {
    if (o->dim >= t->shape.rank || o->dim >= c->shape[first].rank) return NULL;
    const int64_t n = extent(x, c->p, c->shape, first, axis + 1, o->dim);
    *from += n;
    return slice(x, t, o, *from - n, n);
  }
  uint32_t group = first - k * plc_stride(&x->mesh, axis);
  for (uint32_t a = 0; a < axis; a++) /* replicas are cut alike */
    if (c->p->axis[a].kind == PLC_R)
      group -= plc_along(&x->mesh, first, a) * plc_stride(&x->mesh, a);
  if (o->kind == PLC_P && o->reduce == PLC_SUM)
    return piece(x, t, k, x->mesh.size[axis], c->seed + 977 * (group + 1));
  if (o->kind == PLC_P && o->reduce == PLC_NORM)
    return scaled(x, t, 1 / sqrt((double)x->mesh.size[axis]));
  return rule_tensor_ref(t);
}

static bool cut_along(plc *x, rule_tensor *t, const cutting *c, uint32_t rank, uint32_t axis) {
  if (axis == x->mesh.n_axes) {
    if (!rule_shape_eq(&t->shape, &c->shape[rank])) return false;
    return (c->out[rank] = rule_tensor_ref(t)) != NULL;
  }
  const plc_one *o = &c->p->axis[axis];
  int64_t from = 0;
  bool fits = true;
  for (uint32_t k = 0; k < x->mesh.size[axis] && fits; k++) {
    const uint32_t first = rank + k * plc_stride(&x->mesh, axis);
    rule_tensor *part = part_of(x, t, c, axis, k, first, &from);
    fits = part && cut_along(x, part, c, first, axis + 1);
    rule_tensor_unref(part);
  }
  return fits && (o->kind != PLC_S || from == t->shape.dim[o->dim]);
}

bool plc_cut(plc *x, rule_tensor *whole, const plc_place *p, const rule_shape *shape, uint64_t seed,
             rule_tensor **out) {
  const cutting c = {.p = p, .shape = shape, .seed = seed, .out = out};
  rule_tensor *t = scaled(x, whole, p->scale);
  for (uint32_t r = 0; r < x->mesh.n; r++) out[r] = NULL;
  bool fits = t && cut_along(x, t, &c, 0, 0) && !plc_failed(x);
  rule_tensor_unref(t);
  for (uint32_t r = 0; r < x->mesh.n && !fits; r++) {
    rule_tensor_unref(out[r]);
    out[r] = NULL;
  }
  return fits;
}
