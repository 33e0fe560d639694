/* Leaves that the ranks are run on: as they were captured, and drawn.
 *
 * A draw makes the whole leaf, and each rank gets its part of it: roles claim nothing about ranks
 * whose leaves are not such parts. Drawn leaves have values that captured ones seldom have:
 * integers that wrap, zeros, and numbers of either sign. */
#include <math.h>
#include <string.h>

#include "capture/roles/replay_int.h"

enum { STREAM = 16, FEW = 8 };
static const uint64_t KEY = UINT64_C(0x726f6c6573);

iso_code roles_captured(roles_work *x, size_t set, rule_tensor **out) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < x->n_made && !c; i++) {
    const roles_new *m = &x->made[i];
    if (m->as.call) continue;
    c = rule_tensor_to_float64(m->value[m->as.kind == CAP_INPUT ? set : 0], &out[i], x->err);
  }
  return c;
}

iso_code roles_cut(roles_work *x, const rule_tensor *whole, uint32_t dim, uint32_t r,
                   rule_tensor **out) {
  rule_shape shape = whole->shape;
  size_t inner = rule_dtype_size(whole->dtype), outer = 1;
  shape.dim[dim] /= x->n_ranks;
  for (uint32_t d = dim; d < shape.rank; d++) inner *= (size_t)shape.dim[d];
  for (uint32_t d = 0; d < dim; d++) outer *= (size_t)shape.dim[d];
  const iso_code c = rule_tensor_new(whole->dtype, &shape, out, x->err);
  for (size_t o = 0; o < outer && !c; o++)
    memcpy((char *)(*out)->data + o * inner,
           (const char *)whole->data + (o * x->n_ranks + r) * inner, inner);
  return c;
}

static void bounds(const rule_tensor *t, double *low, double *high) {
  *low = INFINITY, *high = -INFINITY;
  for (int64_t i = 0; i < t->numel; i++) {
    const double v = rule_tensor_get(t, i);
    *low = fmin(*low, v), *high = fmax(*high, v);
  }
}

static bool inside(const rule_domain *d, const rule_tensor *was, unsigned number, iso_rng *rng,
                   rule_tensor *t) {
  double low, high;
  bounds(was, &low, &high);
  if (isfinite(d->low)) low = d->low;
  if (isfinite(d->high)) high = d->high;
  return t->numel > 0 && rule_domain_draw(d, low, high, number, rng, t);
}

/* The first draw is within the captured range, so that indices stay indices. */
static void integers(const rule_tensor *was, unsigned number, iso_rng *rng, rule_tensor *t) {
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (int64_t i = 0; i < was->numel; i++) {
    const int64_t v = rule_tensor_get_int(was, i);
    low = v < low ? v : low, high = v > high ? v : high;
  }
  const uint64_t n = (uint64_t)high - (uint64_t)low + 1;
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set_int(
        t, i,
        (int64_t)(number == 0 && n ? (uint64_t)low + iso_rng_below(rng, n) : iso_rng_next(rng)));
}

static void reals(unsigned number, iso_rng *rng, rule_tensor *t) {
  static const double some[FEW] = {0, 1, -1, 0.5, -2, 1e-3, 30, -30};
  for (int64_t i = 0; i < t->numel; i++) {
    const double z = iso_rng_normal(rng);
    const uint64_t which = iso_rng_below(rng, (uint64_t)2 * FEW);
    rule_tensor_set(t, i, number && which < FEW ? some[which] : z);
  }
}

/* Leaves that no draw changes, and complex numbers, keep their captured values. */
static iso_code draw(roles_work *x, const roles_new *m, unsigned number, iso_rng *rng,
                     rule_tensor *t) {
  const rule_tensor *was = m->value[0];
  const rule_dtype type = was->dtype;
  const bool free_one = m->as.kind == CAP_INPUT || m->as.kind == CAP_PARAMETER;
  memcpy(t->data, was->data, (size_t)was->numel * rule_dtype_size(type));
  if (!free_one || !was->numel || rule_dtype_is_complex(type)) return ISO_OK;
  if (!m->as.domain) {
    if (rule_dtype_is_int(type)) integers(was, number, rng, t);
    else if (rule_dtype_is_float(type)) reals(number, rng, t);
    else
      for (int64_t i = 0; i < t->numel; i++)
        rule_tensor_set_int(t, i, (int64_t)iso_rng_below(rng, 2));
    return ISO_OK;
  }
  rule_tensor *own;
  const iso_code c = rule_tensor_new(type, &was->shape, &own, x->err);
  if (c) return c;
  if (inside(m->as.domain, was, number, rng, own))
    memcpy(t->data, own->data, (size_t)was->numel * rule_dtype_size(type));
  rule_tensor_unref(own);
  return ISO_OK;
}

iso_code roles_drawn(roles_work *x, unsigned number, rule_tensor **out) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < x->n_made && !c; i++) {
    const roles_new *m = &x->made[i];
    iso_rng rng = iso_rng_new(x->q->seed ^ KEY, i * STREAM + number);
    rule_tensor *t;
    if (m->as.call) continue;
    if ((c = rule_tensor_new(m->value[0]->dtype, &m->value[0]->shape, &t, x->err))) break;
    c = draw(x, m, number, &rng, t);
    if (!c) c = rule_tensor_to_float64(t, &out[i], x->err);
    rule_tensor_unref(t);
  }
  return c;
}
