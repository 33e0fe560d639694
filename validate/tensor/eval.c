/* Terms to tensors: calls by the definition of their operator, each term once. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "rules/operators.h"
#include "validate/ops/ops.h"
#include "validate/prove/prove.h"

static const pt_value *getitem(sc *c, const rule_term *t) {
  int64_t i;
  if (t->n != 2 || t->child[1]->kind != RULE_INT) {
    sc_fail(c, "a getitem without a number");
    return NULL;
  }
  const pt_value *v = pt_eval(c, t->child[0]);
  if (!v) return NULL;
  i = t->child[1]->u.i;
  if (!v->several) {
    sc_fail(c, "getitem of one tensor");
    return NULL;
  }
  if (i < 0 && v->t) i += (int64_t)v->n;
  if (i < 0) {
    sc_fail(c, "getitem from the end of unknown many");
    return NULL;
  }
  return pt_one(c, pt_piece(c, v, (size_t)i));
}

/* A verdict about this operator is relative to its definition, where it is not one of PyTorch's. */
static void note(sc *c, const char *op) {
  if (!strncmp(op, "aten::", 6) || !strncmp(op, "dist::", 6)) return;
  for (size_t i = 0; i < c->terms.n_relative; i++)
    if (!strcmp(c->terms.relative[i], op)) return;
  if (c->terms.n_relative < SC_MAX_RELATIVE) c->terms.relative[c->terms.n_relative++] = op;
}

static bool own_definition(const char *op, pt_definition *out) {
  return pt_define_elementwise(op, out) || pt_define_unary(op, out) || pt_define_layout(op, out) ||
         pt_define_views(op, out) || pt_define_cat(op, out) || pt_define_slice(op, out) ||
         pt_define_pick(op, out) || pt_define_fill(op, out) || pt_define_reduce(op, out) ||
         pt_define_nn(op, out) || pt_define_window(op, out) || pt_define_index(op, out) ||
         pt_define_backward(op, out) || pt_define_order(op, out) || pt_define_dist(op, out) ||
         pt_define_composite(op, out) || pt_define_kernel(op, out) || pt_define_written(op, out);
}

/* "special_exp2" is exp2, and "view_copy" the view that it copies; their arguments have the same
 * names. operator: the names say which one is meant. */
bool pt_define_any(const char *op, pt_definition *out) {
  static const char special[] = "aten::special_", copy[] = "_copy";
  char name[96];
  if (own_definition(op, out)) return true;
  if (strlen(op) >= sizeof name) return false;
  if (!strncmp(op, special, sizeof special - 1)) {
    snprintf(name, sizeof name, "aten::%s", op + sizeof special - 1);
    return own_definition(name, out);
  }
  const size_t base = strcspn(op, ".");
  if (base < sizeof copy || strncmp(op + base - (sizeof copy - 1), copy, sizeof copy - 1))
    return false;
  snprintf(name, sizeof name, "%.*s%s", (int)(base - (sizeof copy - 1)), op, op + base);
  return own_definition(name, out);
}

static sx machine_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_wrap(c, pt_at(c, t->in[0], idx), RULE_I64);
}

static const pt_tensor *machine(sc *c, const pt_tensor *t) {
  if (!t || t->kind != 'i' || t->narrow || t->wrapped) return t;
  return pt_like(c, t, 'i', machine_elem);
}

/* Whether an operator's integers are among those that it was given, or smaller, or sizes and
 * places: none wraps. */
static bool computes_nothing(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->moves || o->rearranges || o->identity || o->part || o->joins || o->fills || o->places ||
         o->choice == RULE_CHOICE_BOUND || o->choice == RULE_CHOICE_EXTREME ||
         o->choice == RULE_CHOICE_REMAINDER;
}

/* The results of a call, whose integers wrap (validate/expr/wrap.c). */
static const pt_value *machine_results(sc *c, const char *op, const pt_value *v) {
  if (!c->reading.machine || computes_nothing(op)) return v;
  bool some = v->base && v->base->kind == 'i';
  for (size_t i = 0; v->t && i < v->n; i++) some |= v->t[i]->kind == 'i';
  if (!some) return v;
  pt_value *r = sc_take(c, sizeof *r);
  const pt_tensor **t = v->t ? sc_take(c, (v->n + 1) * sizeof *t) : NULL;
  if (!r || (v->t && !t)) return NULL;
  *r = *v;
  r->t = t;
  r->base = machine(c, v->base);
  for (size_t i = 0; v->t && i < v->n; i++) t[i] = machine(c, v->t[i]);
  return r;
}

static const pt_value *call(sc *c, const rule_term *t) {
  if (!strcmp(t->u.s, "getitem")) return getitem(c, t);
  pt_definition d;
  const bool found = pt_define_any(t->u.s, &d);
  const rule_schema *schema = found ? rule_schemas_find(c->schemas, t->u.s) : NULL;
  if (!schema) {
    sc_fail(c, "%s has no definition here", t->u.s);
    return NULL;
  }
  if (t->n != schema->n_args) {
    sc_fail(c, "%s with %" PRIu32 " arguments instead of %zu", t->u.s, t->n, schema->n_args);
    return NULL;
  }
  pt_args a = {c, t, schema};
  const pt_value *v = d.f(&a, d.which);
  if (!v) sc_fail(c, "%s is not modelled with these arguments", t->u.s);
  else note(c, t->u.s);
  if (v && !c->fault.failed) v = pt_typed_results(&a, v);
  if (v && !c->fault.failed) v = machine_results(c, t->u.s, v);
  return c->fault.failed ? NULL : v;
}

static void remember(sc *c, const rule_term *t, const pt_value *v) {
  if (iso_grow(c->terms.memo, c->terms.cap_memo, c->terms.n_memo + 1)) {
    c->terms.memo[c->terms.n_memo++] = (sc_memo){t, v};
    return;
  }
  c->fault.no_memory = true;
  sc_fail(c, "out of memory");
}

/* Whether an argument of t could not be run: then t cannot be. Of a call of several results, which
 * is no tensor, one may be taken. */
static bool lacks_argument(const sc *c, const rule_term *t) {
  if (t->kind == RULE_OP && !strcmp(t->u.s, "getitem")) return false;
  for (uint32_t k = 0; k < t->n; k++) {
    const rule_term *a = t->child[k];
    if (a->kind == RULE_LIST && lacks_argument(c, a)) return true;
    for (size_t i = 0; i < c->terms.n_memo && a->kind == RULE_OP; i++)
      if (!c->terms.memo[i].v && rule_term_eq(c->terms.memo[i].t, a)) return true;
  }
  return false;
}

const pt_value *pt_eval(sc *c, const rule_term *t) {
  if (c->fault.failed) return NULL;
  for (size_t i = 0; i < c->terms.n_memo; i++)
    if (c->terms.memo[i].t == t || (t->kind == RULE_OP && rule_term_eq(c->terms.memo[i].t, t))) {
      if (!c->terms.memo[i].v) sc_fail(c, "a term that has no value");
      return c->terms.memo[i].v;
    }
  const pt_value *v = NULL;
  bool lost = false;
  char kind = 'f';
  if (++c->budget.depth > 400) sc_fail(c, "a term too deep");
  else if (t->kind == RULE_VAR) v = pt_one(c, pt_variable(c, t->u.i));
  else if (t->kind == RULE_OP) {
    v = call(c, t);
    if (c->fault.failed && c->hooks.otherwise) {
      const pt_tensor *x = lacks_argument(c, t) ? NULL : c->hooks.otherwise(c, t);
      lost = !x;
      v = pt_one(c, x);
    }
    if (v && !c->fault.failed) v = sc_cut_value(c, t, v);
  } else if (t->kind == RULE_INT || t->kind == RULE_FLOAT || t->kind == RULE_BOOLEAN ||
             t->kind == RULE_NAME || t->kind == RULE_EXPR) {
    const sx x = pt_scalar(c, t, &kind);
    v = c->fault.failed ? NULL : pt_one(c, pt_scalar_tensor(c, x, kind));
  } else sc_fail(c, "a literal where a tensor belongs");
  c->budget.depth--;
  /* A term that could not be run is not run once more for each term that it is in. */
  const bool none = !v || c->fault.failed;
  if (!none || (lost && !c->fault.no_memory)) remember(c, t, none ? NULL : v);
  return none || c->fault.failed ? NULL : v;
}

const pt_tensor *pt_eval_tensor(sc *c, const rule_term *t) {
  const pt_value *v = pt_eval(c, t);
  if (!v) return NULL;
  if (v->several) {
    sc_fail(c, "several tensors where one belongs");
    return NULL;
  }
  return v->t[0];
}
