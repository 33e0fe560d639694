/* Definitions of functions of one tensor, element by element: roots, exponentials, angles,
 * roundings, activations with and without numbers besides. */
#include <string.h>

#include "validate/ops/ops.h"

enum { TO_FLOAT, KEEPS, FLOAT_ONLY, TO_BOOL }; /* what becomes of integers */
enum { SOFTPLUS, LEAKY_RELU, ELU, THRESHOLD, CELU };

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

sx pt_reciprocal(sc *c, sx x) {
  sc_defined_if(c, sx_not(c, sx_eq(c, x, c->zero)));
  return sx_inv(c, x);
}

static sx f_rsqrt(sc *c, sx x) { return pt_reciprocal(c, f_sqrt(c, x)); }

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
    {"reciprocal", pt_reciprocal, TO_FLOAT},
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

/* A whole number of 10^-decimals, which is `p[0]`: the nearest. */
static sx decimals_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = sx_mul(c, pt_at(c, t->in[0], idx), sx_inv(c, t->p[0]));
  return sx_mul(c, sx_fn(c, F_ROUND, x), t->p[0]);
}

static const pt_value *define_decimals(pt_args *a) {
  enum { MOST = 12 }; /* behind them float64 has no tenths */
  const pt_tensor *x = pt_arg_tensor(a, "self");
  const rule_term *n = pt_arg(a, "decimals");
  if (!x || x->kind != 'f' || !n || n->kind != RULE_INT || n->u.i > MOST || n->u.i < -MOST)
    return NULL;
  pt_tensor *t = pt_like(a->c, x, 'f', decimals_elem);
  if (t) t->p[0] = sx_powi(a->c, sx_int(a->c, 10), -n->u.i);
  return pt_one(a->c, t);
}

static const pt_value *define_unary(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  if (pt_arg(a, "decimals")) return define_decimals(a);
  if (!x || a->schema->n_args != 1) return NULL;
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

static const pt_definition table[] = {
    {"gelu", define_gelu, 0},
    {"bitwise_not", define_bitwise_not, 0},
    {"softplus", define_shaped, SOFTPLUS},
    {"leaky_relu", define_shaped, LEAKY_RELU},
    {"elu", define_shaped, ELU},
    {"threshold", define_shaped, THRESHOLD},
    {"celu", define_shaped, CELU},
};

bool pt_define_unary(const char *full, pt_definition *out) {
  if (strncmp(full, "aten::", 6)) return false;
  if (pt_find(table, sizeof table / sizeof *table, full, out)) return true;
  for (size_t i = 0; i < sizeof unaries / sizeof *unaries; i++)
    if (pt_named(full + 6, unaries[i].name))
      return *out = (pt_definition){full + 6, define_unary, (int)i}, true;
  return false;
}
