/* Sums in which an operand is lost, and functions that are flat where it lies (tanh of 50, atan of
 * 1e18): where many digits are not to be had, a sample of such a call shows nothing of that
 * operand.
 *
 * One that stands on both sides loses the same there, and is like a variable. Masks are meant to
 * swallow the numbers that they are added to. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/operators.h"
#include "validate/exec/engine_int.h"

/* Minus infinity in other words: the least number of float64, or of float32 and bfloat16. Others of
 * that size are numbers. */
static bool is_mask(double v) { return !(v > -1.79e308) || (v > -3.41e38 && v < -3.38e38); }

static bool lost(double part, double whole) {
  return part != 0 && isfinite(whole) && !is_mask(whole) &&
         fabs(part) < DBL_EPSILON / 4 * fabs(whole);
}

/* An element of a sum of two, for any factor of the second. */
static bool two_lose(const rule_term *call, rule_tensor *const *bind, size_t n,
                     const rule_tensor *out) {
  val_operands o;
  if (!val_operands_of(call, bind, n, out, &o) || !o.two) return false;
  double alpha = 1;
  if (call->n > 2 && call->child[2]->kind == RULE_FLOAT) alpha = call->child[2]->u.f;
  if (call->n > 2 && call->child[2]->kind == RULE_INT) alpha = (double)call->child[2]->u.i;
  const bool reversed = rule_operator_of(call->u.s)->arithmetic == RULE_ARITHMETIC_RSUB;
  for (int64_t i = 0; i < out->numel; i++) {
    const double y = rule_tensor_get(out, i), a = val_operand(&o, 0, i) * (reversed ? alpha : 1),
                 b = val_operand(&o, 1, i) * (reversed ? 1 : alpha);
    if (lost(a, y) || lost(b, y)) return true;
  }
  return false;
}

/* A sum of many: of numbers as far apart as that. */
static bool many_lose(rule_tensor *const *bind, size_t n) {
  double least = (double)INFINITY, most = 0;
  for (size_t k = 0; k < n; k++) {
    if (!rule_dtype_is_float(bind[k]->dtype)) continue;
    for (int64_t i = 0; i < bind[k]->numel; i++) {
      const double a = fabs(rule_tensor_get(bind[k], i));
      if (!(a > 0) || is_mask(-a)) continue;
      least = fmin(least, a);
      most = fmax(most, a);
    }
  }
  return most > 0 && least < DBL_EPSILON / 16 * most;
}

/* ---- functions that are flat ---- */

/* The operand moved by a 64th of each element, or from 0 by as much. */
static rule_tensor *moved(const rule_tensor *x) {
  rule_tensor *y = NULL;
  iso_error local;
  if (rule_tensor_new(x->dtype, &x->shape, &y, &local)) return NULL;
  for (int64_t i = 0; i < x->numel; i++) {
    const double v = rule_tensor_get(x, i);
    rule_tensor_set(y, i, v != 0 ? v * (1 + 0x1p-6) : 0x1p-6);
  }
  return y;
}

/* Whether an element of the result stays where it is, to the last digit, when its operand moves:
 * at a number other than 0, which has underflowed and is looked at elsewhere. */
static bool function_loses(val_engine *e, const rule_term *call, rule_tensor *const *bind,
                           const rule_tensor *out) {
  rule_tensor *x = moved(bind[0]), *y = NULL;
  size_t n = 0;
  iso_error local;
  const bool ran = x && val_call(e, call, &x, VAL_FLOAT64, &y, 1, &n, &local) == ISO_OK;
  bool lost_any = !ran; /* nobody saw that it moves */
  for (int64_t i = 0; ran && y->numel == out->numel && i < out->numel; i++) {
    const double was = rule_tensor_get(out, i), now = rule_tensor_get(y, i);
    lost_any |= was != 0 && isfinite(was) && isfinite(rule_tensor_get(x, i)) &&
                fabs(now - was) < DBL_EPSILON / 4 * fabs(was);
  }
  rule_tensor_unref(y);
  rule_tensor_unref(x);
  return lost_any;
}

/* A function of the elements of one tensor, of which some are flat far out. */
static bool is_function(const rule_term *call, rule_tensor *const *bind, size_t n,
                        const rule_tensor *out) {
  const rule_operator *o = rule_operator_of(call->u.s);
  return o->elementwise && o->transcendental && n == 1 && bind[0]->dtype == RULE_F64 &&
         out->dtype == RULE_F64 && bind[0]->numel == out->numel;
}

void val_absorb_note(val_engine *e, val_absorbed *a, const rule_term *term, const rule_term *call,
                     rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  const rule_operator *o = rule_operator_of(call->u.s);
  const bool pair = o->arithmetic >= RULE_ARITHMETIC_ADD && o->arithmetic <= RULE_ARITHMETIC_RSUB;
  if (!rule_dtype_is_float(out->dtype)) return;
  const bool function = is_function(call, bind, n, out);
  if (!function && (a->functions || (!pair && !o->absorbs))) return;
  if (function ? !function_loses(e, call, bind, out)
      : pair   ? !two_lose(call, bind, n, out)
               : !many_lose(bind, n))
    return;
  if (a->n < VAL_ABSORBED) a->term[a->n] = val_term_hash(term, 0);
  a->n++;
}

static bool within(const val_absorbed *a, const val_absorbed *b) {
  for (size_t i = 0; i < a->n && i < VAL_ABSORBED; i++) {
    bool found = false;
    for (size_t k = 0; k < b->n && k < VAL_ABSORBED; k++) found |= a->term[i] == b->term[k];
    if (!found) return false;
  }
  return a->n <= VAL_ABSORBED;
}

bool val_absorbed_apart(const val_absorbed *left, const val_absorbed *right) {
  return !within(left, right) || !within(right, left);
}
