/* Sums that cancel. In float64 such a sum leaves rounding: each way to compute it gives another
 * number, which does not tell tensors apart. The gradient of a bias before a softmax is one. Where
 * every element is no more than rounding of its own terms, on every draw, its value is 0; that it
 * equals another tensor is still for a rule to show. */
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <math.h>
#include <string.h>

/* So small is rounding beside the terms' sizes: a few operators lie between them and numbers that
 * are exact. */
static const double ROUNDING = 1e-12;

/* A collective that adds up its ranks' tensors, perhaps to their mean. */
static bool adds_ranks(const rule_term *call) {
  const rule_term *how = call->n > 1 ? call->child[1] : NULL;
  return rule_is_collective(call->u.s) && how && how->kind == RULE_STRING &&
         (strcmp(how->u.s, "sum") == 0 || strcmp(how->u.s, "avg") == 0);
}

bool st_adds(const rule_term *call) {
  if (rule_operator_of(call->u.s)->growth == RULE_GROWS_TERMS) return true;
  return strcmp(call->u.s, OP_DIST_ALL_REDUCE) == 0 && adds_ranks(call);
}

static double largest(const rule_tensor *t) {
  double most = 0;
  for (int64_t i = 0; i < t->numel; i++) most = fmax(most, fabs(rule_tensor_get(t, i)));
  return most;
}

static iso_code absolute(const rule_tensor *t, rule_tensor **out, iso_error *err) {
  iso_code c = rule_tensor_new(t->dtype, &t->shape, out, err);
  for (int64_t i = 0; i < t->numel && !c; i++)
    rule_tensor_set(*out, i, fabs(rule_tensor_get(t, i)));
  return c;
}

/* The same call of the terms' sizes. */
static iso_code sizes(const state *s, const rule_term *call, rule_tensor *const *bind, uint32_t n,
                      rule_tensor **out, iso_error *err) {
  rule_tensor *size[MAX_CHILDREN] = {0}, *all[MAX_OUT] = {0};
  iso_code c = ISO_OK;
  uint32_t made = 0;
  size_t n_out = 0;
  while (made < n && !c && !(c = absolute(bind[made], &size[made], err))) made++;
  if (!c) c = s->oracle->call(s->oracle->ctx, call, size, true, all, MAX_OUT, &n_out, err);
  while (made > 0) rule_tensor_unref(size[--made]);
  if (c) return c;
  *out = all[0];
  while (n_out > 1) rule_tensor_unref(all[--n_out]);
  return ISO_OK;
}

iso_code st_cancels(const state *s, const rule_term *call, rule_tensor *const *bind, uint32_t n,
                    const rule_tensor *out, st_sum *as, iso_error *err) {
  double most = 0, terms = 0;
  *as = (st_sum){false, 0};
  if (out->numel == 0 || !rule_dtype_is_float(out->dtype) || !st_adds(call)) return ISO_OK;
  for (uint32_t i = 0; i < n; i++) {
    if (!rule_dtype_is_float(bind[i]->dtype)) return ISO_OK;
    most = fmax(most, largest(bind[i]));
    terms += (double)bind[i]->numel;
  }
  if (!(largest(out) <= ROUNDING * most * terms)) return ISO_OK;
  rule_tensor *size;
  iso_code c = sizes(s, call, bind, n, &size, err);
  if (c) return c;
  as->cancels = size->numel == out->numel;
  for (int64_t i = 0; i < out->numel && as->cancels; i++)
    as->cancels = fabs(rule_tensor_get(out, i)) <= ROUNDING * rule_tensor_get(size, i);
  for (int64_t i = 0; i < size->numel && as->cancels; i++) as->terms += rule_tensor_get(size, i);
  rule_tensor_unref(size);
  return ISO_OK;
}

static double number(const rule_term *t) {
  return t->kind == RULE_FLOAT ? t->u.f : t->kind == RULE_INT ? (double)t->u.i : 0;
}

/* What a call that has all of its operands' elements divides them by; 0: it is no such call. */
static double divided_by(const rule_term *call) {
  const rule_operator *o = rule_operator_of(call->u.s);
  const double x = call->n > 1 ? fabs(number(call->child[1])) : 0;
  if (o->rearranges || rule_is_overload(call->u.s, OP_CAT)) return 1;
  if (adds_ranks(call)) return strcmp(call->child[1]->u.s, "avg") == 0 ? call->child[0]->n : 1;
  if (o->arithmetic == RULE_ARITHMETIC_ADD)
    return call->n == 2 || (call->n == 3 && number(call->child[2]) == 1);
  if (o->arithmetic == RULE_ARITHMETIC_MUL) return x > 0 ? 1 / x : 0;
  if (o->arithmetic == RULE_ARITHMETIC_DIV) return x;
  return st_adds(call);
}

/* The number that a tensor of one element is on the last draw, of which the terms are. */
static double element(state *s, eg_node e) {
  const rule_tensor *v =
      s->rec[e.i].tensor && st_numel(s, e) == 1 ? st_val(s, e, s->n_draws - 1) : NULL;
  return v ? fabs(rule_tensor_get(v, 0)) : 0;
}

double st_terms_of(state *s, const rule_term *call, const eg_node *dep, uint32_t n) {
  const rule_arithmetic how = rule_operator_of(call->u.s)->arithmetic;
  double by = divided_by(call), sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    const rec *r = &s->rec[dep[i].i];
    if (r->cancels && !(r->terms > 0)) return 0;
    if (r->cancels) sum += r->terms;
    else if (how == RULE_ARITHMETIC_MUL && element(s, dep[i]) > 0) by = 1 / element(s, dep[i]);
    else if (how == RULE_ARITHMETIC_DIV && i > 0) by = element(s, dep[i]);
  }
  return by > 0 ? sum / by : 0;
}
