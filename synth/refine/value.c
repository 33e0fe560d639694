/* Values of terms tried for an output, and whether they are the output's. */
#include "synth/joint/joint.h"
#include "synth/refine/refine.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

rule_tensor *st_left_value(const st_refiner *x, uint32_t left, size_t draw) {
  return x->left[left * x->n_draws + draw];
}

rule_tensor *st_right_value(const st_refiner *x, uint32_t right, size_t draw) {
  return x->right[right * x->n_draws + draw];
}

typedef struct bound { /* tensors that stand for the variables of one call */
  rule_tensor *at[ST_MAX_PARTS + 4];
  uint32_t n;
} bound;

static iso_code bind(const st_refiner *x, const rule_term *t, size_t draw, iso_arena *a, bound *b,
                     const rule_term **out, iso_error *err) {
  iso_code c = ISO_OK;
  *out = t;
  if (t->kind == RULE_VAR || t->kind == RULE_OP) {
    if (b->n == sizeof b->at / sizeof *b->at)
      return iso_fail(err, ISO_LIMIT, "too many tensors in one relation");
    c = st_piece_value(x, t, draw, &b->at[b->n], err);
    if (!c) *out = rule_var(a, b->n++);
  } else if (t->kind == RULE_LIST) {
    const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
    c = child ? ISO_OK : nomem(err);
    for (uint32_t i = 0; i < t->n && !c; i++) c = bind(x, t->child[i], draw, a, b, &child[i], err);
    if (!c) *out = rule_list(a, child, t->n);
  }
  return c ? c : *out ? ISO_OK : nomem(err);
}

iso_code st_piece_value(const st_refiner *x, const rule_term *t, size_t draw, rule_tensor **out,
                        iso_error *err) {
  if (t->kind == RULE_VAR) {
    *out = rule_tensor_ref(st_right_value(x, (uint32_t)t->u.i, draw));
    return ISO_OK;
  }
  iso_arena a;
  iso_arena_init(&a);
  bound b = {.n = 0};
  const rule_term **child = iso_arena_alloc(&a, (t->n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : nomem(err);
  size_t n = 0;
  for (uint32_t i = 0; i < t->n && !c; i++) c = bind(x, t->child[i], draw, &a, &b, &child[i], err);
  const rule_term *call = c ? NULL : rule_op(&a, t->u.s, child, t->n);
  const rule_oracle *oracle = x->s->oracle;
  if (!c) c = call ? oracle->call(oracle->ctx, call, b.at, true, out, 1, &n, err) : nomem(err);
  for (uint32_t i = 0; i < b.n; i++) rule_tensor_unref(b.at[i]);
  iso_arena_fini(&a);
  return c;
}

/* The factor that makes `v` the tensor `l`, as their largest elements have it. */
static double factor(const rule_tensor *l, const rule_tensor *v) {
  int64_t at = -1;
  double most = 0;
  for (int64_t i = 0; i < l->numel; i++) {
    const double y = fabs(rule_tensor_get(l, i));
    if (isfinite(y) && y > most) most = y, at = i;
  }
  const double by = at < 0 ? 0 : rule_tensor_get(v, at);
  return by != 0 && isfinite(by) ? rule_tensor_get(l, at) / by : 0;
}

static iso_code scaled(const rule_tensor *v, double by, rule_tensor **out, iso_error *err) {
  const iso_code c = rule_tensor_new(v->dtype, &v->shape, out, err);
  for (int64_t i = 0; !c && i < v->numel; i++) rule_tensor_set(*out, i, by * rule_tensor_get(v, i));
  return c;
}

static bool agree(const st_refiner *x, const rule_tensor *l, const rule_tensor *v) {
  const rule_oracle *o = x->s->oracle;
  return o->compare(o->ctx, l, v, x->s->o->rel_tol).equal && !st_far_apart(l, v);
}

/* On one draw: equal, or equal up to *scale, which is found where it is NAN. */
static iso_code agree_on(const st_refiner *x, const rule_tensor *l, const rule_tensor *v,
                         bool *holds, double *scale, iso_error *err) {
  *holds = *holds && agree(x, l, v);
  if (!scale || *scale == 0 || !rule_dtype_is_float(v->dtype)) return ISO_OK;
  if (isnan(*scale)) *scale = factor(l, v);
  rule_tensor *w = NULL;
  const iso_code c = scaled(v, *scale, &w, err);
  if (!c && !agree(x, l, w)) *scale = 0;
  rule_tensor_unref(w);
  return c;
}

iso_code st_multiple(const st_refiner *x, const rule_tensor *a, const rule_tensor *b, double *scale,
                     iso_error *err) {
  if (!rule_dtype_is_float(a->dtype) || !rule_dtype_is_float(b->dtype)) {
    *scale = agree(x, a, b) && factor(a, b) != 0 ? 1 : 0;
    return ISO_OK;
  }
  bool equal = false;
  return agree_on(x, a, b, &equal, scale, err);
}

iso_code st_holds(const st_refiner *x, uint32_t left, const rule_term *t, bool *holds,
                  double *scale, iso_error *err) {
  iso_code c = ISO_OK;
  *holds = true;
  if (scale) *scale = NAN;
  for (size_t d = x->n_draws; d-- > 0 && !c && (*holds || (scale && *scale != 0));) {
    const rule_tensor *l = st_left_value(x, left, d);
    rule_tensor *v = NULL;
    if ((c = st_piece_value(x, t, d, &v, err))) break;
    if (l->numel != v->numel || rule_dtype_is_float(l->dtype) != rule_dtype_is_float(v->dtype)) {
      *holds = false;
      if (scale) *scale = 0;
    } else {
      c = agree_on(x, l, v, holds, scale, err);
    }
    rule_tensor_unref(v);
  }
  return c;
}
