/* Samples that meet a rule's conditions: shapes as the rule gives them, float variables at several scales and with the
 * values that tell functions apart (ties, zeros, past the literals of the rule), index variables within their tables. */
#include "validate/sample_int.h"

#include <math.h>
#include <string.h>

/* ---- domains of integer variables ---- */

static bool mentions(const rule_term *t, uint32_t var) {
  if (t->kind == RULE_VAR) return t->u.i == var;
  for (uint32_t i = 0; i < t->n; i++)
    if (mentions(t->child[i], var)) return true;
  return false;
}

/* Which argument is the table and which the index, and along which dimension. */
static bool index_use(const rule_term *t, uint32_t *table, uint32_t *index, int64_t *dim) {
  *dim = 0;
  if (strcmp(t->u.s, "aten::embedding") == 0) {
    *table = 0, *index = 1;
    return t->n >= 2;
  }
  if (strcmp(t->u.s, "aten::index_select") == 0 || strcmp(t->u.s, "aten::gather") == 0) {
    *table = 0, *index = 2;
    if (t->n < 3 || t->child[1]->kind != RULE_INT) return false;
    *dim = t->child[1]->u.i;
    return true;
  }
  if (strcmp(t->u.s, "_C::rotary_embedding.isomer") == 0) {
    *table = 4, *index = 0;
    return t->n >= 5;
  }
  return false;
}

/* The smallest size that variable `var` indexes in `t`. Table shapes are found by evaluating them on `bind`. */
static int64_t limit_in(val_engine *e, const rule_term *t, uint32_t var, rule_tensor *const *bind) {
  int64_t limit = INT64_MAX;
  if (t->kind == RULE_OP) {
    uint32_t table, index;
    int64_t dim;
    if (index_use(t, &table, &index, &dim) && mentions(t->child[index], var)) {
      rule_tensor *v = NULL;
      iso_error err;
      if (val_eval(e, t->child[table], bind, VAL_FLOAT64, &v, &err) == ISO_OK) {
        if (dim < 0) dim += v->shape.rank;
        if (dim >= 0 && dim < (int64_t)v->shape.rank) limit = v->shape.dim[dim];
        rule_tensor_unref(v);
      }
    }
  }
  for (uint32_t i = 0; i < t->n; i++) {
    const int64_t l = limit_in(e, t->child[i], var, bind);
    if (l < limit) limit = l;
  }
  return limit;
}

/* ---- float literals of the rule: thresholds that samples should pass ---- */

static void literals(const rule_term *t, double *v, size_t *n, size_t cap) {
  double x = t->kind == RULE_FLOAT ? t->u.f : t->kind == RULE_INT ? (double)t->u.i : 0;
  if (isfinite(x) && fabs(x) > 1e-30 && fabs(x) < 1e12 && (t->kind == RULE_FLOAT || fabs(x) > 2)) {
    bool seen = false;
    for (size_t i = 0; i < *n; i++) seen |= v[i] == fabs(x);
    if (!seen && *n < cap) v[(*n)++] = fabs(x);
  }
  for (uint32_t i = 0; i < t->n; i++) literals(t->child[i], v, n, cap);
}

static bool is_mask(const rule_tensor *t) {
  if (!t || !rule_dtype_is_float(t->dtype)) return false;
  for (int64_t i = 0; i < t->numel; i++)
    if (rule_tensor_get(t, i) < -1e30) return true;
  return false;
}

/* Kinds of values, in the order in which samples take them (VAL_KINDS of them, then at random). */
enum { UNIT, TINY, LARGE, POSITIVE, TIES, NEAR_LITERALS, NEGATIVE, AT_LITERALS, HALVES, ROWS, SMALL_LITERALS };

static double draw(iso_rng *rng, unsigned kind, double lit, double row) {
  const double z = iso_rng_normal(rng);
  switch (kind) {
  case TINY: return z / 256;
  case LARGE: return z * 64;
  case POSITIVE: return fabs(z) + 0.05;
  case NEGATIVE: return -fabs(z) - 0.05;
  case TIES: return (double)iso_rng_below(rng, 5) - 2;
  case NEAR_LITERALS: return 2 * lit * z;
  case AT_LITERALS: { /* thresholds themselves, and a step to either side */
    static const double step[] = {1, 1, 1 + 1e-3, 1 - 1e-3, 0};
    const double v = lit * step[iso_rng_below(rng, 5)];
    return iso_rng_below(rng, 2) ? v : -v;
  }
  case HALVES: return (double)iso_rng_below(rng, 9) - 4 + 0.5; /* where roundings part */
  case ROWS: return row + z * 1e-3;
  case SMALL_LITERALS: return sqrt(lit) * z; /* an eps under a root */
  default: return z;
  }
}

static void fill_float(iso_rng *rng, rule_tensor *t, unsigned k, const double *lit, size_t n_lit, const rule_tensor *example) {
  double *x = t->data;
  const unsigned kind = k < VAL_KINDS ? k : (unsigned)iso_rng_below(rng, VAL_KINDS);
  const bool mask = is_mask(example) && k % 2 == 1;
  const int64_t last = t->shape.rank && t->shape.dim[t->shape.rank - 1] ? t->shape.dim[t->shape.rank - 1] : 1;
  const double by_lit = n_lit ? lit[iso_rng_below(rng, n_lit)] : 1;
  double row = 0, l = by_lit;
  for (int64_t i = 0; i < t->numel; i++) {
    if (i % last == 0) row = iso_rng_normal(rng) * 2;
    if (kind == AT_LITERALS && n_lit) l = lit[iso_rng_below(rng, n_lit)];
    x[i] = draw(rng, kind, l, row);
    /* An additive mask: what it hides is far below, and the first element of a row stays. */
    if (mask) x[i] = i % last != 0 && iso_rng_below(rng, 2) ? -3.4028234663852886e38 : 0;
  }
}

static void fill_int(iso_rng *rng, rule_tensor *t, int64_t limit, const rule_tensor *example, const double *lit, size_t n_lit, unsigned k) {
  /* Where narrower types and floats stop being exact. */
  static const int64_t edges[] = {127, 128, 255, 256, 257, 32767, 32768, 65535, 16777217, INT64_C(2147483647), INT64_C(2147483648)};
  int64_t low = 0, high = limit;
  const bool open = limit == INT64_MAX;
  if (open) {
    low = -3, high = 9;
    if (example && k % 3 == 0) {
      low = INT64_MAX, high = INT64_MIN;
      for (int64_t i = 0; i < example->numel; i++) {
        const int64_t v = rule_tensor_get_int(example, i);
        if (v < low) low = v;
        if (v >= high) high = v + 1;
      }
      if (high <= low) low = 0, high = 2;
    }
  }
  for (int64_t i = 0; i < t->numel; i++) {
    int64_t v = low + (int64_t)iso_rng_below(rng, (uint64_t)(high - low > 0 ? high - low : 1));
    if (!open && i == 0 && k % 4 == 1) v = low; /* boundary rows */
    if (!open && i == 0 && k % 4 == 2) v = high - 1;
    if (open && k % 3 == 1) v = edges[iso_rng_below(rng, t->dtype == RULE_I64 ? 11 : t->dtype == RULE_I32 ? 9 : 1)] * (iso_rng_below(rng, 2) ? 1 : -1);
    if (open && k % 3 == 2 && n_lit && iso_rng_below(rng, 2)) {
      v = (int64_t)lit[iso_rng_below(rng, n_lit)] + (int64_t)iso_rng_below(rng, 3) - 1;
      if (iso_rng_below(rng, 2)) v = -v;
    }
    rule_tensor_set(t, i, (double)v);
  }
}

/* As the rule says: low .. high - 1, the ends more often than by chance. */
static void fill_range(iso_rng *rng, rule_tensor *t, int64_t low, int64_t high, unsigned k) {
  if (high > low + 64 && high > INT64_MAX / 2) high = low + 64;
  const uint64_t n = high > low ? (uint64_t)(high - low) : 1;
  for (int64_t i = 0; i < t->numel; i++) {
    int64_t v = low + (int64_t)iso_rng_below(rng, n);
    if (i == 0 && k % 4 == 1) v = low;
    if (i == 0 && k % 4 == 2) v = low + (int64_t)n - 1;
    ((int64_t *)t->data)[i] = v;
  }
}

static iso_code shape_of(const rule_variable *v, rule_shape *out, iso_error *err) {
  if (v->any_shape || v->leading || v->n_dims > RULE_MAX_RANK)
    return iso_fail(err, ISO_UNSUPPORTED, "variable %s has an open shape", v->name);
  out->rank = v->n_dims;
  for (uint32_t i = 0; i < v->n_dims; i++) {
    if (v->dim[i]->kind != RULE_INT) return iso_fail(err, ISO_UNSUPPORTED, "variable %s has symbolic sizes", v->name);
    out->dim[i] = v->dim[i]->u.i;
  }
  return ISO_OK;
}

iso_code val_sample(val_engine *e, const rule *r, rule_tensor *const *example, iso_rng *rng, unsigned k, rule_tensor **bind,
                    iso_error *err) {
  double lit[16];
  size_t n_lit = 0;
  literals(r->lhs, lit, &n_lit, 16);
  literals(r->rhs, lit, &n_lit, 16);
  for (uint32_t i = 0; i < r->n_vars; i++) bind[i] = NULL;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < r->n_vars && !c; i++) {
    const rule_variable *v = &r->var[i];
    rule_shape sh;
    if ((c = shape_of(v, &sh, err))) break;
    rule_dtype d = v->kind == 'f' ? RULE_F64 : v->kind == 'b' ? RULE_BOOL : v->kind == 'c' ? RULE_C128 : RULE_I64;
    if (v->kind == 'i' && example && example[i] && rule_dtype_is_int(example[i]->dtype)) d = example[i]->dtype;
    if ((c = rule_tensor_new(d, &sh, &bind[i], err))) break;
    if (v->kind == 'f') fill_float(rng, bind[i], k, lit, n_lit, example ? example[i] : NULL);
    if (v->kind == 'c')
      for (int64_t j = 0; j < 2 * bind[i]->numel; j++) ((double *)bind[i]->data)[j] = iso_rng_normal(rng);
    if (v->kind == 'b')
      for (int64_t j = 0; j < bind[i]->numel; j++)
        ((uint8_t *)bind[i]->data)[j] = k % 8 == 6 ? 1 : k % 8 == 7 ? 0 : (uint8_t)iso_rng_below(rng, 2);
  }
  /* Indices last: their range depends on the shapes of what they index. They are zero until then, which every table has. */
  for (uint32_t i = 0; i < r->n_vars && !c; i++) {
    if (r->var[i].kind != 'i') continue;
    int64_t limit = limit_in(e, r->lhs, i, bind);
    const int64_t other = limit_in(e, r->rhs, i, bind);
    if (other < limit) limit = other;
    const rule_variable *v = &r->var[i];
    if (v->low != NULL || v->high != NULL) {
      fill_range(rng, bind[i], v->low != NULL ? v->low->u.i : 0, v->high != NULL ? v->high->u.i : limit, k);
      continue;
    }
    fill_int(rng, bind[i], limit, example ? example[i] : NULL, lit, n_lit, k);
  }
  if (c)
    for (uint32_t i = 0; i < r->n_vars; i++) {
      rule_tensor_unref(bind[i]);
      bind[i] = NULL;
    }
  return c;
}
