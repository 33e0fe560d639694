/* Definitions for the symbolic prover: operators that work element by element, choices and casts.
 */
#include <math.h>
#include <string.h>

#include "validate/ops/ops.h"

/* ---- kinds and broadcasting ---- */

static char wider(char a, char b) {
  return a == 'f' || b == 'f' ? 'f' : a == 'i' || b == 'i' ? 'i' : 'b';
}

static sx kind_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx);
  if (t->in[0]->kind == 'b') return sx_ite(c, x, c->one, c->zero);
  if (t->kind == 'b') return sx_not(c, sx_eq(c, x, c->zero));
  return x;
}

pt_tensor *pt_like(sc *c, const pt_tensor *x, char kind, pt_elem f) {
  pt_tensor *t = x ? pt_new(c, kind, f) : NULL;
  if (!t) return NULL;
  t->lead = x->lead;
  t->rank = x->rank;
  memcpy(t->dim, x->dim, sizeof t->dim);
  t->in[0] = x;
  return t;
}

/* Exact conversions: int to float as numbers, bool to 0 and 1, anything to bool. */
const pt_tensor *pt_kind(sc *c, const pt_tensor *t, char kind) {
  if (!t || t->kind == kind) return t;
  if (t->kind == 'f' && kind == 'i') {
    sc_fail(c, "a cast from float to int");
    return NULL;
  }
  return pt_like(c, t, kind, kind_elem);
}

bool pt_broadcast(sc *c, const pt_tensor *const *t, size_t n, sx *dim, uint32_t *rank,
                  uint64_t *lead) {
  *rank = 0;
  *lead = 0;
  for (size_t i = 0; i < n; i++) {
    if (!t[i]) return false;
    *lead |= t[i]->lead;
    if (t[i]->rank > *rank) *rank = t[i]->rank;
  }
  for (size_t i = 0; i < n && *lead; i++)
    if (t[i]->lead && t[i]->rank != *rank) {
      sc_fail(c, "open leading dimensions against others");
      return false;
    }
  for (uint32_t k = 0; k < *rank; k++) {
    sx d = c->one;
    for (size_t i = 0; i < n; i++) {
      if (k + t[i]->rank < *rank) continue;
      const sx e = t[i]->dim[k + t[i]->rank - *rank];
      bool same = sx_same(c, d, e), one = false;
      if (e == c->one || same) continue;
      if (d == c->one) {
        d = e;
        continue;
      }
      if (!sc_decide(c, sx_eq(c, d, e), &same)) return false;
      if (same) continue;
      if (!sc_decide(c, sx_eq(c, e, c->one), &one)) return false;
      if (one) continue;
      if (!sc_require(c, sx_eq(c, d, c->one))) return false;
      d = e;
    }
    dim[k] = d;
  }
  return !c->failed;
}

static sx expand_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  const uint32_t skip = t->rank - t->in[0]->rank;
  for (uint32_t k = 0; k < t->in[0]->rank; k++) in[k] = t->k[k] ? c->zero : idx[k + skip];
  return pt_at(c, t->in[0], in);
}

const pt_tensor *pt_expand(sc *c, const pt_tensor *t, const sx *dim, uint32_t rank, uint64_t lead) {
  if (!t || t->rank > rank || (t->lead && t->rank != rank)) {
    if (t) sc_fail(c, "an expansion to fewer dimensions");
    return NULL;
  }
  bool same = t->rank == rank && t->lead == lead;
  for (uint32_t k = 0; k < t->rank && same; k++) same = t->dim[k] == dim[k];
  if (same) return t;
  pt_tensor *r = pt_new(c, t->kind, expand_elem);
  if (!r) return NULL;
  r->in[0] = t;
  r->rank = rank;
  r->lead = lead | t->lead;
  memcpy(r->dim, dim, rank * sizeof *dim);
  for (uint32_t k = 0; k < t->rank; k++) {
    const sx d = t->dim[k], e = dim[k + rank - t->rank];
    bool equal = sx_same(c, d, e);
    if (!equal && d != c->one && !sc_decide(c, sx_eq(c, d, e), &equal)) return NULL;
    if (!equal && !sc_require_eq(c, d, c->one)) return NULL;
    r->k[k] = !equal;
  }
  return r;
}

/* Bring several to one shape. */
static bool align(sc *c, const pt_tensor **t, size_t n) {
  sx dim[RULE_MAX_RANK];
  uint32_t rank;
  uint64_t lead;
  if (!pt_broadcast(c, t, n, dim, &rank, &lead)) return false;
  for (size_t i = 0; i < n; i++)
    if (!(t[i] = pt_expand(c, t[i], dim, rank, lead))) return false;
  return true;
}

/* ---- unary ---- */

static sx half(sc *c, sx x) { return sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1), x); }
static sx one_plus(sc *c, sx x) { return sx_add(c, c->one, x); }
static sx one_minus(sc *c, sx x) { return sx_sub(c, c->one, x); }

sx sx_sigmoid(sc *c, sx x) { return sx_inv(c, one_plus(c, sx_exp(c, sx_neg(c, x)))); }
/* 1 - 2 / (1 + e^2x) */
sx sx_tanh(sc *c, sx x) {
  const sx e = sx_exp(c, sx_scale(c, pv_q_int(&c->q, 2), x));
  return one_minus(c, sx_scale(c, pv_q_int(&c->q, 2), sx_inv(c, one_plus(c, e))));
}
sx sx_silu(sc *c, sx x) { return sx_mul(c, x, sx_sigmoid(c, x)); }
/* The constants are ATen's doubles, so that a gelu written out matches; read as the roots that they
 * stand for where literals are. */
sx sx_gelu(sc *c, sx x) {
  return half(
      c, sx_mul(c, x,
                one_plus(c, sx_fn(c, F_ERF, sx_mul(c, x, pt_literal(c, 0.70710678118654752440))))));
}
sx sx_gelu_tanh(sc *c, sx x) {
  const sx cube = sx_mul(c, sx_double(c, 0.044715), sx_powi(c, x, 3));
  return half(c, sx_mul(c, x,
                        one_plus(c, sx_tanh(c, sx_mul(c, pt_literal(c, 0.79788456080286541),
                                                      sx_add(c, x, cube))))));
}
static sx f_neg(sc *c, sx x) { return sx_neg(c, x); }
static sx f_square(sc *c, sx x) { return sx_powi(c, x, 2); }
static sx f_sqrt(sc *c, sx x) {
  sc_defined_if(c, sx_le(c, c->zero, x));
  return sx_sqrt(c, x);
}
static sx f_inv(sc *c, sx x) {
  sc_defined_if(c, sx_not(c, sx_eq(c, x, c->zero)));
  return sx_inv(c, x);
}
static sx f_rsqrt(sc *c, sx x) { return f_inv(c, f_sqrt(c, x)); }
static sx f_log(sc *c, sx x) {
  sc_defined_if(c, sx_lt(c, c->zero, x));
  return sx_log(c, x);
}
static sx f_log1p(sc *c, sx x) { return f_log(c, one_plus(c, x)); }
static sx f_log2(sc *c, sx x) { return sx_mul(c, f_log(c, x), sx_inv(c, sx_log(c, sx_int(c, 2)))); }
static sx f_log10(sc *c, sx x) {
  return sx_mul(c, f_log(c, x), sx_inv(c, sx_log(c, sx_int(c, 10))));
}
static sx f_expm1(sc *c, sx x) { return sx_sub(c, sx_exp(c, x), c->one); }
static sx f_exp2(sc *c, sx x) { return sx_exp(c, sx_mul(c, x, sx_log(c, sx_int(c, 2)))); }
static sx f_relu(sc *c, sx x) { return sx_max(c, x, c->zero); }
static sx clip(sc *c, sx x, int64_t low, int64_t high) {
  return sx_min(c, sx_max(c, x, sx_int(c, low)), sx_int(c, high));
}
static sx f_relu6(sc *c, sx x) { return clip(c, x, 0, 6); }
static sx f_hardsigmoid(sc *c, sx x) {
  return sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, 6), -1),
                  clip(c, sx_add(c, x, sx_int(c, 3)), 0, 6));
}
static sx f_hardswish(sc *c, sx x) { return sx_mul(c, x, f_hardsigmoid(c, x)); }
static sx f_erf(sc *c, sx x) { return sx_fn(c, F_ERF, x); }
static sx f_erfc(sc *c, sx x) { return one_minus(c, f_erf(c, x)); }
static sx f_sin(sc *c, sx x) { return sx_fn(c, F_SIN, x); }
static sx f_cos(sc *c, sx x) { return sx_fn(c, F_COS, x); }
static sx f_tan(sc *c, sx x) { return sx_mul(c, f_sin(c, x), sx_inv(c, f_cos(c, x))); }
static sx f_atan(sc *c, sx x) { return sx_fn(c, F_ATAN, x); }
static sx square_and(sc *c, sx x, int64_t k) { return sx_add(c, sx_powi(c, x, 2), sx_int(c, k)); }
static sx f_asin(sc *c, sx x) {
  sc_defined_if(c, sx_le(c, sx_powi(c, x, 2), c->one)); /* of a sine */
  return sx_fn(c, F_ASIN, x);
}
/* pi / 2 is 2 atan(1) */
static sx f_acos(sc *c, sx x) {
  return sx_sub(c, sx_scale(c, pv_q_int(&c->q, 2), f_atan(c, c->one)), f_asin(c, x));
}
static sx f_asinh(sc *c, sx x) { return sx_log(c, sx_add(c, x, sx_sqrt(c, square_and(c, x, 1)))); }
static sx f_acosh(sc *c, sx x) {
  sc_defined_if(c, sx_le(c, c->one, x));
  return sx_log(c, sx_add(c, x, sx_sqrt(c, square_and(c, x, -1))));
}
static sx f_atanh(sc *c, sx x) {
  sc_defined_if(c, sx_lt(c, sx_powi(c, x, 2), c->one));
  return half(c, sx_log(c, sx_mul(c, one_plus(c, x), sx_inv(c, one_minus(c, x)))));
}
static sx f_sinh(sc *c, sx x) { return half(c, sx_sub(c, sx_exp(c, x), sx_exp(c, sx_neg(c, x)))); }
static sx f_cosh(sc *c, sx x) { return half(c, sx_add(c, sx_exp(c, x), sx_exp(c, sx_neg(c, x)))); }
static sx f_floor(sc *c, sx x) { return sx_fn(c, F_FLOOR, x); }
static sx f_ceil(sc *c, sx x) { return sx_neg(c, sx_fn(c, F_FLOOR, sx_neg(c, x))); }
static sx f_round(sc *c, sx x) { return sx_fn(c, F_ROUND, x); }
static sx f_trunc(sc *c, sx x) { return sx_fn(c, F_TRUNC, x); }
static sx f_frac(sc *c, sx x) { return sx_sub(c, x, f_trunc(c, x)); }
static sx f_sign(sc *c, sx x) {
  return sx_ite(c, sx_lt(c, c->zero, x), c->one,
                sx_ite(c, sx_lt(c, x, c->zero), c->minus_one, c->zero));
}
static sx softplus1(sc *c, sx x) { /* without threshold: log(1 + e^x) */
  return sx_log(c, one_plus(c, sx_exp(c, x)));
}
static sx f_log_sigmoid(sc *c, sx x) { return sx_neg(c, softplus1(c, sx_neg(c, x))); }
static sx f_mish(sc *c, sx x) {
  /* By PyTorch's softplus, which is x from its threshold on: nothing that float64 shows. */
  const sx plus = sx_ite(c, sx_lt(c, sx_int(c, 20), x), x, softplus1(c, x));
  return sx_mul(c, x, sx_tanh(c, plus));
}
static sx f_not(sc *c, sx x) { return sx_not(c, x); }

static sx unary_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return t->unary(c, pt_at(c, t->in[0], idx));
}

const pt_tensor *pt_unary(sc *c, const pt_tensor *x, sx (*f)(sc *c, sx x)) {
  pt_tensor *t = pt_like(c, x, x ? x->kind : 'f', unary_elem);
  if (t) t->unary = f;
  return t;
}

enum { TO_FLOAT, KEEPS, FLOAT_ONLY, TO_BOOL }; /* what becomes of integers */

static const struct {
  const char *name;
  sx (*f)(sc *c, sx x);
  int kinds;
} unaries[] = {
    {"neg", f_neg, KEEPS},
    {"abs", sx_abs, KEEPS},
    {"absolute", sx_abs, KEEPS},
    {"square", f_square, KEEPS},
    {"sqrt", f_sqrt, TO_FLOAT},
    {"rsqrt", f_rsqrt, TO_FLOAT},
    {"reciprocal", f_inv, TO_FLOAT},
    {"exp", sx_exp, TO_FLOAT},
    {"log", f_log, TO_FLOAT},
    {"log1p", f_log1p, TO_FLOAT},
    {"log2", f_log2, TO_FLOAT},
    {"log10", f_log10, TO_FLOAT},
    {"expm1", f_expm1, TO_FLOAT},
    {"exp2", f_exp2, TO_FLOAT},
    {"tanh", sx_tanh, TO_FLOAT},
    {"sigmoid", sx_sigmoid, TO_FLOAT},
    {"silu", sx_silu, FLOAT_ONLY},
    {"relu", f_relu, KEEPS},
    {"relu6", f_relu6, KEEPS},
    {"hardsigmoid", f_hardsigmoid, FLOAT_ONLY},
    {"hardswish", f_hardswish, FLOAT_ONLY},
    {"erf", f_erf, TO_FLOAT},
    {"erfc", f_erfc, TO_FLOAT},
    {"sin", f_sin, TO_FLOAT},
    {"cos", f_cos, TO_FLOAT},
    {"tan", f_tan, TO_FLOAT},
    {"atan", f_atan, TO_FLOAT},
    {"sinh", f_sinh, TO_FLOAT},
    {"cosh", f_cosh, TO_FLOAT},
    {"floor", f_floor, KEEPS},
    {"ceil", f_ceil, KEEPS},
    {"round", f_round, KEEPS},
    {"trunc", f_trunc, KEEPS},
    {"frac", f_frac, FLOAT_ONLY},
    {"sign", f_sign, KEEPS},
    {"sgn", f_sign, KEEPS},
    {"log_sigmoid", f_log_sigmoid, FLOAT_ONLY},
    {"mish", f_mish, FLOAT_ONLY},
    {"logical_not", f_not, TO_BOOL},
    {"asin", f_asin, TO_FLOAT},
    {"acos", f_acos, TO_FLOAT},
    {"asinh", f_asinh, TO_FLOAT},
    {"acosh", f_acosh, TO_FLOAT},
    {"atanh", f_atanh, TO_FLOAT},
    {"arcsin", f_asin, TO_FLOAT},
    {"arccos", f_acos, TO_FLOAT},
    {"arctan", f_atan, TO_FLOAT},
    {"arcsinh", f_asinh, TO_FLOAT},
    {"arccosh", f_acosh, TO_FLOAT},
    {"arctanh", f_atanh, TO_FLOAT},
    {"positive", NULL, KEEPS},
    {"negative", f_neg, KEEPS},
    {"fix", f_trunc, KEEPS},
    {"special_expit", sx_sigmoid, TO_FLOAT},
};

static const pt_value *define_unary(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  if (!x || a->schema->n_args != 1) return NULL; /* round.decimals is another function */
  if (x->kind == 'b' && unaries[which].kinds == KEEPS) return NULL;
  if (x->kind != 'f' && unaries[which].kinds == FLOAT_ONLY) return NULL;
  if (unaries[which].kinds == TO_FLOAT) x = pt_kind(c, x, 'f');
  if (unaries[which].kinds == TO_BOOL) x = pt_kind(c, x, 'b');
  return pt_one(c, unaries[which].f ? pt_unary(c, x, unaries[which].f) : x);
}

static const pt_value *define_bitwise_not(pt_args *a, int which) {
  (void)which;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  return x && x->kind != 'f' ? pt_one(a->c, pt_unary(a->c, x, x->kind == 'b' ? f_not : sx_bits_not))
                             : NULL;
}

static const pt_value *define_gelu(pt_args *a, int which) {
  (void)which;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  if (!x || x->kind != 'f') return NULL;
  if (pt_arg_is(a, "approximate", "tanh")) return pt_one(a->c, pt_unary(a->c, x, sx_gelu_tanh));
  return pt_arg_is(a, "approximate", "none") ? pt_one(a->c, pt_unary(a->c, x, sx_gelu)) : NULL;
}

/* ---- functions of one tensor and numbers ---- */

enum { SOFTPLUS, LEAKY_RELU, ELU, THRESHOLD, CELU };

static sx shaped_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx), *p = t->p;
  sx y;
  switch (t->which) {
  case SOFTPLUS: /* p: beta, threshold */
    y = sx_mul(c, p[0], x);
    return sx_ite(c, sx_lt(c, p[1], y), x, sx_mul(c, softplus1(c, y), sx_inv(c, p[0])));
  case LEAKY_RELU: return sx_ite(c, sx_lt(c, c->zero, x), x, sx_mul(c, p[0], x));
  case ELU: /* alpha, scale, input scale */
    y = sx_mul(c, sx_mul(c, p[0], p[1]), f_expm1(c, sx_mul(c, p[2], x)));
    return sx_ite(c, sx_lt(c, c->zero, x), sx_mul(c, p[1], x), y);
  case THRESHOLD: return sx_ite(c, sx_lt(c, p[0], x), x, p[1]);
  default: /* CELU: alpha */
    y = sx_mul(c, p[0], f_expm1(c, sx_mul(c, x, sx_inv(c, p[0]))));
    return sx_ite(c, sx_lt(c, c->zero, x), x, y);
  }
}

static const pt_value *define_shaped(pt_args *a, int which) {
  static const char *const names[][4] = {{"beta", "threshold"},
                                         {"negative_slope"},
                                         {"alpha", "scale", "input_scale"},
                                         {"threshold", "value"},
                                         {"alpha"}};
  const pt_tensor *x = pt_arg_tensor(a, "self");
  pt_tensor *t = x && x->kind == 'f' ? pt_like(a->c, x, 'f', shaped_elem) : NULL;
  if (!t) return NULL;
  t->which = which;
  for (int i = 0; i < 4 && names[which][i]; i++) {
    char kind;
    t->p[i] = pt_arg_scalar(a, names[which][i], &kind);
    if (kind == 'b') return NULL;
  }
  if (which == SOFTPLUS && t->p[0] == a->c->zero)
    return NULL; /* x or infinite, by the threshold alone */
  return pt_one(a->c, t);
}

/* ---- binary ---- */

enum {
  ADD,
  SUB,
  RSUB,
  MUL,
  DIV,
  MAXIMUM,
  MINIMUM,
  REMAINDER,
  FLOOR_DIV,
  TRUNC_DIV,
  POW,
  ATAN2,
  LOGADDEXP,
  CMP_EQ,
  CMP_NE,
  CMP_LT,
  CMP_LE,
  CMP_GT,
  CMP_GE,
  AND,
  OR,
  XOR,
  BIT_AND,
  BIT_OR,
  BIT_XOR
};

static sx floor_div(sc *c, sx x, sx y, bool whole) {
  if (whole && !sx_top_guard(c, y) && sx_gt0(c, y)) return sx_div(c, x, y);
  return sx_fn(c, F_FLOOR, sx_mul(c, x, f_inv(c, y)));
}

static sx xor (sc * c, sx x, sx y) { return sx_ite(c, x, sx_not(c, y), y); }

    static sx power(sc *c, sx x, sx y) {
  uint32_t q;
  if (sx_is_q(c, y, &q)) return sx_pow(c, x, q);
  /* A positive constant or what is known to be positive: e^(y log x). */
  if (!sx_top_guard(c, x) && sc_has(c, x, S_POS)) return sx_exp(c, sx_mul(c, y, sx_log(c, x)));
  /* Of a root: where it is defined what is under it is not negative. */
  sx m, b;
  uint32_t e;
  if (!sx_top_guard(c, x) && sx_terms(c, x) == 1 && !sx_top_guard(c, y)) {
    sx_term(c, x, 0, &q, &m);
    sx_factor(c, m, 0, &b, &e);
    if (q == PV_ONE_Q && sx_factors(c, m) == 1 && !pv_q_is_int(&c->q, e, &(int64_t){0}) &&
        pv_q_sign(&c->q, e) > 0)
      return sx_fn2(c, F_POW, b, sx_scale(c, e, y));
  }
  return sx_fn2(c, F_POW, x, y);
}

static sx binary(sc *c, int op, sx x, sx y, sx alpha, bool whole) {
  switch (op) {
  case ADD: return sx_add(c, x, sx_mul(c, alpha, y));
  case SUB: return sx_sub(c, x, sx_mul(c, alpha, y));
  case RSUB: return sx_sub(c, y, sx_mul(c, alpha, x));
  case MUL: return sx_mul(c, x, y);
  case DIV: return sx_mul(c, x, f_inv(c, y));
  case MAXIMUM: return sx_max(c, x, y);
  case MINIMUM: return sx_min(c, x, y);
  case FLOOR_DIV: return floor_div(c, x, y, whole);
  case TRUNC_DIV:
    if (whole && sx_ge0(c, x) && !sx_top_guard(c, y) && sx_gt0(c, y)) return sx_div(c, x, y);
    return sx_fn(c, F_TRUNC, sx_mul(c, x, f_inv(c, y)));
  case REMAINDER: return sx_sub(c, x, sx_mul(c, y, floor_div(c, x, y, whole)));
  case POW: return power(c, x, y);
  case ATAN2: return sx_fn2(c, F_ATAN2, x, y);
  case LOGADDEXP: return sx_log(c, sx_add(c, sx_exp(c, x), sx_exp(c, y)));
  case CMP_EQ: return sx_eq(c, x, y);
  case CMP_NE: return sx_not(c, sx_eq(c, x, y));
  case CMP_LT: return sx_lt(c, x, y);
  case CMP_LE: return sx_le(c, x, y);
  case CMP_GT: return sx_lt(c, y, x);
  case CMP_GE: return sx_le(c, y, x);
  case BIT_AND: return whole ? sx_bits_and(c, x, y) : sx_and(c, x, y);
  case BIT_OR: return whole ? sx_bits_or(c, x, y) : sx_or(c, x, y);
  case BIT_XOR: return whole ? sx_bits_xor(c, x, y) : xor(c, x, y);
  case AND: return sx_and(c, x, y);
  case OR: return sx_or(c, x, y);
  default: return xor(c, x, y);
  }
}

static sx binary_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const bool equation = t->which == CMP_EQ || t->which == CMP_NE;
  const sx masked =
      equation && pt_at(c, t->in[1], idx) == c->neginf ? sc_masked_if(c, t->in[0], idx) : 0;
  if (masked) return t->which == CMP_EQ ? masked : sx_not(c, masked);
  return binary(c, t->which, pt_at(c, t->in[0], idx), pt_at(c, t->in[1], idx), t->p[0], t->k[0]);
}

static const pt_tensor *combine(sc *c, int op, const pt_tensor *x, const pt_tensor *y, sx alpha,
                                char alpha_kind) {
  const pt_tensor *t[2] = {x, y};
  if (!align(c, t, 2) || alpha_kind == 'b') return NULL;
  const bool floats = op == DIV || op == ATAN2 || op == LOGADDEXP;
  char kind = floats ? 'f' : wider(t[0]->kind, t[1]->kind), result = kind;
  if (kind == 'b' && op <= POW) return NULL;
  if (op == LOGADDEXP && wider(x->kind, y->kind) != 'f') return NULL;
  if ((op == SUB || op == RSUB) && (x->kind == 'b' || y->kind == 'b')) return NULL;
  if (kind == 'i' && alpha_kind == 'f') return NULL;
  const bool bits = kind == 'i' && op >= BIT_AND;
  if (kind != 'b' && op >= BIT_AND && !bits) return NULL;
  if (op >= AND && op <= XOR) kind = 'b';
  if (op >= CMP_EQ && !bits) {
    result = 'b';
    if (kind == 'b' && op < AND) kind = 'i'; /* compared as 0 and 1 */
  }
  for (int k = 0; k < 2; k++) t[k] = pt_kind(c, t[k], kind);
  pt_tensor *r = pt_like(c, t[0], result, binary_elem);
  if (!r || !t[1]) return NULL;
  r->in[1] = t[1];
  r->which = op;
  r->p[0] = alpha;
  r->k[0] = kind == 'i';
  return r;
}

static const pt_value *define_binary(pt_args *a, int op) {
  sc *c = a->c;
  char alpha_kind = 'i';
  sx alpha = c->one;
  const bool raised = op == POW;
  const pt_tensor *x = pt_arg_tensor(a, "self"),
                  *y = pt_arg_tensor(a, raised ? "exponent" : "other");
  if (!x || !y) return NULL;
  if (pt_arg(a, "alpha")) alpha = pt_arg_scalar(a, "alpha", &alpha_kind);
  if (pt_arg(a, "rounding_mode"))
    op = pt_arg_is(a, "rounding_mode", "floor") ? FLOOR_DIV : TRUNC_DIV;
  if (raised && x->kind == 'i' && y->kind == 'i') {
    uint32_t q;
    if (!y->wrapped || !sx_is_q(c, y->p[0], &q) || pv_q_sign(&c->q, q) < 0) return NULL;
  }
  return pt_one(c, combine(c, op, x, y, alpha, alpha_kind));
}

const pt_tensor *pt_times(sc *c, const pt_tensor *a, const pt_tensor *b) {
  return a && b ? combine(c, MUL, a, b, c->one, 'i') : NULL;
}
const pt_tensor *pt_combine(sc *c, sx p, const pt_tensor *a, sx q, const pt_tensor *b) {
  if (!a || !b) return NULL;
  if (p == c->zero) return pt_times(c, b, pt_scalar_tensor(c, q, 'i'));
  if (p != c->one) a = pt_times(c, a, pt_scalar_tensor(c, p, 'i'));
  return a ? combine(c, ADD, a, b, q, 'i') : NULL;
}

static const pt_value *define_addc(pt_args *a, int divides) {
  sc *c = a->c;
  char kind;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, "tensor1"),
                  *z = pt_arg_tensor(a, "tensor2");
  const sx value = pt_arg_scalar(a, "value", &kind);
  if (!x || !y || !z || kind == 'b' || x->kind != 'f' || y->kind != 'f' || z->kind != 'f')
    return NULL;
  return pt_one(
      c, combine(c, ADD, x, combine(c, divides ? DIV : MUL, y, z, c->one, 'i'), value, kind));
}

static const pt_value *define_lerp(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, "end"),
                  *w = pt_arg_tensor(a, "weight");
  if (!x || !y || !w || x->kind != 'f' || y->kind != 'f' || w->kind == 'b' ||
      (w->kind == 'i' && !w->wrapped))
    return NULL;
  return pt_one(
      c, combine(c, ADD, x, pt_times(c, w, combine(c, SUB, y, x, c->one, 'i')), c->one, 'i'));
}

/* A bound: none where it is infinite on its own side. */
static const pt_tensor *bound(pt_args *a, const char *name, double open) {
  const rule_term *t = pt_arg(a, name);
  if (!t || (t->kind == RULE_FLOAT && t->u.f == open)) return NULL;
  return pt_eval_tensor(a->c, t);
}

static const pt_value *define_clamp(pt_args *a, int which) {
  static const char *const names[][2] = {{"min", "max"}, {"min_val", "max_val"}};
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *low = bound(a, names[which][0], -INFINITY),
                  *high = bound(a, names[which][1], INFINITY);
  if (!x || x->kind == 'b' || (which && x->kind != 'f') || c->failed)
    return NULL; /* hardtanh keeps integers */
  if (low && low->kind == 'b') return NULL;
  if (low) x = combine(c, MAXIMUM, x, low, c->one, 'i');
  if (high && high->kind == 'b') return NULL;
  if (high && x) x = combine(c, MINIMUM, x, high, c->one, 'i');
  return pt_one(c, x);
}

/* ---- choices ---- */

enum { WHERE, MASKED_FILL };

static sx where_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_ite(c, pt_at(c, t->in[0], idx), pt_at(c, t->in[1], idx), pt_at(c, t->in[2], idx));
}

static const pt_value *define_where(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *t[3] = {pt_arg_tensor(a, which == WHERE ? "condition" : "mask"),
                           pt_arg_tensor(a, which == WHERE ? "self" : "value"),
                           pt_arg_tensor(a, which == WHERE ? "other" : "self")};
  if (!t[0] || !t[1] || !t[2] || t[0]->kind != 'b') return NULL;
  const char kind = which == WHERE ? wider(t[1]->kind, t[2]->kind) : t[2]->kind;
  if (which == MASKED_FILL && (t[1]->rank || t[1]->lead || wider(kind, t[1]->kind) != kind))
    return NULL;
  if (!align(c, t, 3)) return NULL;
  for (int k = 1; k < 3; k++) t[k] = pt_kind(c, t[k], kind);
  pt_tensor *r = pt_like(c, t[0], kind, where_elem);
  if (!r || !t[1] || !t[2]) return NULL;
  r->in[1] = t[1];
  r->in[2] = t[2];
  return pt_one(c, r);
}

/* ---- casts and identities ---- */

enum { SAME, CAST, CAST_LIKE, COPY };

/* Integers up to this are exact in the dtype. */
static int64_t exact_up_to(rule_dtype d) {
  switch (d) {
  case RULE_F64: return INT64_MAX; /* up to 2^53; taken as the real numbers themselves */
  case RULE_F32: return 1 << 24;
  case RULE_F16: return 1 << 11;
  case RULE_BF16: return 1 << 8;
  case RULE_F8E4M3FN: return 1 << 4;
  default: return 1 << 3;
  }
}

static sx round_end(sc *c, sx x, const void *ctx) {
  const rule_dtype d = *(const rule_dtype *)ctx;
  const int64_t most = exact_up_to(d);
  if (most == INT64_MAX) return x;
  if (sx_ge0(c, sx_sub(c, sx_int(c, most), x)) && sx_ge0(c, sx_add(c, sx_int(c, most), x)))
    return x;
  if (sc_op(c, x) == X_MAX) { /* rounding does not fall */
    sx r = c->neginf;
    for (uint32_t i = 0, n = sc_at(c, x)->n; i < n && !c->failed; i++)
      r = sx_max(c, r, round_end(c, sc_word(c, x, i), ctx));
    return r;
  }
  return sc_node(c, X_FN,
                 (uint32_t[2]){d == RULE_F32        ? F_CAST_F32
                               : d == RULE_F16      ? F_CAST_F16
                               : d == RULE_BF16     ? F_CAST_BF16
                               : d == RULE_F8E4M3FN ? F_CAST_F8E4M3FN
                                                    : F_CAST_F8E5M2,
                               x},
                 2);
}

static sx cast_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx);
  if (t->kind == 'i') return sx_fn(c, F_TRUNC, x);
  const rule_dtype d = (rule_dtype)t->which;
  return sx_lift(c, x, round_end, &d);
}

const pt_tensor *pt_cast(sc *c, const pt_tensor *x, rule_dtype d) {
  pt_tensor *t;
  if (!x || rule_dtype_is_complex(d)) return NULL;
  if (d == RULE_BOOL) return pt_kind(c, x, 'b');
  if (rule_dtype_is_float(d)) {
    if (x->kind != 'i') return pt_kind(c, x, 'f');
    t = pt_like(c, x, 'f', cast_elem);
  } else if (x->kind == 'f') {
    if (d != RULE_I64) return NULL;
    t = pt_like(c, x, 'i', cast_elem);
  } else {
    return pt_kind(c, x, 'i');
  }
  if (t) t->which = (int)d;
  return t;
}

static const pt_value *define_cast(pt_args *a, int which) {
  sc *c = a->c;
  rule_dtype d;
  const pt_tensor *x = pt_arg_tensor(a, which == SAME && !pt_arg(a, "self") ? "input" : "self"), *o;
  if (!x) return NULL;
  switch (which) {
  case CAST: return pt_one(c, pt_arg_dtype(a, "dtype", &d) ? pt_cast(c, x, d) : x);
  case CAST_LIKE:
    o = pt_arg_tensor(a, "other");
    if (!o || o->kind == 'i' || (o->kind == 'f' && x->kind == 'i'))
      return NULL; /* the width is not known */
    return pt_one(c, pt_kind(c, x, o->kind));
  case COPY:
    o = pt_arg_tensor(a, "src");
    if (!o || x->kind == 'i' || (x->kind == 'f' && o->kind == 'i')) return NULL;
    return pt_one(c, pt_kind(c, pt_expand(c, o, x->dim, x->rank, x->lead), x->kind));
  default: return pt_one(c, x);
  }
}

static const pt_value *define_dropout(pt_args *a, int which) {
  (void)which;
  char kind;
  if (pt_arg_flag(a, "train", true) && pt_arg_scalar(a, "p", &kind) != a->c->zero) {
    sc_fail(a->c, "dropout in training");
    return NULL;
  }
  return pt_one(a->c, pt_arg_tensor(a, "input"));
}

static const struct {
  const char *name;
  int op;
} binaries[] = {
    {"add", ADD},
    {"sub", SUB},
    {"subtract", SUB},
    {"rsub", RSUB},
    {"mul", MUL},
    {"multiply", MUL},
    {"div", DIV},
    {"divide", DIV},
    {"true_divide", DIV},
    {"maximum", MAXIMUM},
    {"minimum", MINIMUM},
    {"fmax", MAXIMUM},
    {"fmin", MINIMUM},
    {"remainder", REMAINDER},
    {"floor_divide", FLOOR_DIV},
    {"pow", POW},
    {"atan2", ATAN2},
    {"arctan2", ATAN2},
    {"logaddexp", LOGADDEXP},
    {"eq", CMP_EQ},
    {"ne", CMP_NE},
    {"lt", CMP_LT},
    {"le", CMP_LE},
    {"gt", CMP_GT},
    {"ge", CMP_GE},
    {"less", CMP_LT},
    {"less_equal", CMP_LE},
    {"greater", CMP_GT},
    {"greater_equal", CMP_GE},
    {"not_equal", CMP_NE},
    {"logical_and", AND},
    {"logical_or", OR},
    {"logical_xor", XOR},
    {"bitwise_and", BIT_AND},
    {"bitwise_or", BIT_OR},
    {"bitwise_xor", BIT_XOR},
    {"__and__", BIT_AND},
    {"__or__", BIT_OR},
    {"__xor__", BIT_XOR},
};

static const pt_definition table[] = {
    {"gelu", define_gelu, 0},
    {"bitwise_not", define_bitwise_not, 0},
    {"softplus", define_shaped, SOFTPLUS},
    {"leaky_relu", define_shaped, LEAKY_RELU},
    {"elu", define_shaped, ELU},
    {"threshold", define_shaped, THRESHOLD},
    {"celu", define_shaped, CELU},
    {"addcmul", define_addc, 0},
    {"addcdiv", define_addc, 1},
    {"lerp", define_lerp, 0},
    {"clamp", define_clamp, 0},
    {"clip", define_clamp, 0},
    {"clamp_min", define_clamp, 0},
    {"clamp_max", define_clamp, 0},
    {"hardtanh", define_clamp, 1},
    {"where", define_where, WHERE},
    {"masked_fill", define_where, MASKED_FILL},
    {"to", define_cast, CAST},
    {"_to_copy", define_cast, CAST},
    {"type_as", define_cast, CAST_LIKE},
    {"copy", define_cast, COPY},
    {"alias", define_cast, SAME},
    {"detach", define_cast, SAME},
    {"clone", define_cast, SAME},
    {"contiguous", define_cast, SAME},
    {"lift_fresh_copy", define_cast, SAME},
    {"lift_fresh", define_cast, SAME},
    {"dropout", define_dropout, 0},
};

/* The dispatcher's name without namespace and overload. */
bool pt_named(const char *full, const char *base) {
  const size_t n = strlen(base);
  return !strncmp(full, base, n) && (full[n] == 0 || full[n] == '.');
}

bool pt_find(const pt_definition *entry, size_t n, const char *name, pt_definition *out) {
  if (strncmp(name, "aten::", 6)) return false;
  for (size_t i = 0; i < n; i++)
    if (pt_named(name + 6, entry[i].name)) return *out = entry[i], true;
  return false;
}

bool pt_define_elementwise(const char *full, pt_definition *out) {
  if (strncmp(full, "aten::", 6)) return false;
  const char *name = full + 6;
  if (!strcmp(name, "to.other")) return *out = (pt_definition){name, define_cast, CAST_LIKE}, true;
  if (pt_find(table, sizeof table / sizeof *table, full, out)) return true;
  for (size_t i = 0; i < sizeof unaries / sizeof *unaries; i++)
    if (pt_named(name, unaries[i].name))
      return *out = (pt_definition){name, define_unary, (int)i}, true;
  for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
    if (pt_named(name, binaries[i].name))
      return *out = (pt_definition){name, define_binary, binaries[i].op}, true;
  return false;
}
