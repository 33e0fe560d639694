/* The numbers that an elementwise call of one or two operands takes, as broadcasting pairs them,
 * and whether its arithmetic rounds there: the residual of a sum is that of TwoSum (Knuth, TAOCP
 * 2, 4.2.2), of products, quotients and roots a fused multiply-add's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/operators.h"
#include "validate/exec/engine_int.h"

static bool is_number(const rule_term *t) { return t->kind == RULE_FLOAT || t->kind == RULE_INT; }

static bool operand_of(const rule_term *t, rule_tensor *const *bind, size_t n,
                       const rule_tensor **tensor, double *scalar) {
  *tensor = NULL;
  if (is_number(t)) *scalar = t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i;
  else if (t->kind == RULE_VAR && (size_t)t->u.i < n && !rule_dtype_is_complex(bind[t->u.i]->dtype))
    *tensor = bind[t->u.i];
  else return false;
  return true;
}

bool val_operands_of(const rule_term *call, rule_tensor *const *bind, size_t n,
                     const rule_tensor *out, val_operands *o) {
  *o = (val_operands){.shape = out->shape, .numel = out->numel};
  if (call->n == 0 || !operand_of(call->child[0], bind, n, &o->tensor[0], &o->scalar[0]))
    return false;
  if (call->n > 1 && operand_of(call->child[1], bind, n, &o->tensor[1], &o->scalar[1]))
    o->two = true;
  for (int k = 0; k < 2; k++) {
    const rule_tensor *t = o->tensor[k];
    if (t == NULL) continue;
    if (t->shape.rank > out->shape.rank) return false;
    const uint32_t off = out->shape.rank - t->shape.rank;
    int64_t stride = 1;
    for (uint32_t d = t->shape.rank; d-- > 0;) {
      if (t->shape.dim[d] != out->shape.dim[d + off] && t->shape.dim[d] != 1) return false;
      o->stride[k][d + off] = t->shape.dim[d] == 1 ? 0 : stride;
      stride *= t->shape.dim[d];
    }
  }
  return true;
}

int64_t val_operand_place(const val_operands *o, int k, int64_t i) {
  int64_t at = 0;
  for (uint32_t d = o->shape.rank; d-- > 0; i /= o->shape.dim[d])
    at += i % o->shape.dim[d] * o->stride[k][d];
  return at;
}

double val_operand(const val_operands *o, int k, int64_t i) {
  return o->tensor[k] ? rule_tensor_get(o->tensor[k], val_operand_place(o, k, i)) : o->scalar[k];
}

/* ---- arithmetic that does not round ---- */

static val_step known_at(const rule_operator *o) {
  return o->exact_at_0 ? VAL_AT_ZERO : o->exact_at_1 ? VAL_AT_ONE : VAL_NO_STEP;
}

static val_step step_of(const rule_operator *o) {
  switch (o->arithmetic) {
  case RULE_ARITHMETIC_ADD: return VAL_ADD;
  case RULE_ARITHMETIC_SUB: return VAL_SUB;
  case RULE_ARITHMETIC_RSUB: return VAL_RSUB;
  case RULE_ARITHMETIC_MUL: return VAL_MUL;
  case RULE_ARITHMETIC_DIV: return VAL_DIV;
  case RULE_ARITHMETIC_SQRT: return VAL_SQRT;
  case RULE_ARITHMETIC_SQUARE: return VAL_SQUARE;
  case RULE_ARITHMETIC_RECIPROCAL: return VAL_RECIPROCAL;
  case RULE_ARITHMETIC_RSQRT: return VAL_RSQRT;
  default: return known_at(o);
  }
}

val_step val_step_of(const rule_term *call) {
  const val_step step = step_of(rule_operator_of(call->u.s));
  if (step > VAL_DIV || step == VAL_NO_STEP) return step;
  /* A factor of the second operand must be 1, and a quotient a quotient. */
  for (uint32_t i = 2; i < call->n; i++) {
    const rule_term *t = call->child[i];
    if (t->kind != RULE_NONE &&
        !(is_number(t) && (t->kind == RULE_INT ? t->u.i == 1 : t->u.f == 1)))
      return VAL_NO_STEP;
  }
  return call->n > 1 ? step : VAL_NO_STEP;
}

static bool exact_sum(double a, double b) {
  const double y = a + b, c = y - a;
  return isfinite(y) && (a - (y - c)) + (b - c) == 0;
}

/* Subnormal residuals would be lost. */
static bool exact_product(double a, double b, double y) {
  return a == 0 || b == 0 || (isfinite(y) && fabs(y) > 1e-200 && fma(a, b, -y) == 0);
}

bool val_step_exact(val_step step, double a, double b) {
  switch (step) {
  case VAL_ADD: return exact_sum(a, b);
  case VAL_SUB:
  case VAL_RSUB: return exact_sum(a, -b);
  case VAL_MUL: return isfinite(a) && isfinite(b) && exact_product(a, b, a * b);
  case VAL_DIV:
    return isfinite(a) && isfinite(b) && b != 0 &&
           (a == 0 || (fabs(a) > 1e-200 && exact_product(a / b, b, a)));
  case VAL_SQRT: return a >= 0 && exact_product(sqrt(a), sqrt(a), a);
  case VAL_SQUARE: return isfinite(a) && exact_product(a, a, a * a);
  case VAL_RECIPROCAL: return a != 0 && exact_product(1 / a, a, 1);
  case VAL_RSQRT:
    return a > 0 && exact_product(1 / sqrt(a), 1 / sqrt(a), 1 / a) && exact_product(1 / a, a, 1);
  case VAL_AT_ZERO: return a == 0;
  case VAL_AT_ONE: return a == 1;
  default: return false;
  }
}
