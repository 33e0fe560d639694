/* Constants of both sides held against one another: run in their captured dtypes, equal bit for
 * bit, or, where two computations of a table round differently, within 2 ulp. */
#include "check/value_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "rules/names.h"
#include "rules/operators.h"

/* ---- constants ---- */

/* Operators that move, select, negate, compare or put together elements and round nothing. */
bool chk_rounds_nothing(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return (o->moves && !o->accumulates) || o->choice == RULE_CHOICE_COMPARE ||
         o->choice == RULE_CHOICE_LOGIC || rule_is_overload(op, OP_NEG) ||
         rule_is_overload(op, OP_COMPLEX);
}

static bool is_cast(const char *op) { return rule_operator_of(op)->cast; }

/* Element `i` of an operand: a literal, one number, or a tensor of `n` elements. */
static bool operand(const rule_term *t, rule_tensor *const *bind, int64_t n, int64_t i, double *x) {
  if (t->kind == RULE_INT) return *x = (double)t->u.i, llabs(t->u.i) <= INT64_C(1) << 53;
  if (t->kind == RULE_FLOAT) return *x = t->u.f, true;
  const rule_tensor *v = t->kind == RULE_VAR ? bind[t->u.i] : NULL;
  if (!v || rule_dtype_is_complex(v->dtype) || (v->numel != n && v->numel != 1)) return false;
  *x = rule_tensor_get(v, v->numel == 1 ? 0 : i);
  return true;
}

/* Neither the product nor its rounding error, which fma computes, may underflow. */
static bool exactly(double x, double y, double product) {
  if (x == 0 || y == 0) return product == 0;
  return x * y == product && fabs(product) > 1e-250 && fma(x, y, -product) == 0;
}

/* A product of which no element was rounded. */
static bool exact_product(const rule_term *call, rule_tensor *const *bind, const rule_tensor *out) {
  double x, y;
  bool exact = rule_operator_of(call->u.s)->arithmetic == RULE_ARITHMETIC_MUL && call->n == 2 &&
               rule_dtype_is_float(out->dtype);
  for (int64_t i = 0; i < out->numel && exact; i++)
    exact = operand(call->child[0], bind, out->numel, i, &x) &&
            operand(call->child[1], bind, out->numel, i, &y) &&
            exactly(x, y, rule_tensor_get(out, i));
  return exact;
}

/* An exact product, computed among integers and truth values alone, or a cast that changes no
 * number. `bind`: its operands. */
static bool exact_here(const local *l, rule_tensor *const *bind, const chk_values *out) {
  bool whole = true;
  for (uint32_t i = 0; i < l->n; i++)
    whole &= rule_dtype_is_int(bind[i]->dtype) || bind[i]->dtype == RULE_BOOL;
  for (size_t i = 0; i < out->n; i++)
    whole &= rule_dtype_is_int(out->v[i]->dtype) || out->v[i]->dtype == RULE_BOOL;
  if (whole || (out->n == 1 && exact_product(l->call, bind, out->v[0]))) return true;
  if (!is_cast(l->call->u.s) || l->n < 1 || out->n != 1 || bind[0]->numel != out->v[0]->numel ||
      !rule_dtype_is_float(out->v[0]->dtype))
    return false;
  for (int64_t i = 0; i < out->v[0]->numel; i++) {
    const double x = rule_tensor_get(bind[0], i), y = rule_tensor_get(out->v[0], i);
    if (!(x == y) && !(isnan(x) && isnan(y))) return false;
  }
  return true;
}

static iso_code run_constant(chk_state *k, uint32_t t, int depth, chk_values *out, uint32_t *on) {
  const rule_term *term = k->term[t].call;
  rule_tensor *bind[MAX_CALL];
  const chk_values *arg;
  iso_arena a;
  local *l = calloc(1, sizeof *l);
  iso_code c = l ? ISO_OK : chk_nomem(k);
  *out = (chk_values){0};
  *on = CHK_NONE;
  iso_arena_init(&a);
  if (!c && !(l->call = chk_local_call(l, term, &a))) c = chk_nomem(k);
  for (uint32_t i = 0; !c && i < l->n; i++) {
    c = chk_constant(k, l->var[i], depth + 1, &arg, on);
    if (c || !arg) goto done;
    if (chk_is_getitem(term)) {
      c = chk_project(k, term, arg, out);
      goto done;
    }
    if (arg->n < 1) {
      c = chk_settle(k, CHK_REFUSED, "an operator without outputs is an argument");
      goto done;
    }
    bind[i] = arg->v[0];
  }
  if (!c && chk_unspecified(term))
    c = chk_settle(k, CHK_REFUSED, "a constant is memory that is left unspecified");
  else if (!c) c = chk_call(k, t, l, bind, false, out);
  if (!c && out->v && !k->term[t].node && !chk_rounds_nothing(term->u.s) &&
      !exact_here(l, bind, out)) {
    chk_drop_values(out);
    c = chk_settle(k, CHK_REFUSED,
                   "a constant is computed by \"%s\", which rounds, and which no capture computes",
                   term->u.s);
  }
done:
  iso_arena_fini(&a);
  free(l);
  return c;
}

/* Arguments at the same place: equal by the steps so far, or constants of one value bit for bit. */
static iso_code same_constant_argument(chk_state *k, const rule_term *a, const rule_term *b,
                                       int depth, bool *same) {
  iso_code c = ISO_OK;
  *same = false;
  if (a->kind == RULE_VAR && b->kind == RULE_VAR &&
      chk_root(k, (uint32_t)a->u.i) != chk_root(k, (uint32_t)b->u.i)) {
    const chk_values *x, *y = NULL;
    uint32_t on;
    if (!(c = chk_constant(k, (uint32_t)a->u.i, depth + 1, &x, &on)) && x)
      c = chk_constant(k, (uint32_t)b->u.i, depth + 1, &y, &on);
    if (c || chk_settled(k) || !y || x->n != y->n) return c;
    *same = true;
    for (size_t i = 0; i < x->n; i++) *same &= rule_tensor_same(x->v[i], y->v[i]);
    return ISO_OK;
  }
  if (a->kind != RULE_LIST || b->kind != RULE_LIST || a->n != b->n) {
    *same = chk_same_argument(k, a, b);
    return ISO_OK;
  }
  *same = true;
  for (uint32_t i = 0; i < a->n && *same && !c; i++)
    c = same_constant_argument(k, a->child[i], b->child[i], depth, same);
  return c;
}

/* The captured call that is the certificate's own call `t`. */
static iso_code captured_alike(chk_state *k, uint32_t t, int depth, uint32_t *out) {
  const rule_term *a = k->term[t].call;
  *out = t;
  for (uint32_t i = 0; i < k->n_terms && k->term[i].node && *out == t && !chk_settled(k); i++) {
    const rule_term *b = k->term[i].call;
    bool alike = b && b->n == a->n && strcmp(a->u.s, b->u.s) == 0;
    for (uint32_t n = 0; alike && n < a->n; n++) {
      const iso_code c = same_constant_argument(k, a->child[n], b->child[n], depth, &alike);
      if (c) return c;
    }
    if (alike) *out = i;
  }
  return ISO_OK;
}

iso_code chk_captured_alike(chk_state *k, uint32_t t, uint32_t *out) {
  k->asked.n++;
  return captured_alike(k, t, 0, out);
}

/* A captured call is rounded as the capture computes it. A call of the certificate's own must round
 * nothing, else x + 1e10 - 1e10 would be the few digits that remain of x. */
iso_code chk_constant(chk_state *k, uint32_t t, int depth, const chk_values **out, uint32_t *on) {
  const uint32_t r = chk_root(k, t);
  *on = CHK_NONE;
  *out = k->here.konst[r].v ? &k->here.konst[r] : NULL;
  if (*out) return ISO_OK;
  if (!k->term[t].call) {
    *on = t;
    return ISO_OK;
  }
  if (depth > MAX_CONSTANT_DEPTH)
    return chk_settle(k, CHK_REFUSED, "a constant is computed too deep");
  if (depth == 0) k->asked.n++;
  if (k->asked.answered[t] == k->asked.n) {
    *on = k->asked.on[t];
    return ISO_OK;
  }
  const uint32_t asked = t;
  chk_values v;
  iso_code c = ISO_OK;
  if (!k->term[t].node && !chk_rounds_nothing(k->term[t].call->u.s))
    c = captured_alike(k, t, depth, &t);
  if (c || chk_settled(k)) return c;
  c = run_constant(k, t, depth, &v, on);
  if (c) return c;
  if (!v.v) {
    k->asked.answered[asked] = k->asked.n;
    k->asked.on[asked] = *on;
    return ISO_OK;
  }
  k->here.konst[r] = v;
  *out = &k->here.konst[r];
  return ISO_OK;
}

static double epsilon(rule_dtype d) {
  return d == RULE_F64 || d == RULE_F32 ? rule_dtype_unit(d, 1) : 0;
}

bool chk_varied(const rule_tensor *t) {
  for (int64_t i = 1; i < t->numel; i++)
    if (rule_tensor_get(t, i) != rule_tensor_get(t, 0)) return true;
  return false;
}

bool chk_same_bytes(const rule_tensor *a, const rule_tensor *b) {
  return a->numel == 0 ||
         memcmp(a->data, b->data, (size_t)a->numel * rule_dtype_size(a->dtype)) == 0;
}

/* NULL if the two are one constant: equal (complex numbers bit for bit), or tables of one real
 * dtype that were computed twice, to 2 ulp. */
const char *chk_constants_differ(const rule_tensor *a, const rule_tensor *b) {
  if (!rule_shape_eq(&a->shape, &b->shape)) return "they have different shapes";
  const bool fa = rule_dtype_is_float(a->dtype);
  if (fa != rule_dtype_is_float(b->dtype) || (!fa && a->dtype != b->dtype))
    return "they have different dtypes";
  if (!fa) return chk_same_bytes(a, b) ? NULL : "their values differ";
  const double eps = a->dtype == b->dtype && chk_varied(a) ? 2 * epsilon(a->dtype) : 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (x == y) continue;
    if (!isfinite(x) || !isfinite(y) || !(fabs(x - y) <= eps * fmax(fabs(x), fabs(y))))
      return "their values differ";
  }
  return NULL;
}

const char *chk_name_of(const chk_state *k, uint32_t t) {
  const chk_term *x = &k->term[t];
  return !x->node ? x->call->u.s : x->node->name ? x->node->name : x->node->id;
}

const char *chk_side_of(const chk_state *k, uint32_t t) {
  return !k->term[t].node ? "a term's" : k->term[t].side == LEFT ? "left's" : "right's";
}

static iso_code depends(chk_state *k, size_t step, uint32_t on) {
  if (chk_settled(k)) return ISO_OK;
  return chk_settle(k, CHK_REFUSED, "step %zu: it depends on %s %s, which is no constant", step,
                    chk_side_of(k, on), chk_name_of(k, on));
}

iso_code chk_same_constants(chk_state *k, uint32_t a, uint32_t b, size_t step) {
  const chk_values *x, *y;
  uint32_t on;
  iso_code c = chk_constant(k, a, 0, &x, &on);
  if (c || !x) return c ? c : depends(k, step, on);
  c = chk_constant(k, b, 0, &y, &on);
  if (c || !y) return c ? c : depends(k, step, on);
  if (x->n != 1 || y->n != 1)
    return chk_settle(k, CHK_REFUSED, "step %zu: an operator with several outputs has no value",
                      step);
  const char *why = chk_constants_differ(x->v[0], y->v[0]);
  if (why)
    return chk_settle(k, CHK_REFUSED, "step %zu: %s %s and %s %s: %s", step, chk_side_of(k, a),
                      chk_name_of(k, a), chk_side_of(k, b), chk_name_of(k, b), why);
  if ((c = chk_zeros_joined(k, a, x->v[0], y->v[0]))) return c;
  return chk_assume(k, RULE_ASSUMES_VALUE,
                    iso_arena_printf(k->arena, "%s %s and %s %s have the same captured value",
                                     chk_side_of(k, a), chk_name_of(k, a), chk_side_of(k, b),
                                     chk_name_of(k, b)));
}
