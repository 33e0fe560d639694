/* Operators on tensors of intervals, element by element: arithmetic with scaled operands,
 * activations with attributes, comparisons. */
#include "validate/precise/ops_int.h"

#ifdef VAL_HAS_MPFR
#include <string.h>

const vp_tensor *vp_unary(vp *v, const vp_call *k, vn_unary f, int cost) {
  const vp_tensor *x =
      k->call->n && k->call->child[0]->kind == RULE_VAR ? k->in[k->call->child[0]->u.i] : NULL;
  vp_tensor *out = x ? vp_result(v, k) : NULL;
  vn *a = vp_new_number(v);
  for (int64_t i = 0; out && a && i < out->n && vp_go(v, cost); i++) {
    vp_element(v, x, i, a);
    f(v, &out->x[i], a);
  }
  return out;
}

const vp_tensor *vp_binary(vp *v, const vp_call *k, const rule_term *left, const rule_term *right,
                           vn_binary f, int cost) {
  vp_tensor *out = vp_result(v, k);
  vp_operand a, b;
  vn *x = vp_new_number(v), *y = vp_new_number(v);
  if (!out || !x || !y || !vp_operand_of(v, k, left, &out->shape, &a) ||
      !vp_operand_of(v, k, right, &out->shape, &b))
    return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, cost); i++) {
    vp_operand_get(v, &a, &out->shape, i, x);
    vp_operand_get(v, &b, &out->shape, i, y);
    f(v, &out->x[i], x, y);
  }
  return out;
}

/* a + factor * b, the factor an argument of the call. */
static const vp_tensor *scaled_sum(vp *v, const vp_call *k, const rule_term *left,
                                   const rule_term *right, const rule_term *factor, double sign) {
  vp_tensor *out = vp_result(v, k);
  vp_operand a, b;
  vn *x = vp_new_number(v), *y = vp_new_number(v), *by = NULL;
  if (!out || !x || !y || !vp_operand_of(v, k, left, &out->shape, &a) ||
      !vp_operand_of(v, k, right, &out->shape, &b))
    return NULL;
  if (vp_is_given(factor) && !vp_literal(v, factor, &by)) return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 2); i++) {
    vp_operand_get(v, &a, &out->shape, i, x);
    vp_operand_get(v, &b, &out->shape, i, y);
    if (by) vn_mul(v, y, y, by);
    if (sign < 0) vn_sub(v, &out->x[i], x, y);
    else vn_add(v, &out->x[i], x, y);
  }
  return out;
}

const vp_tensor *vp_sum_or_difference(vp *v, const vp_call *k) {
  const rule_term *a = vp_arg(k, "self"), *b = vp_arg(k, "other"), *alpha = vp_arg(k, "alpha");
  if (strcmp(k->name, "rsub") == 0) return scaled_sum(v, k, b, a, alpha, -1);
  return scaled_sum(v, k, a, b, alpha, strcmp(k->name, "add") == 0 ? 1 : -1);
}

const vp_tensor *vp_quotient(vp *v, const vp_call *k) {
  const rule_term *mode = vp_arg(k, "rounding_mode");
  int cost = 2;
  const vn_binary f = vn_binary_find(
      vp_is_given(mode) && strcmp(mode->u.s, "floor") == 0 ? "floor_divide" : "div", &cost);
  if (vp_is_given(mode) && strcmp(mode->u.s, "floor") != 0) return NULL;
  return vp_binary(v, k, vp_arg(k, "self"), vp_arg(k, "other"), f, cost);
}

const vp_tensor *vp_gelu(vp *v, const vp_call *k) {
  const rule_term *how = vp_arg(k, "approximate");
  const bool by_tanh = how && how->kind == RULE_STRING && strcmp(how->u.s, "tanh") == 0;
  const vp_tensor *in = vp_arg_tensor(k, "self");
  vp_tensor *out = in ? vp_result(v, k) : NULL;
  vn *x = vp_new_number(v), *y = vp_new_number(v), *c = vp_new_number(v), *two = vp_new_number(v);
  if (!out || !x || !y || !c || !two) return NULL;
  vn_int(v, two, 2);
  for (int64_t i = 0; i < out->n && vp_go(v, 300); i++) {
    vp_element(v, in, i, x);
    if (by_tanh) {
      vn_square(v, y, x);
      vn_mul(v, y, y, x);
      vn_literal(v, c, 0.044715);
      vn_mul(v, y, y, c);
      vn_add(v, y, y, x);
      mpfr_const_pi(&c->lo, MPFR_RNDD);
      mpfr_const_pi(&c->hi, MPFR_RNDU);
      vn_div(v, c, two, c);
      vn_sqrt(v, c, c);
      vn_mul(v, y, y, c);
      vn_tanh(v, y, y);
    } else {
      vn_sqrt(v, c, two);
      vn_div(v, y, x, c);
      vn_erf(v, y, y);
    }
    vn_int(v, c, 1);
    vn_add(v, y, y, c);
    vn_mul(v, y, y, x);
    vn_div(v, &out->x[i], y, two);
  }
  return out;
}

/* Functions that are one thing on one side of a bound and another on the other. Returns: false
 * where the side is open. */
static bool above(vp *v, const vn *x, const vn *bound, bool *yes) {
  const int c = vn_compare(x, bound);
  *yes = c > 0;
  if (c == 2) vp_at_jump(v);
  return c != 2;
}

static void softplus(vp *v, vn *r, const vn *x, vn *const *p) { /* beta, threshold */
  bool linear;
  vn_mul(v, p[4], x, p[0]);
  if (!above(v, p[4], p[1], &linear)) return;
  if (linear) {
    vn_set(r, x);
    return;
  }
  vn_exp(v, p[4], p[4]);
  vn_unary_find("log1p", &(int){0})(v, p[4], p[4]);
  vn_div(v, r, p[4], p[0]);
}

static void leaky_relu(vp *v, vn *r, const vn *x, vn *const *p) {
  bool right;
  vn_int(v, p[4], 0);
  if (!above(v, x, p[4], &right)) return;
  if (right) vn_set(r, x);
  else vn_mul(v, r, x, p[0]);
}

static void elu(vp *v, vn *r, const vn *x, vn *const *p) { /* alpha, scale, input_scale */
  bool right;
  vn_int(v, p[4], 0);
  if (!above(v, x, p[4], &right)) return;
  if (right) {
    vn_mul(v, r, x, p[1]);
    return;
  }
  vn_mul(v, p[4], x, p[2]);
  vn_unary_find("expm1", &(int){0})(v, p[4], p[4]);
  vn_mul(v, p[4], p[4], p[0]);
  vn_mul(v, r, p[4], p[1]);
}

static void celu(vp *v, vn *r, const vn *x, vn *const *p) {
  bool right;
  vn_int(v, p[4], 0);
  if (!above(v, x, p[4], &right)) return;
  if (right) {
    vn_set(r, x);
    return;
  }
  vn_div(v, p[4], x, p[0]);
  vn_unary_find("expm1", &(int){0})(v, p[4], p[4]);
  vn_mul(v, r, p[4], p[0]);
}

static void threshold(vp *v, vn *r, const vn *x, vn *const *p) {
  bool right;
  if (above(v, x, p[0], &right)) vn_set(r, right ? x : p[1]);
}

/* x + 3 between 0 and 6, by 6; and that times x. */
static void hardsigmoid(vp *v, vn *r, const vn *x, vn *const *p) {
  vn_int(v, p[4], 3);
  vn_add(v, r, x, p[4]);
  vn_int(v, p[4], 0);
  vn_max(v, r, r, p[4]);
  vn_int(v, p[4], 6);
  vn_min(v, r, r, p[4]);
  vn_div(v, r, r, p[4]);
}

static void hardswish(vp *v, vn *r, const vn *x, vn *const *p) {
  hardsigmoid(v, p[3], x, p);
  vn_mul(v, r, p[3], x);
}

static void relu6(vp *v, vn *r, const vn *x, vn *const *p) {
  vn_int(v, p[4], 0);
  vn_max(v, r, x, p[4]);
  vn_int(v, p[4], 6);
  vn_min(v, r, r, p[4]);
}

typedef struct shaped {
  const char *name;
  void (*f)(vp *v, vn *r, const vn *x, vn *const *p);
  const char *arg[3];
} shaped;

static const shaped shapes[] = {{"softplus", softplus, {"beta", "threshold"}},
                                {"leaky_relu", leaky_relu, {"negative_slope"}},
                                {"elu", elu, {"alpha", "scale", "input_scale"}},
                                {"celu", celu, {"alpha"}},
                                {"threshold", threshold, {"threshold", "value"}},
                                {"hardsigmoid", hardsigmoid, {0}},
                                {"hardswish", hardswish, {0}},
                                {"relu6", relu6, {0}}};

static const vp_tensor *of_shape(vp *v, const vp_call *k, const shaped *s) {
  const vp_tensor *x =
      k->call->n && k->call->child[0]->kind == RULE_VAR ? k->in[k->call->child[0]->u.i] : NULL;
  vp_tensor *out = x ? vp_result(v, k) : NULL;
  vn *p[5], *a = vp_new_number(v);
  for (int i = 0; i < 5; i++)
    if (!(p[i] = vp_new_number(v))) return NULL;
  for (int i = 0; i < 3 && s->arg[i]; i++)
    if (!vp_literal(v, vp_arg(k, s->arg[i]), &p[i])) return NULL;
  for (int64_t i = 0; out && a && i < out->n && vp_go(v, 60); i++) {
    vp_element(v, x, i, a);
    s->f(v, &out->x[i], a, p);
  }
  return out;
}

bool vp_activation(vp *v, const vp_call *k, const vp_tensor **out) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (strcmp(shapes[i].name, k->name) == 0) return *out = of_shape(v, k, &shapes[i]), true;
  return false;
}

const vp_tensor *vp_clamp(vp *v, const vp_call *k) {
  const bool hard = strcmp(k->name, "hardtanh") == 0;
  const rule_term *low = vp_arg(k, hard ? "min_val" : "min"),
                  *high = vp_arg(k, hard ? "max_val" : "max");
  vp_tensor *out = vp_result(v, k);
  vp_operand x, a, b;
  vn *t = vp_new_number(v);
  if (!out || !t || !vp_operand_of(v, k, vp_arg(k, "self"), &out->shape, &x)) return NULL;
  if (vp_is_given(low) && !vp_operand_of(v, k, low, &out->shape, &a)) return NULL;
  if (vp_is_given(high) && !vp_operand_of(v, k, high, &out->shape, &b)) return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 2); i++) {
    vp_operand_get(v, &x, &out->shape, i, &out->x[i]);
    if (vp_is_given(low))
      vp_operand_get(v, &a, &out->shape, i, t), vn_max(v, &out->x[i], &out->x[i], t);
    if (vp_is_given(high))
      vp_operand_get(v, &b, &out->shape, i, t), vn_min(v, &out->x[i], &out->x[i], t);
  }
  return out;
}

const vp_tensor *vp_addc(vp *v, const vp_call *k) {
  const bool by = strcmp(k->name, "addcdiv") == 0;
  vp_tensor *out = vp_result(v, k);
  vp_operand x, a, b;
  vn *s = vp_new_number(v), *t = vp_new_number(v), *value = NULL;
  if (!out || !s || !t || !vp_operand_of(v, k, vp_arg(k, "self"), &out->shape, &x) ||
      !vp_operand_of(v, k, vp_arg(k, "tensor1"), &out->shape, &a) ||
      !vp_operand_of(v, k, vp_arg(k, "tensor2"), &out->shape, &b) ||
      !vp_literal(v, vp_arg(k, "value"), &value))
    return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 4); i++) {
    vp_operand_get(v, &a, &out->shape, i, s);
    vp_operand_get(v, &b, &out->shape, i, t);
    if (by) vn_div(v, s, s, t);
    else vn_mul(v, s, s, t);
    vn_mul(v, s, s, value);
    vp_operand_get(v, &x, &out->shape, i, t);
    vn_add(v, &out->x[i], t, s);
  }
  return out;
}

const vp_tensor *vp_lerp(vp *v, const vp_call *k) {
  vp_tensor *out = vp_result(v, k);
  vp_operand x, y, w;
  vn *s = vp_new_number(v), *t = vp_new_number(v);
  if (!out || !s || !t || !vp_operand_of(v, k, vp_arg(k, "self"), &out->shape, &x) ||
      !vp_operand_of(v, k, vp_arg(k, "end"), &out->shape, &y) ||
      !vp_operand_of(v, k, vp_arg(k, "weight"), &out->shape, &w))
    return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 4); i++) {
    vp_operand_get(v, &x, &out->shape, i, s);
    vp_operand_get(v, &y, &out->shape, i, t);
    vn_sub(v, t, t, s);
    vp_operand_get(v, &w, &out->shape, i, &out->x[i]);
    vn_mul(v, t, t, &out->x[i]);
    vn_add(v, &out->x[i], t, s);
  }
  return out;
}

const vp_tensor *vp_compared(vp *v, const vp_call *k, const char *what) {
  vp_tensor *out = vp_result(v, k);
  vp_operand a, b;
  vn *x = vp_new_number(v), *y = vp_new_number(v);
  if (!out || !out->plain || !x || !y || !vp_operand_of(v, k, k->call->child[0], &out->shape, &a) ||
      !vp_operand_of(v, k, k->call->child[1], &out->shape, &b))
    return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 1); i++) {
    vp_operand_get(v, &a, &out->shape, i, x);
    vp_operand_get(v, &b, &out->shape, i, y);
    const int c = vn_compare(x, y);
    if (c == 2) vp_at_jump(v);
    const bool yes = what[0] == 'e'   ? c == 0
                     : what[0] == 'n' ? c != 0
                     : what[0] == 'l' ? (c < 0 || (what[1] == 'e' && c == 0))
                                      : (c > 0 || (what[1] == 'e' && c == 0));
    rule_tensor_set(out->plain, i, yes);
  }
  return out;
}
#endif
