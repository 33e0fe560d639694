/* Notes on an evaluation: magnitudes, values outside a domain, and how far rounding could
 * have moved it.
 *
 * The noise model is that of stochastic arithmetic (Vignes, CESTAC; Parker, Monte Carlo
 * arithmetic): an operator that rounds computes f(x (1 + d)) (1 + e) with |d|, |e| <= 2^-50, and
 * drawing d and e anew shows how far the result could have been elsewhere. Both are there because
 * library functions are mixed forward-backward stable: a sum that cancels shows through d, a
 * saturated sigmoid through e. Operators that move, select or compare values round nothing. Nor do
 * polynomials and quotients of small dyadic numbers whose results are small dyadic numbers, nor
 * single sums, products and quotients without a residual: without that, thresholds and ties at 0.5
 * behind a sum would never count. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/names.h"
#include "rules/operators.h"
#include "validate/branch/choice_int.h"

enum { EXACT, GRID, ROUNDS };

static const double unit = 0x1p-50; /* 4 eps: libtorch's functions stay within 2 ulp */
static const double poor = 0x1p-34; /* series and continued fractions, and what interpolates */
static const double huge_value = 1e30;

/* ---- operators by how they compute ---- */

/* The name without namespace and overload, in `buf`. */
const char *val_base_name(const char *op, char buf[64]) {
  const char *p = strstr(op, "::");
  p = p != NULL ? p + 2 : op;
  size_t n = strcspn(p, ".");
  if (n > 63) n = 63;
  memcpy(buf, p, n);
  buf[n] = '\0';
  return buf;
}

/* ---- the grid of numbers on which polynomials do not round ---- */

static bool on_grid(double v) { return fabs(v) <= 8192 && ldexp(v, 10) == nearbyint(ldexp(v, 10)); }

static bool literals_on_grid(const rule_term *t) {
  if (t->kind == RULE_FLOAT) return on_grid(t->u.f);
  if (t->kind == RULE_INT) return on_grid((double)t->u.i);
  for (uint32_t i = 0; i < t->n; i++)
    if (!literals_on_grid(t->child[i])) return false;
  return true;
}

static bool wide(const rule_tensor *t) { return t->dtype == RULE_F64 || t->dtype == RULE_C128; }
static int64_t n_numbers(const rule_tensor *t) {
  return t->dtype == RULE_C128 ? 2 * t->numel : t->numel;
}

static bool tensor_on_grid(const rule_tensor *t) {
  const double *x = t->data;
  const int64_t n = wide(t) ? n_numbers(t) : 0;
  for (int64_t i = 0; i < n; i++)
    if (!on_grid(x[i])) return false;
  return true;
}

/* ---- blurring ---- */

/* Never by less than half of `by`: a small move could be rounded away where a large number absorbs
 * it. */
static double shaken(const val_probe *p, double v, double by) {
  const double u = p->lean ? p->lean : iso_rng_uniform(p->noise) * 2 - 1;
  return v * (1 + by * (u < 0 ? u / 2 - 0.5 : u / 2 + 0.5));
}

typedef struct shake {
  double by;
  bool keep_grid;   /* short numbers stay */
  bool positive_op; /* a zero is a small positive number */
} shake;

/* `keep` (may be NULL): elements that are exact. */
static iso_code shaken_copy(const val_probe *p, const rule_tensor *t, const shake *how,
                            const bool *keep, rule_tensor **out, iso_error *err) {
  iso_code code = rule_tensor_new(t->dtype, &t->shape, out, err);
  if (code != ISO_OK) return code;
  const double *x = t->data;
  double *y = (*out)->data;
  for (int64_t i = 0, n = n_numbers(t); i < n; i++)
    if (keep && keep[i]) y[i] = x[i];
    else if (x[i] == 0 && how->positive_op) y[i] = 1e-300 * iso_rng_uniform(p->noise);
    else
      y[i] =
          !(fabs(x[i]) < (p->blur_all ? DBL_MAX : huge_value)) || (how->keep_grid && on_grid(x[i]))
              ? x[i]
              : shaken(p, x[i], how->by); /* masks stay */
  return ISO_OK;
}

/* ---- elements on which nothing rounds ---- */

/* The operator's step where its operands and its result are doubles that can be looked at one by
 * one. */
static val_step looked_at(const rule_term *call, rule_tensor *const *bind, size_t n,
                          const rule_tensor *out, val_operands *o) {
  const val_step step = val_step_of(call);
  if (step == VAL_NO_STEP || n == 0 || n > 2 || !val_operands_of(call, bind, n, out, o))
    return VAL_NO_STEP;
  for (size_t i = 0; i < n; i++)
    if (bind[i]->dtype != RULE_F64) return VAL_NO_STEP;
  return step <= VAL_DIV && !o->two ? VAL_NO_STEP : step;
}

/* Where nothing rounds: of the result, and of both operands (each may be NULL). */
static bool mark_exact(val_step step, const val_operands *o, bool *result, bool *const operand[2]) {
  bool any = false;
  for (int64_t i = 0; i < o->numel; i++) {
    if (!val_step_exact(step, val_operand(o, 0, i), o->two ? val_operand(o, 1, i) : 0)) continue;
    any = true;
    if (result) result[i] = true;
    for (int k = 0; k < 2; k++)
      if (operand && operand[k]) operand[k][val_operand_place(o, k, i)] = true;
  }
  return any;
}

/* Elements of `bind` that are not to be moved: NULL where there are none. Owns: the caller frees
 * both. */
static iso_code exact_operands(const rule_term *call, rule_tensor *const *bind, size_t n,
                               bool *keep[2], iso_error *err) {
  val_operands o;
  const rule_tensor *largest = n == 2 && bind[1]->numel > bind[0]->numel ? bind[1]
                               : n                                       ? bind[0]
                                                                         : NULL;
  /* Operands that both are spread are left as they are: none of them has the result's shape. */
  const val_step step = largest ? looked_at(call, bind, n, largest, &o) : VAL_NO_STEP;
  keep[0] = keep[1] = NULL;
  if (step == VAL_NO_STEP) return ISO_OK;
  bool *by_operand[2] = {NULL, NULL};
  for (size_t i = 0; i < n; i++)
    if (!(keep[i] = calloc((size_t)bind[i]->numel + 1, 1))) {
      free(keep[0]);
      keep[0] = NULL;
      return iso_fail(err, ISO_NOMEM, "out of memory");
    }
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < n && o.tensor[k] && !by_operand[k]; i++)
      if (o.tensor[k] == bind[i]) by_operand[k] = keep[i];
  mark_exact(step, &o, NULL, by_operand);
  return ISO_OK;
}

/* A mask that attention adds to its scores is rounded with each of them: where it is one number for
 * a row, or for all, moving that number moves the row as a whole, which softmax does not see.
 * Returns: in `*out` the mask spread to the scores' size, NULL where it has it. */
static iso_code spread_mask(const char *name, const rule_term *call, rule_tensor *const *bind,
                            size_t *which, rule_tensor **out, iso_error *err) {
  enum { QUERY, KEY, MASK = 3 };
  *out = NULL;
  if (strcmp(name, "scaled_dot_product_attention") != 0 || call->n <= MASK) return ISO_OK;
  for (int k = 0; k <= MASK; k++)
    if (call->child[k]->kind != RULE_VAR) return ISO_OK;
  const rule_tensor *q = bind[call->child[QUERY]->u.i], *k = bind[call->child[KEY]->u.i],
                    *m = bind[call->child[MASK]->u.i];
  const uint32_t r = m->shape.rank;
  if (m->dtype != RULE_F64 || r < 2 || q->shape.rank < 2 || k->shape.rank < 2) return ISO_OK;
  rule_shape shape = m->shape;
  shape.dim[r - 2] = q->shape.dim[q->shape.rank - 2];
  shape.dim[r - 1] = k->shape.dim[k->shape.rank - 2];
  const int64_t rows = m->shape.dim[r - 2], columns = m->shape.dim[r - 1],
                all_rows = shape.dim[r - 2], all_columns = shape.dim[r - 1];
  if (rule_shape_eq(&shape, &m->shape) || (rows != 1 && rows != all_rows) ||
      (columns != 1 && columns != all_columns))
    return ISO_OK;
  iso_code c = rule_tensor_new(RULE_F64, &shape, out, err);
  for (int64_t i = 0; !c && i < (*out)->numel; i++) {
    const int64_t column = i % all_columns, row = i / all_columns % all_rows,
                  block = i / all_columns / all_rows;
    rule_tensor_set(*out, i,
                    rule_tensor_get(m, (block * rows + (rows == 1 ? 0 : row)) * columns +
                                           (columns == 1 ? 0 : column)));
  }
  *which = (size_t)call->child[MASK]->u.i;
  return c;
}

iso_code val_probe_blur(val_probe *p, const rule_term *call, rule_tensor **bind, size_t n,
                        iso_error *err) {
  char name[64];
  val_base_name(call->u.s, name);
  const rule_operator *o = rule_operator_of(call->u.s);
  p->how = o->exact ? EXACT : ROUNDS;
  if (p->how == ROUNDS && o->algebraic && literals_on_grid(call)) {
    p->how = GRID;
    for (size_t i = 0; i < n; i++)
      if (!tensor_on_grid(bind[i])) p->how = ROUNDS;
  }
  bool *keep[2] = {NULL, NULL};
  iso_code code = p->how == ROUNDS ? exact_operands(call, bind, n, keep, err) : ISO_OK;
  for (size_t i = n; i-- > 0;) rule_tensor_ref(bind[i]);
  rule_tensor *mask = NULL;
  size_t at = 0;
  if (!code && p->how == ROUNDS) code = spread_mask(name, call, bind, &at, &mask, err);
  if (!code && mask) {
    rule_tensor_unref(bind[at]);
    bind[at] = mask;
  }
  for (size_t i = 0; i < n && p->how == ROUNDS && code == ISO_OK; i++) {
    rule_tensor *was = bind[i];
    if (!wide(was) || was->numel == 0) continue;
    rule_tensor *now = NULL;
    code = shaken_copy(p, was, &(shake){.by = unit}, i < 2 ? keep[i] : NULL, &now, err);
    for (size_t j = i; j < n && code == ISO_OK; j++)
      if (bind[j] == was) { /* one tensor given twice stays one */
        rule_tensor_unref(was);
        bind[j] = j == i ? now : rule_tensor_ref(now);
      }
  }
  free(keep[0]);
  free(keep[1]);
  return code;
}

void val_probe_unblur(rule_tensor **bind, size_t n) {
  for (size_t i = 0; i < n; i++) {
    rule_tensor_unref(bind[i]);
    bind[i] = NULL;
  }
}

/* ---- looking ---- */

static bool any_number(const rule_tensor *t, bool nan) {
  const double *x = t->data;
  const int64_t n = wide(t) ? n_numbers(t) : 0;
  for (int64_t i = 0; i < n; i++)
    if (nan ? isnan(x[i]) : isinf(x[i])) return true;
  return false;
}

static bool infinite_literal(const rule_term *t) {
  if (t->kind == RULE_FLOAT) return isinf(t->u.f);
  for (uint32_t i = 0; i < t->n; i++)
    if (infinite_literal(t->child[i])) return true;
  return false;
}

/* The largest absolute value among the literals of a call. */
static double largest_literal(const rule_term *t) {
  double m = t->kind == RULE_FLOAT ? fabs(t->u.f) : t->kind == RULE_INT ? fabs((double)t->u.i) : 0;
  for (uint32_t i = 0; i < t->n; i++)
    m = fmax(m, t->child[i]->kind == RULE_OP ? 0 : largest_literal(t->child[i]));
  return m;
}

static double largest_number(const rule_tensor *t) {
  double m = 0;
  for (int64_t i = 0, n = wide(t) ? n_numbers(t) : t->numel; i < n; i++) {
    const double a =
        fabs(wide(t) ? ((const double *)t->data)[i] : (double)rule_tensor_get_int(t, i));
    if (a > m && a <= DBL_MAX) m = a;
  }
  return m;
}

/* Integers that no float64 holds, where one takes them: over the reals nothing is rounded. */
static bool loses_digits(rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  for (size_t i = 0; i < n && rule_dtype_is_float(out->dtype); i++)
    if (bind[i]->dtype == RULE_I64 && largest_number(bind[i]) > 0x1p53) return true;
  return false;
}

/* Integers that may have left 64 bits, by a bound on their absolute value: a rule speaks of numbers
 * that do not wrap. */
static bool may_wrap(const rule_term *call, rule_tensor *const *bind, size_t n,
                     const rule_tensor *out) {
  const rule_operator *o = rule_operator_of(call->u.s);
  const bool adds = o->arithmetic >= RULE_ARITHMETIC_ADD && o->arithmetic <= RULE_ARITHMETIC_RSUB;
  if (out->dtype != RULE_I64) return false;
  const double limit = 0x1p62, lit = largest_literal(call);
  double sum = lit, product = fmax(lit, 1), terms = 1;
  for (size_t i = 0; i < n; i++) {
    if (bind[i]->dtype != RULE_I64) continue;
    const double a = largest_number(bind[i]);
    sum += a * (adds ? fmax(lit, 1) : 1);
    product *= fmax(a, 1);
    terms = fmax(terms, (double)bind[i]->numel);
  }
  if (adds) return sum > limit;
  switch (o->arithmetic) {
  case RULE_ARITHMETIC_NEG:
  case RULE_ARITHMETIC_ABS: return sum >= 2 * limit; /* the least integer has no opposite */
  case RULE_ARITHMETIC_MUL: return product > limit;
  case RULE_ARITHMETIC_SQUARE: return product * product > limit;
  default: break;
  }
  switch (o->growth) {
  case RULE_GROWS_PRODUCT: return product > limit;
  case RULE_GROWS_TERMS: return sum * terms > limit;
  case RULE_GROWS_CONTRACTION: return product * terms > limit;
  case RULE_GROWS_SHIFT: return lit > 62 || sum * exp2(lit) > limit;
  case RULE_GROWS_POWER:
    return pow(fmax(n && bind[0]->dtype == RULE_I64 ? largest_number(bind[0]) : lit, 1),
               rule_is_overload(call->u.s, OP_POW) ? sum : terms) > limit;
  default: return false;
  }
}

static bool nan_literal(const rule_term *t) {
  if (t->kind == RULE_FLOAT) return isnan(t->u.f);
  for (uint32_t i = 0; i < t->n; i++)
    if (nan_literal(t->child[i])) return true;
  return false;
}

static bool has_duplicates(const rule_tensor *t) {
  if (t->numel > 4096) return false;
  for (int64_t i = 1; i < t->numel; i++)
    for (int64_t j = 0; j < i; j++)
      if (rule_tensor_get(t, i) == rule_tensor_get(t, j)) return true;
  return false;
}

bool val_poles(const rule_term *t, bool below, bool *at) {
  const rule_operator *o = t->kind == RULE_OP ? rule_operator_of(t->u.s) : NULL;
  bool any = t->kind == RULE_FLOAT && !isfinite(t->u.f);
  if (t->kind == RULE_VAR) at[t->u.i] |= below;
  if (o && (o->pole || o->makes_undefined)) any = below = true;
  for (uint32_t i = 0; i < t->n; i++) any |= val_poles(t->child[i], below, at);
  return any;
}

static bool any_zero(const rule_tensor *t) {
  const double *x = t->data;
  for (int64_t i = 0, n = wide(t) ? n_numbers(t) : 0; i < n; i++)
    if (x[i] == 0) return true;
  return false;
}

/* At a pole, and not past the largest number. */
static bool at_pole(const rule_term *call, rule_tensor *const *bind, size_t n) {
  bool zero = false;
  if (!rule_operator_of(call->u.s)->pole) return false;
  for (size_t i = 0; i < n; i++) {
    if (largest_number(bind[i]) >= huge_value) return false;
    zero |= any_zero(bind[i]);
  }
  return zero;
}

/* Which of the results' numbers nobody gave: a NaN or an infinity that the operator made itself. */
static void note_undefined(val_probe *p, const rule_term *call, rule_tensor *const *bind, size_t n,
                           bool nan, bool inf) {
  const bool first = !p->undefined && !p->far;
  if (nan && !rule_operator_of(call->u.s)->unspecified && !nan_literal(call)) {
    bool given = false;
    for (size_t i = 0; i < n; i++) given |= any_number(bind[i], true);
    if (!given) p->undefined = true, p->pole |= first;
  }
  if (inf && !infinite_literal(call)) {
    bool given = false;
    for (size_t i = 0; i < n; i++) given |= any_number(bind[i], false);
    if (!given) p->undefined = true, p->pole |= first && at_pole(call, bind, n);
  }
}

/* Not a mask that was given: an operator that computes, on smaller numbers. */
static bool made_huge(const rule_term *call, rule_tensor *const *bind, size_t n) {
  if (rule_operator_of(call->u.s)->exact || largest_literal(call) >= huge_value) return false;
  for (size_t i = 0; i < n; i++)
    if (largest_number(bind[i]) >= huge_value) return false;
  return true;
}

static void shake_absolutely(const val_probe *p, rule_tensor *out, const rule_tensor *in) {
  double *y = out->data;
  const double *x = in->data;
  if (out->dtype != RULE_F64 || in->dtype != RULE_F64 || in->numel != out->numel) return;
  for (int64_t i = 0; i < out->numel; i++)
    if (fabs(x[i]) < huge_value)
      y[i] += unit * fabs(x[i]) * (p->lean ? p->lean : iso_rng_uniform(p->noise) * 2 - 1);
}

iso_code val_probe_note(val_probe *p, const rule_term *call, rule_tensor *const *bind, size_t n,
                        rule_tensor **out, size_t n_out, iso_error *err) {
  bool nan = false, inf = false;
  p->n_run++;
  for (size_t k = 0; k < n_out; k++) {
    if (out[k]->numel > p->largest) p->largest = out[k]->numel;
    p->all += out[k]->numel;
  }
  if (p->most > 0 && p->all > p->most) {
    for (size_t k = 0; k < n_out; k++) rule_tensor_unref(out[k]);
    return iso_fail(err, ISO_UNSUPPORTED, "the results have too many elements");
  }
  for (size_t k = 0; k < n_out && p->unbounded && !p->undefined; k++) {
    p->wraps = may_wrap(call, bind, n, out[k]);
    p->undefined = p->wraps || loses_digits(bind, n, out[k]);
  }
  for (size_t k = 0; k < n_out; k++) {
    const double *x = out[k]->data;
    double m = p->magnitude;
    bool wild = false, huge = false;
    for (int64_t i = 0, count = wide(out[k]) ? n_numbers(out[k]) : 0; i < count; i++) {
      const double a = fabs(x[i]);
      if (a > m && a < huge_value) m = a;
      wild |= !(a <= DBL_MAX);
      huge |= a >= huge_value && a <= DBL_MAX;
    }
    p->magnitude = m;
    if (huge && !p->far) p->far = made_huge(call, bind, n);
    if (wild) nan |= any_number(out[k], true), inf |= any_number(out[k], false);
  }
  if (nan || inf) note_undefined(p, call, bind, n, nan, inf);
  if (p->noise == NULL) return ISO_OK;
  const rule_operator *about = rule_operator_of(call->u.s);
  for (size_t i = 0; i < n && val_finds_places(call); i++)
    if (has_duplicates(bind[i])) p->even = true, p->tied |= val_leaves_ties_open(call, out, n_out);
  iso_code code = ISO_OK;
  for (size_t k = 0; k < n_out && p->how != EXACT && code == ISO_OK; k++) {
    if (!wide(out[k]) || out[k]->numel == 0) continue;
    rule_tensor *now = NULL;
    val_operands o;
    const val_step step = p->how == ROUNDS ? looked_at(call, bind, n, out[k], &o) : VAL_NO_STEP;
    bool *keep = step ? calloc((size_t)out[k]->numel + 1, 1) : NULL;
    if (step && !keep) code = iso_fail(err, ISO_NOMEM, "out of memory");
    else if (step) mark_exact(step, &o, keep, NULL);
    const shake how = {about->series ? poor : unit, p->how == GRID, about->positive};
    if (!code) code = shaken_copy(p, out[k], &how, keep, &now, err);
    free(keep);
    if (code != ISO_OK) break;
    if (n && about->cancels) shake_absolutely(p, now, bind[0]);
    rule_tensor_unref(out[k]);
    out[k] = now;
  }
  if (code != ISO_OK)
    for (size_t k = 0; k < n_out; k++) rule_tensor_unref(out[k]);
  return code;
}
