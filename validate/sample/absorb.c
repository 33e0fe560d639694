/* Sums in which an operand is lost: where many digits are not to be had, a sample of such a sum
 * shows nothing of that operand.
 *
 * One that stands on both sides loses the same there, and is like a variable. Masks are meant to
 * swallow what they are added to. */
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

/* An element of a sum of two, whatever factor the second has. */
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

void val_absorb_note(val_absorbed *a, const rule_term *term, const rule_term *call,
                     rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  const rule_operator *o = rule_operator_of(call->u.s);
  const bool pair = o->arithmetic >= RULE_ARITHMETIC_ADD && o->arithmetic <= RULE_ARITHMETIC_RSUB;
  if (!rule_dtype_is_float(out->dtype)) return;
  if (!pair && !o->absorbs) return;
  if (pair ? !two_lose(call, bind, n, out) : !many_lose(bind, n)) return;
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
