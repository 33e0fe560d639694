/* Which calls surely give numbers. A calculation with signs, operator by operator: a divisor that
 * cannot be zero, a root of a number that is never negative. An operator that it does not know
 * counts as undefined. */
#include <math.h>
#include <string.h>

#include "rules/domain.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "rules/rules_int.h"

rule_undefined rule_undefined_of(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  if (o->makes_undefined) return o->observes ? RULE_UNDEFINED_BOTH : RULE_UNDEFINED_MAKES;
  if (!o->observes) return RULE_UNDEFINED_PASSES;
  return o->keeps_undefined ? RULE_UNDEFINED_KEEPS : RULE_UNDEFINED_SEES;
}

/* ---- signs ---- */

static rule_fact number(double x) {
  return (rule_fact){.undefined = !isfinite(x) && x != -INFINITY,
                     .masked = x == -INFINITY,
                     .constant = true,
                     .nonnegative = x >= 0,
                     .nonzero = !(x == 0),
                     .bounded = isfinite(x),
                     .low = x};
}

/* A lower bound; minus infinity where nothing is known. */
static double least(rule_fact f) { return f.bounded ? f.low : f.nonnegative ? 0 : -INFINITY; }

/* None is below `low`. */
static rule_fact from(double low, rule_fact f) {
  f.nonnegative |= low >= 0;
  f.nonzero |= low > 0;
  f.bounded = isfinite(low);
  f.low = low;
  return f;
}

/* A sum and a product, no larger than of real numbers. */
static double sum_below(double a, double b) {
  const double s = a + b, part = s - a;
  return (a - (s - part)) + (b - part) == 0 ? s : nextafter(s, -INFINITY);
}
static double product_below(double a, double b) {
  const double p = a * b;
  return fma(a, b, -p) == 0 ? p : nextafter(p, -INFINITY);
}

rule_fact rule_fact_of_domain(const rule_domain *d) {
  if (!d) return (rule_fact){0};
  return from(d->low, (rule_fact){.nonnegative = d->mask != 0});
}

rule_fact rule_fact_in_shape(rule_fact f, const rule_shape *shape) {
  f.some = true;
  for (uint32_t i = 0; i < shape->rank; i++)
    if (shape->dim[i] == 0) f.nonnegative = f.nonzero = f.bounded = f.some = false;
  return f;
}

/* Of all elements of several tensors. */
static rule_fact both(rule_fact a, rule_fact b) {
  return from(fmin(least(a), least(b)), (rule_fact){.undefined = a.undefined || b.undefined,
                                                    .masked = a.masked || b.masked,
                                                    .constant = a.constant && b.constant,
                                                    .nonzero = a.nonzero && b.nonzero});
}

static bool literal(const rule_term *t, double *x) {
  if (t->kind != RULE_FLOAT && t->kind != RULE_INT) return false;
  *x = t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i;
  return true;
}

static const rule_term *child(const rule_term *call, uint32_t i) {
  static const rule_term none = {.kind = RULE_NONE};
  return i < call->n ? call->child[i] : &none;
}

static bool is_tensor(const rule_term *t) {
  return t->kind == RULE_VAR || t->kind == RULE_OP || t->kind == RULE_LIST;
}

/* A power: of a positive number it is always a number; of others it depends on the exponent. */
static rule_fact power(const rule_term *call, rule_fact x) {
  double e = 0;
  const bool known = literal(child(call, 1), &e), whole = known && e == floor(e) && e >= 0;
  const bool even = whole && fmod(e, 2) == 0;
  const bool ok = (x.nonnegative && x.nonzero) || (x.nonnegative && known && e >= 0) || whole ||
                  (x.nonzero && known && e == floor(e));
  return (rule_fact){
      .undefined = !ok, .nonnegative = x.nonnegative || even, .nonzero = x.nonzero && ok};
}

static rule_fact product(const rule_term *call, rule_fact a, rule_fact b) {
  const bool square =
      is_tensor(child(call, 0)) && call->n > 1 && rule_term_eq(call->child[0], call->child[1]);
  double x = 0;
  const rule_fact f = {.nonnegative = square || (a.nonnegative && b.nonnegative),
                       .nonzero = a.nonzero && b.nonzero};
  if (!a.bounded || !literal(child(call, 1), &x) || !(x > 0)) return f;
  return from(product_below(a.low, x), f);
}

/* By a number, rounded down. */
static rule_fact quotient(const rule_term *call, rule_fact a, rule_fact b) {
  double x = 0;
  const rule_fact f = {.nonnegative = a.nonnegative && b.nonnegative,
                       .nonzero = a.nonzero && b.nonzero};
  if (!a.bounded || a.low == 0 || !literal(child(call, 1), &x) || !(x > 0)) return f;
  return from(nextafter(a.low / x, -INFINITY), f);
}

/* The fact of a number between `low` and `high`. */
static rule_fact bounded(rule_fact x, const rule_fact *low, const rule_fact *high) {
  if (low)
    x = from(
        fmax(least(x), least(*low)),
        (rule_fact){.nonzero = (low->nonnegative && low->nonzero) || (x.nonnegative && x.nonzero)});
  if (high)
    x = from(
        fmin(least(x), least(*high)),
        (rule_fact){.nonzero = x.nonnegative && x.nonzero && high->nonnegative && high->nonzero});
  return x;
}

/* The facts of a bounded operand; bounds that are left out bound nothing. */
static rule_fact bound(const rule_term *call, const rule_operator *o, const rule_fact *of) {
  const rule_fact *low = child(call, 1)->kind == RULE_NONE ? NULL : &of[1],
                  *high = child(call, 2)->kind == RULE_NONE ? NULL : &of[2];
  switch (o->bound) {
  case RULE_BOUND_GIVEN: return bounded(of[0], low, high);
  case RULE_BOUND_BELOW: return bounded(of[0], low, NULL);
  case RULE_BOUND_ABOVE: return bounded(of[0], NULL, low);
  default: return (rule_fact){0};
  }
}

/* A number for every number that it may be given, by the signs of the operands. */
static bool pole_avoided(const rule_operator *o, rule_fact a, rule_fact b) {
  const bool above = a.nonnegative && a.nonzero;
  switch (o->arithmetic) {
  case RULE_ARITHMETIC_DIV: return b.nonzero;
  case RULE_ARITHMETIC_RECIPROCAL: return a.nonzero;
  case RULE_ARITHMETIC_SQRT: return a.nonnegative;
  case RULE_ARITHMETIC_RSQRT: return above;
  default: break;
  }
  if (o->choice == RULE_CHOICE_QUOTIENT || o->choice == RULE_CHOICE_REMAINDER) return b.nonzero;
  return o->defined == RULE_DEFINED_NONNEGATIVE ? a.nonnegative
                                                : o->defined == RULE_DEFINED_POSITIVE && above;
}

int rule_pole_at_zero(const rule_term *call) {
  const rule_operator *o = rule_operator_of(call->u.s);
  double e = 0;
  switch (o->arithmetic) {
  case RULE_ARITHMETIC_DIV: return 1;
  case RULE_ARITHMETIC_RECIPROCAL:
  case RULE_ARITHMETIC_RSQRT: return 0;
  default: break;
  }
  if (o->choice == RULE_CHOICE_QUOTIENT || o->choice == RULE_CHOICE_REMAINDER) return 1;
  if (rule_is_overload(call->u.s, OP_POW)) return literal(child(call, 1), &e) && e < 0 ? 0 : -1;
  return o->defined == RULE_DEFINED_POSITIVE ? 0 : -1;
}

/* Of a sum; where the second operand has a factor, of one that is not negative. */
static rule_fact sum(const rule_term *call, rule_fact a, rule_fact b) {
  double alpha = 1;
  const rule_term *by = child(call, 2);
  if (by->kind != RULE_NONE && (!literal(by, &alpha) || alpha < 0)) return (rule_fact){0};
  const bool adds = alpha > 0, both = a.nonnegative && b.nonnegative;
  const rule_fact f = {.nonnegative = both, .nonzero = both && (a.nonzero || (b.nonzero && adds))};
  return alpha == 1 ? from(sum_below(least(a), least(b)), f) : f;
}

/* Of a difference: less a literal is more by its opposite. */
static rule_fact difference(const rule_term *call, rule_fact a) {
  double x;
  return literal(child(call, 1), &x) ? sum(call, a, number(-x)) : (rule_fact){0};
}

/* The result's elements are elements of the first operand. */
static bool only_moves(const rule_operator *o) {
  return o->identity || o->rearranges || o->part || o->joins || o->table;
}

static rule_fact arithmetic(const rule_term *call, const rule_operator *o, const rule_fact *of) {
  switch (o->arithmetic) {
  case RULE_ARITHMETIC_ADD: return sum(call, of[0], of[1]);
  case RULE_ARITHMETIC_SUB: return difference(call, of[0]);
  case RULE_ARITHMETIC_MUL: return product(call, of[0], of[1]);
  case RULE_ARITHMETIC_DIV:
    if (child(call, 2)->kind == RULE_NONE) return quotient(call, of[0], of[1]);
    return (rule_fact){.nonnegative = of[0].nonnegative && of[1].nonnegative}; /* to whole ones */
  case RULE_ARITHMETIC_RECIPROCAL:
  case RULE_ARITHMETIC_RSQRT: return (rule_fact){.nonnegative = of[0].nonnegative, .nonzero = true};
  case RULE_ARITHMETIC_NEG: return (rule_fact){.nonzero = of[0].nonzero};
  case RULE_ARITHMETIC_SQUARE:
  case RULE_ARITHMETIC_ABS: return (rule_fact){.nonnegative = true, .nonzero = of[0].nonzero};
  default: return (rule_fact){0};
  }
}

/* A cast to integers makes zeros of fractions. */
static rule_fact cast(const rule_term *call, rule_fact a) {
  for (uint32_t i = 0; i < call->n; i++)
    if (call->child[i]->kind != RULE_DTYPE || !rule_dtype_is_int((rule_dtype)call->child[i]->u.i))
      continue;
    else return (rule_fact){.nonnegative = a.nonnegative};
  return (rule_fact){.nonnegative = a.nonnegative};
}

/* The fact of a choice: by its first operand between the others, or besides the second. */
static rule_fact selected(const rule_term *call, const rule_fact *of) {
  const rule_fact a = of[rule_is_overload(call->u.s, OP_WHERE) ? 1 : 0], b = of[2];
  return from(fmin(least(a), least(b)), (rule_fact){.nonzero = a.nonzero && b.nonzero});
}

/* One of several results, of which nothing is known unless they are values and their places. */
static rule_fact result(const rule_term *call, rule_fact of) {
  const bool place = child(call, 1)->kind != RULE_INT || child(call, 1)->u.i != 0;
  if (of.counts) return (rule_fact){.nonnegative = place, .nonzero = place};
  if (of.parts) return (rule_fact){.nonnegative = of.nonnegative, .nonzero = of.nonzero};
  if (!of.places) return (rule_fact){0};
  return (rule_fact){.nonnegative = of.nonnegative || place, .nonzero = of.nonzero && !place};
}

/* A product by a literal that is no more than 1, or a quotient by one that is no less. */
static bool shrinks(const rule_term *call, const rule_operator *o) {
  double by = 0;
  if (!literal(child(call, 1), &by)) return false;
  return (o->arithmetic == RULE_ARITHMETIC_MUL && fabs(by) <= 1) ||
         (o->arithmetic == RULE_ARITHMETIC_DIV && fabs(by) >= 1);
}

/* Whether it is finite for finite operands, except at poles. */
static bool stays_finite(const rule_term *call, const rule_operator *o) {
  switch (o->arithmetic) {
  case RULE_ARITHMETIC_NEG:
  case RULE_ARITHMETIC_ABS:
  case RULE_ARITHMETIC_SQRT: return true;
  default: break;
  }
  if (o->accumulates) return false;
  return o->no_overflow || o->exact || o->moves || o->fills || o->cast || only_moves(o) ||
         shrinks(call, o) || rule_is_getitem(call->u.s);
}

/* Whether every element of a loss of classes counts, so that its mean, which divides by their
 * weights, has no pole: the number that stands for none is below zero, and no class is. */
static bool all_count(const rule_term *call, const rule_operator *o, const rule_fact *node) {
  if (o->ends != RULE_ENDS_CLASSES) return false;
  const rule_term *weight = child(call, o->index + 1u), *total = child(call, o->index + 4u);
  const rule_fact w = rule_fact_of(weight, node);
  double none = 0;
  if (!literal(child(call, o->index + 3u), &none) || none >= 0) return false;
  if (weight->kind != RULE_NONE && (w.undefined || !w.nonnegative || !w.nonzero)) return false;
  if (is_tensor(total) && !rule_fact_of(total, node).nonzero) return false;
  return rule_fact_of(child(call, o->index), node).nonnegative;
}

/* The result's sign, by the signs of the first operands. */
static rule_fact sign(const rule_term *call, const rule_operator *o, const rule_fact *of) {
  const rule_fact keeps = {.nonnegative = of[0].nonnegative,
                           .nonzero = of[0].nonzero && of[0].nonnegative};
  if (rule_is_getitem(call->u.s)) return result(call, of[0]);
  if (o->places_too && o->exact)
    return (rule_fact){.nonnegative = keeps.nonnegative, .nonzero = keeps.nonzero, .places = true};
  if (o->positive) return (rule_fact){.nonnegative = true, .nonzero = true};
  if (o->arithmetic && !o->keeps_sign) return arithmetic(call, o, of);
  if (o->nonnegative) return (rule_fact){.nonnegative = true};
  if (o->cast) return cast(call, of[0]);
  if (only_moves(o) || (o->keeps_sign && o->exact)) return from(least(of[0]), keeps);
  if (o->keeps_sign) return keeps;
  if (o->same_sign) return (rule_fact){.nonnegative = of[0].nonnegative};
  if (o->fills && o->fill) {
    rule_fact f = of[o->fill - 1];
    f.bounded = false; /* it is cast to a dtype */
    return f;
  }
  if (o->choice == RULE_CHOICE_BOUND) return bound(call, o, of);
  return o->choice == RULE_CHOICE_SELECT && o->elementwise ? selected(call, of) : (rule_fact){0};
}

/* A cast among floats does not look at the number. The dtype of a cast to another tensor's is not
 * known. */
static bool casts_to_float(const rule_term *call) {
  uint32_t tensors = 0;
  if (!rule_operator_of(call->u.s)->cast) return false;
  for (uint32_t i = 0; i < call->n; i++) {
    const rule_kind kind = call->child[i]->kind;
    const rule_dtype d = (rule_dtype)call->child[i]->u.i;
    tensors += kind == RULE_VAR || kind == RULE_OP;
    if (kind == RULE_DTYPE) return rule_dtype_is_float(d) || rule_dtype_is_complex(d);
  }
  return tensors == 1;
}

/* Whether it gives one of its operands' numbers, by comparing them. */
static bool picks(const rule_operator *o) {
  return o->exact && (o->choice == RULE_CHOICE_EXTREME || o->choice == RULE_CHOICE_ORDER ||
                      o->choice == RULE_CHOICE_BOUND);
}

/* Whether its result has its first operand's numbers, at places that no tensor decides but constant
 * ones, zeros, or sums with them; or those that comparing picks: of some numbers the largest is
 * minus infinity where all are, the least where any is, and in order they come first. */
static bool passes_masks(const rule_term *call, const rule_operator *o, const rule_fact *node,
                         rule_fact second) {
  bool placed = o->moves;
  for (uint32_t i = 1; i < call->n && placed; i++)
    placed = !is_tensor(call->child[i]) || rule_fact_of(call->child[i], node).constant;
  return placed || picks(o) || rule_is_getitem(call->u.s) || o->arithmetic == RULE_ARITHMETIC_ADD ||
         o->identity || o->rearranges || o->part ||
         (o->arithmetic == RULE_ARITHMETIC_SUB && !second.masked) || o->joins ||
         (o->fills && o->fill) || (o->cast && casts_to_float(call));
}

/* The dimension that a call goes along, where it is written. */
static bool axis_of(const rule_term *call, const rule_operator *o, int64_t *along) {
  const rule_term *t = child(call, o->axis ? o->axis : 1);
  if (t->kind == RULE_LIST && t->n == 1) t = t->child[0];
  *along = t->kind == RULE_INT ? t->u.i : 0;
  return t->kind == RULE_INT;
}

/* A concatenation along a dimension with a tensor that has only numbers has a number in each row: a
 * column of scores that nothing masks. */
static void note_kept(const rule_term *call, const rule_operator *o, const rule_fact *node,
                      rule_fact *out) {
  const rule_term *list = child(call, 0);
  if (!rule_is_overload(call->u.s, OP_CAT) || !axis_of(call, o, &out->along)) return;
  for (uint32_t i = 0; list->kind == RULE_LIST && i < list->n; i++) {
    const rule_fact f = rule_fact_of(list->child[i], node);
    out->kept |= f.some && !f.masked && !f.undefined;
  }
}

/* The largest element of such a row, or the logarithm of its sum, is a number. */
static bool takes_kept(const rule_term *call, const rule_operator *o, rule_fact x) {
  int64_t along;
  return o->mask.role == RULE_MASK_REDUCED && x.kept && axis_of(call, o, &along) &&
         along == x.along;
}

/* The fact of a result where minus infinity is among the operands. Where constants alone decide its
 * places, a row of nothing else would be so on every input, and so be seen on every sample; a
 * softmax of other rows is a number. Any other calculation with it counts as undefined. */
static void pass_masks(const rule_term *call, const rule_fact *node, const rule_fact *of,
                       rule_fact *out) {
  const rule_operator *o = rule_operator_of(call->u.s);
  const uint32_t chooser = rule_is_overload(call->u.s, OP_WHERE) ? 0 : 1;
  const bool chooses = o->choice == RULE_CHOICE_SELECT && o->elementwise &&
                       rule_fact_of(child(call, chooser), node).constant;
  if (o->weighs || takes_kept(call, o, of[0])) return;
  if (picks(o) && least(*out) > -INFINITY) return; /* what bounds it is a number */
  if (passes_masks(call, o, node, of[1]) || chooses) out->masked = true;
  else out->undefined = true;
}

enum { FIRST = 3 }; /* operands whose signs are looked at */

/* Whether its result is a number although an operand is none. A power is one where its exponent is
 * 0 (1) or below (an infinity's is 0), and not where that is a literal above 0. */
static bool sees(const rule_term *call) {
  const rule_undefined kind =
      casts_to_float(call) ? RULE_UNDEFINED_PASSES : rule_undefined_of(call->u.s);
  double e = 0;
  if (rule_is_overload(call->u.s, OP_POW) && literal(child(call, 1), &e) && e > 0) return false;
  return kind == RULE_UNDEFINED_SEES || kind == RULE_UNDEFINED_KEEPS || kind == RULE_UNDEFINED_BOTH;
}

static rule_fact call_fact(const rule_term *call, const rule_fact *node) {
  const rule_operator *o = rule_operator_of(call->u.s);
  rule_fact of[FIRST] = {{0}, {0}, {0}}, out;
  bool given = false, written = false, seen = false, masked = false, constant = true;
  bool large = false;
  for (uint32_t i = 0; i < call->n; i++) {
    const rule_fact f = rule_fact_of(call->child[i], node);
    const bool tensor = is_tensor(call->child[i]);
    if (i < FIRST) of[i] = f;
    if (tensor) constant &= f.constant;
    masked |= f.masked;
    given |= tensor && f.undefined;
    written |= !tensor && f.undefined;
    seen |= f.seen;
    large |= f.large;
  }
  const rule_undefined kind =
      casts_to_float(call) ? RULE_UNDEFINED_PASSES : rule_undefined_of(call->u.s);
  const bool counts = all_count(call, o, node);
  out = rule_is_overload(call->u.s, OP_POW) ? power(call, of[0]) : sign(call, o, of);
  if (kind == RULE_UNDEFINED_SEES) out = (rule_fact){.nonnegative = o->nonnegative};
  else
    out.undefined |= given || written ||
                     (kind == RULE_UNDEFINED_MAKES && !counts && !pole_avoided(o, of[0], of[1]));
  out.counts = counts;
  out.parts = o->part;
  if (masked && kind != RULE_UNDEFINED_SEES) pass_masks(call, node, of, &out);
  note_kept(call, o, node, &out);
  out.constant = constant;
  out.seen = seen || (sees(call) && given);
  out.large = !constant && (large || !stays_finite(call, o));
  return out;
}

rule_fact rule_fact_of(const rule_term *t, const rule_fact *node) {
  if (t->kind == RULE_VAR) return node ? node[t->u.i] : (rule_fact){0};
  if (t->kind == RULE_FLOAT) return number(t->u.f);
  if (t->kind == RULE_INT) return number((double)t->u.i);
  if (t->kind == RULE_OP) return call_fact(t, node);
  if (t->kind != RULE_LIST || t->n == 0)
    return (rule_fact){.nonnegative = t->kind == RULE_BOOLEAN, .constant = t->kind == RULE_LIST};
  rule_fact all = rule_fact_of(t->child[0], node);
  for (uint32_t i = 1; i < t->n; i++) {
    const rule_fact f = rule_fact_of(t->child[i], node);
    const bool seen = all.seen || f.seen;
    all = both(all, f);
    all.seen = seen;
  }
  return all;
}

/* An operand that others are compared with and that is infinite on all inputs. */
static rule_tells compares(const rule_term *call, const rule_fact *node) {
  rule_tells tells = rule_sees_undefined(call) ? RULE_TELLS_OVERFLOW : RULE_TELLS_NOTHING;
  if (rule_operator_of(call->u.s)->choice != RULE_CHOICE_COMPARE) return tells;
  for (uint32_t i = 0; i < call->n && i < 2; i++) {
    const rule_fact f = rule_fact_of(call->child[i], node);
    const bool literal = call->child[i]->kind == RULE_FLOAT;
    if (!literal && !(is_tensor(call->child[i]) && f.constant)) continue;
    if (f.undefined) return RULE_TELLS_OVERFLOW;
    if (f.masked) tells = RULE_TELLS_MASKS;
  }
  return tells;
}

rule_tells rule_tells_overflow(const rule_term *t, const rule_fact *node) {
  rule_tells tells = RULE_TELLS_NOTHING;
  bool large = false;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_tells within = rule_tells_overflow(t->child[i], node);
    if (within > tells) tells = within;
    large |= rule_fact_of(t->child[i], node).large;
  }
  const rule_tells own = t->kind == RULE_OP && large ? compares(t, node) : RULE_TELLS_NOTHING;
  return own > tells ? own : tells;
}

bool rule_looks_at_undefined(const rule_term *t) {
  if (t->kind == RULE_OP && sees(t)) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (rule_looks_at_undefined(t->child[i])) return true;
  return false;
}
