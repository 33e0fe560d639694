/* Sizes and numbers of a rule as expressions: names as the case has solved for them, float literals
 * exact or as the roots that they stand for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/tensor/tensor.h"

static sx scalar_elem(sc *c, const pt_tensor *t, const sx *idx) {
  (void)c;
  (void)idx;
  return t->p[0];
}

const pt_tensor *pt_scalar_tensor(sc *c, sx x, char kind) {
  pt_tensor *t = pt_new(c, kind, scalar_elem);
  if (t) t->p[0] = x, t->wrapped = true;
  return t;
}

static sx named_size(sc *c, const char *name) {
  for (size_t i = 0; i < c->store.n_syms; i++) {
    if (!strchr("sa", c->store.sym[i].role) || strcmp(c->store.sym[i].name, name)) continue;
    const sx x = sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
    sx_map map[SC_MAX_GUESSES];
    for (size_t k = 0; k < c->here.n_bound_sizes; k++)
      map[k] = (sx_map){c->here.bound_size[k].from, c->here.bound_size[k].to};
    return c->here.n_bound_sizes ? sx_subst(c, x, map, c->here.n_bound_sizes) : x;
  }
  sc_fail(c, "the name %.60s means nothing here", name);
  return c->zero;
}

sx sc_size(sc *c, const rule_term *t) {
  if (c->fault.failed) return c->zero;
  switch (t->kind) {
  case RULE_INT: return sx_int(c, t->u.i);
  case RULE_BOOLEAN: return sx_int(c, t->u.i);
  case RULE_FLOAT: return pt_literal(c, t->u.f);
  case RULE_NAME: return named_size(c, t->u.s);
  case RULE_EXPR: break;
  default: sc_fail(c, "a size that is none"); return c->zero;
  }
  sx r = sc_size(c, t->child[0]);
  const char *op = t->u.s;
  if (t->n == 1 && !strcmp(op, "-")) return sx_neg(c, r);
  for (uint32_t i = 1; i < t->n && !c->fault.failed; i++) {
    const sx y = sc_size(c, t->child[i]);
    if (!strcmp(op, "+")) r = sx_add(c, r, y);
    else if (!strcmp(op, "-")) r = sx_sub(c, r, y);
    else if (!strcmp(op, "*")) r = sx_mul(c, r, y);
    else if (!strcmp(op, "/")) r = sx_mul(c, r, sx_inv(c, y));
    else if (!strcmp(op, "mod")) r = sx_mod(c, r, y);
    else sc_fail(c, "%s in a size", op);
  }
  return r;
}

typedef enum root_kind { NO_ROOT, TWO_BY_PI, ROOT, INVERSE_ROOT, INVERSE_FOURTH } root_kind;

/* The root of a whole number, or its inverse, whose double `a` is. */
static root_kind root_of(double a, int64_t *n) {
  if (a < 1e-3 || a > 1e3) return NO_ROOT;
  const double up = nearbyint(a * a), down = nearbyint(1 / (a * a)),
               fourth = nearbyint(1 / (a * a * a * a));
  if (a == 0.79788456080286541) return TWO_BY_PI;
  if (up >= 2 && a == sqrt(up)) return *n = (int64_t)up, ROOT;
  if (down >= 2 && (a == 1 / sqrt(down) || a == (double)(1 / sqrtl((long double)down))))
    return *n = (int64_t)down, INVERSE_ROOT;
  if (fourth >= 2 && a == sqrt(1 / sqrt(fourth))) return *n = (int64_t)fourth, INVERSE_FOURTH;
  return NO_ROOT;
}

/* The shortest decimal that is this double, where it has at most 15 digits. */
static bool short_decimal(sc *c, double f, uint32_t *out) {
  enum { MOST_DIGITS = 15 };
  char text[40];
  for (int digits = 1; isfinite(f) && digits <= MOST_DIGITS; digits++) {
    int64_t n = 0;
    snprintf(text, sizeof text, "%.*e", digits - 1, f);
    const double d = strtod(text, NULL);
    if (d < f || d > f) continue;
    for (const char *p = text; *p && *p != 'e'; p++)
      if (*p >= '0' && *p <= '9') n = 10 * n + (*p - '0');
    const int e = atoi(strchr(text, 'e') + 1) - (digits - 1);
    *out =
        pv_q_mul(&c->q, pv_q_int(&c->q, f < 0 ? -n : n), pv_q_pow(&c->q, pv_q_int(&c->q, 10), e));
    return true;
  }
  return false;
}

/* A float literal: exact, or read as the root or the minus infinity that it stands for (assumption
 * `literal`, docs/reports.md). */
sx pt_literal(sc *c, double f) {
  uint32_t decimal;
  if (f == -INFINITY) return c->neginf;
  if (c->reading.decimals && short_decimal(c, f, &decimal)) return sx_q(c, decimal);
  if (c->reading.read_masks && sc_mask_literal(f)) {
    c->used.literal = c->used.masks = true;
    return c->neginf;
  }
  if (!isfinite(f)) {
    sc_fail(c, "an infinite or undefined literal");
    return c->zero;
  }
  const uint32_t q = pv_q_double(&c->q, f);
  pv_q v;
  (void)pv_q_small(&c->q, q, &v); /* doubles have 53 bits */
  int64_t n = 0;
  const root_kind is = v.n < (1 << 24) && v.n > -(1 << 24) ? NO_ROOT : root_of(fabs(f), &n);
  if (is == NO_ROOT || !c->reading.read_literals) {
    c->reading.readable |= is != NO_ROOT;
    return sx_q(c, q);
  }
  sx r = is == TWO_BY_PI ? sc_symbol_named(c, "sqrt(2/pi)") : sx_sqrt(c, sx_int(c, n));
  if (is == INVERSE_FOURTH) r = sx_sqrt(c, r); /* attention's scale on each factor */
  if (is == INVERSE_ROOT || is == INVERSE_FOURTH) r = sx_inv(c, r);
  c->used.literal = true;
  return f < 0 ? sx_neg(c, r) : r;
}

sx pt_scalar(sc *c, const rule_term *t, char *kind) {
  *kind = 'f';
  sx x = c->zero;
  switch (t->kind) {
  case RULE_INT: *kind = 'i'; return sx_int(c, t->u.i);
  case RULE_BOOLEAN: *kind = 'b'; return t->u.i ? c->yes : c->no;
  case RULE_FLOAT: return pt_literal(c, t->u.f);
  case RULE_NAME:
  case RULE_EXPR:
    x = sc_size(c, t);
    *kind = sc_has(c, x, S_INT) ? 'i' : 'f';
    return x;
  default: break;
  }
  const pt_tensor *v = pt_eval_tensor(c, t);
  if (!v || v->rank || v->lead) {
    sc_fail(c, "a tensor where a number belongs");
    return x;
  }
  *kind = v->kind;
  return pt_at(c, v, NULL);
}
