/* What is surely a number. A calculation with signs, operator by operator: a divisor that cannot be
 * zero, a root of what is never negative. What it does not know is undefined for all it knows. */
#include <math.h>
#include <string.h>

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
                     .nonzero = !(x == 0)};
}

/* Of all elements of several tensors. */
static rule_fact both(rule_fact a, rule_fact b) {
  return (rule_fact){.undefined = a.undefined || b.undefined,
                     .masked = a.masked || b.masked,
                     .constant = a.constant && b.constant,
                     .nonnegative = a.nonnegative && b.nonnegative,
                     .nonzero = a.nonzero && b.nonzero};
}

static bool is(const rule_term *call, const char *const *names) {
  const char *op = call->u.s;
  if (!rule_is_aten(op)) return false;
  op += strlen("aten::");
  const size_t n = strcspn(op, ".");
  for (; *names; names++)
    if (strlen(*names) == n && strncmp(op, *names, n) == 0) return true;
  return false;
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

/* A power: of a positive number always one; of others by what the exponent is. */
static rule_fact power(const rule_term *call, rule_fact x) {
  double e;
  const bool known = literal(child(call, 1), &e), whole = known && e == floor(e) && e >= 0;
  const bool even = whole && fmod(e, 2) == 0;
  const bool ok = (x.nonnegative && x.nonzero) || (x.nonnegative && known && e >= 0) || whole ||
                  (x.nonzero && known && e == floor(e));
  return (rule_fact){
      .undefined = !ok, .nonnegative = x.nonnegative || even, .nonzero = x.nonzero && ok};
}

static rule_fact product(const rule_term *call, rule_fact a, rule_fact b) {
  const bool square = child(call, 0)->kind == RULE_VAR && call->n > 1 &&
                      rule_term_eq(call->child[0], call->child[1]);
  return (rule_fact){.nonnegative = square || (a.nonnegative && b.nonnegative),
                     .nonzero = a.nonzero && b.nonzero};
}

/* The least of a clamp, where it is a number. */
static rule_fact bounded(rule_fact x, rule_fact low) {
  return (rule_fact){.nonnegative = x.nonnegative || low.nonnegative,
                     .nonzero = (low.nonnegative && low.nonzero) || (x.nonnegative && x.nonzero)};
}

/* A number for every number that it may be given, by the signs of the operands. */
/* operator: which sign of which operand keeps it off its pole */
static bool pole_avoided(const rule_term *call, rule_fact a, rule_fact b) {
  static const char *const quotients[] = {"div",       "divide", "true_divide", "floor_divide",
                                          "remainder", "fmod",   NULL},
                           *const inverse[] = {"reciprocal", NULL}, *const roots[] = {"sqrt", NULL},
                           *const positive[] = {"rsqrt", "log", "log2", "log10", NULL},
                           *const behind[] = {"log1p", NULL};
  if (is(call, quotients)) return b.nonzero;
  if (is(call, inverse)) return a.nonzero;
  if (is(call, roots) || is(call, behind)) return a.nonnegative;
  return is(call, positive) && a.nonnegative && a.nonzero;
}

/* operator: above zero, not below zero, and with its operand's sign */
static const char *const above_zero[] = {"exp",       "exp2",     "sigmoid",  "softmax",
                                         "_softmax",  "cosh",     "softplus", "ones",
                                         "ones_like", "new_ones", NULL};
static const char *const not_below[] = {
    "square", "abs",    "relu",  "norm",       "linalg_vector_norm",
    "var",    "std",    "relu6", "one_hot",    "arange",
    "argmax", "argmin", "zeros", "zeros_like", "new_zeros",
    NULL};
static const char *const sign_kept[] = {"sum",
                                        "mean",
                                        "amax",
                                        "amin",
                                        "cumsum",
                                        "view",
                                        "reshape",
                                        "expand",
                                        "unsqueeze",
                                        "squeeze",
                                        "clone",
                                        "contiguous",
                                        "alias",
                                        "detach",
                                        "transpose",
                                        "permute",
                                        "t",
                                        "slice",
                                        "select",
                                        "flatten",
                                        "to",
                                        "_to_copy",
                                        "repeat",
                                        "unflatten",
                                        "expand_as",
                                        "broadcast_to",
                                        "sqrt",
                                        "_unsafe_view",
                                        "cat",
                                        "stack",
                                        "lift_fresh_copy",
                                        "index",
                                        "index_select",
                                        "gather",
                                        "embedding",
                                        NULL};

/* The result's sign, by the operands'. */
/* operator: how its sign follows from those of its operands */
static rule_fact sign(const rule_term *call, rule_fact a, rule_fact b) {
  static const char *const inverse[] = {"rsqrt", "reciprocal", NULL}, *const sums[] = {"add", NULL},
                           *const products[] = {"mul", "div", "multiply", "divide", NULL},
                           *const fills[] = {"full", "full_like", "new_full", NULL},
                           *const clamps[] = {"clamp", "clamp_min", "maximum", "clip", NULL},
                           *const choices[] = {"where", NULL};
  double alpha = 1;
  if (is(call, above_zero)) return (rule_fact){.nonnegative = true, .nonzero = true};
  if (is(call, not_below)) return (rule_fact){.nonnegative = true};
  if (is(call, sign_kept))
    return (rule_fact){.nonnegative = a.nonnegative, .nonzero = a.nonzero && a.nonnegative};
  if (is(call, inverse)) return (rule_fact){.nonnegative = a.nonnegative, .nonzero = true};
  if (is(call, fills)) return b;
  if (is(call, products)) return product(call, a, b);
  if (is(call, clamps)) return bounded(a, b);
  if (is(call, sums) && literal(child(call, 2), &alpha) && alpha < 0) return (rule_fact){0};
  if (is(call, sums))
    return (rule_fact){.nonnegative = a.nonnegative && b.nonnegative,
                       .nonzero = a.nonnegative && b.nonnegative && (a.nonzero || b.nonzero)};
  return is(call, choices) ? both(b, (rule_fact){.nonnegative = b.nonnegative}) : (rule_fact){0};
}

/* A cast among floats is no look at the number. */
static bool casts_to_float(const rule_term *call) {
  static const char *const casts[] = {"to", "_to_copy", NULL};
  if (!is(call, casts)) return false;
  for (uint32_t i = 0; i < call->n; i++)
    if (call->child[i]->kind == RULE_DTYPE) {
      const rule_dtype d = (rule_dtype)call->child[i]->u.i;
      return rule_dtype_is_float(d) || rule_dtype_is_complex(d);
    }
  return true;
}

/* What becomes of minus infinity among the operands. Where constants alone decide its places, a row
 * that holds nothing else would do so on every input, and be seen on each of them; a softmax of
 * other rows is a number. What calculates with it otherwise is undefined for all that is known.
 * operator: what minus infinity passes, and what takes it in, is no fact of the table yet. */
static void pass_masks(const rule_term *call, bool choice_is_constant, rule_fact *out) {
  static const char *const moves[] =
      {"add",          "view",          "reshape",  "expand",          "unsqueeze",
       "squeeze",      "clone",         "alias",    "contiguous",      "detach",
       "transpose",    "permute",       "t",        "slice",           "select",
       "flatten",      "unflatten",     "to",       "_to_copy",        "expand_as",
       "triu",         "tril",          "full",     "broadcast_to",    "full_like",
       "_unsafe_view", "scalar_tensor", "new_full", "lift_fresh_copy", NULL},
                           *const weighs[] = {"softmax",
                                              "_softmax",
                                              "_safe_softmax",
                                              "scaled_dot_product_attention",
                                              "_scaled_dot_product_attention_math",
                                              "_scaled_dot_product_flash_attention_for_cpu",
                                              NULL},
                           *const chooses[] = {"where", "masked_fill", NULL};
  if (is(call, weighs)) return;
  if (is(call, moves) || (is(call, chooses) && choice_is_constant)) out->masked = true;
  else out->undefined = true;
}

/* operator: what they make of numbers that are none has a sign of its own */
static rule_fact call_fact(const rule_term *call, const rule_fact *node) {
  static const char *const powers[] = {"pow", NULL};
  rule_fact of[2] = {{0}, {0}}, out;
  bool given = false, written = false, seen = false, masked = false, constant = true;
  bool choice = false;
  for (uint32_t i = 0; i < call->n; i++) {
    const rule_fact f = rule_fact_of(call->child[i], node);
    const bool tensor = call->child[i]->kind == RULE_VAR || call->child[i]->kind == RULE_OP ||
                        call->child[i]->kind == RULE_LIST;
    if (i < 2) of[i] = f;
    if (tensor) constant &= f.constant;
    if (i == (strncmp(call->u.s, OP_WHERE, strlen(OP_WHERE)) == 0 ? 0u : 1u)) choice = f.constant;
    masked |= f.masked;
    given |= tensor && f.undefined;
    written |= !tensor && f.undefined;
    seen |= f.seen;
  }
  const rule_undefined kind =
      casts_to_float(call) ? RULE_UNDEFINED_PASSES : rule_undefined_of(call->u.s);
  out = is(call, powers) ? power(call, of[0]) : sign(call, of[0], of[1]);
  if (kind == RULE_UNDEFINED_SEES) out = (rule_fact){.nonnegative = true};
  else
    out.undefined |=
        given || written || (kind == RULE_UNDEFINED_MAKES && !pole_avoided(call, of[0], of[1]));
  if (masked && kind != RULE_UNDEFINED_SEES) pass_masks(call, choice, &out);
  out.constant = constant;
  const bool sees =
      kind == RULE_UNDEFINED_SEES || kind == RULE_UNDEFINED_KEEPS || kind == RULE_UNDEFINED_BOTH;
  out.seen = seen || (sees && given);
  static const char *const signs[] = {"sign", "sgn", "nan_to_num", "nansum", "heaviside", NULL};
  if (is(call, signs)) out.nonnegative = false;
  return out;
}

rule_fact rule_fact_of(const rule_term *t, const rule_fact *node) {
  if (t->kind == RULE_VAR) return node ? node[t->u.i] : (rule_fact){0};
  if (t->kind == RULE_FLOAT) return number(t->u.f);
  if (t->kind == RULE_INT) return number((double)t->u.i);
  if (t->kind == RULE_OP) return call_fact(t, node);
  if (t->kind != RULE_LIST || t->n == 0) return (rule_fact){.nonnegative = t->kind == RULE_BOOLEAN};
  rule_fact all = rule_fact_of(t->child[0], node);
  for (uint32_t i = 1; i < t->n; i++) {
    const rule_fact f = rule_fact_of(t->child[i], node);
    const bool seen = all.seen || f.seen;
    all = both(all, f);
    all.seen = seen;
  }
  return all;
}

bool rule_looks_at_undefined(const rule_term *t) {
  const bool casts = t->kind == RULE_OP && casts_to_float(t);
  const rule_undefined kind =
      t->kind != RULE_OP || casts ? RULE_UNDEFINED_PASSES : rule_undefined_of(t->u.s);
  if (kind == RULE_UNDEFINED_SEES || kind == RULE_UNDEFINED_KEEPS || kind == RULE_UNDEFINED_BOTH)
    return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (rule_looks_at_undefined(t->child[i])) return true;
  return false;
}
