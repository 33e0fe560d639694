/* A rule's conditions as diagrams. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/prove/prove.h"

/* The place of a condition among all parts of the rule's conditions, counted from the outside in:
 * equal for one term only. */
static bool count_to(const rule_term *t, const rule_term *at, unsigned *place) {
  ++*place;
  if (t == at) return true;
  for (uint32_t i = 0; t->kind == RULE_EXPR && i < t->n; i++)
    if (count_to(t->child[i], at, place)) return true;
  return false;
}

/* b divides a, where that is asked for outright: a = b * something. */
static sx multiple(sc *c, const rule_term *at, sx a, sx b) {
  char name[40];
  unsigned place = 0;
  bool found = false;
  for (uint32_t i = 0; i < c->r->n_where && !found; i++)
    found = count_to(c->r->where[i], at, &place);
  ISO_CHECK(found); /* two quotients under one name would be taken for equal */
  snprintf(name, sizeof name, "quotient %u", place);
  for (size_t i = 0; i < c->store.n_syms; i++)
    if (c->store.sym[i].role == 'q' && !strcmp(c->store.sym[i].name, name)) {
      sx_map map[SC_MAX_GUESSES];
      for (size_t k = 0; k < c->here.n_bound_sizes; k++)
        map[k] = (sx_map){c->here.bound_size[k].from, c->here.bound_size[k].to};
      const sx q = sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
      return sx_eq(
          c, a,
          sx_mul(c, b, c->here.n_bound_sizes ? sx_subst(c, q, map, c->here.n_bound_sizes) : q));
    }
  char *copy = strdup(name);
  if (!copy) {
    c->fault.no_memory = true;
    sc_fail(c, "out of memory");
    return c->no;
  }
  if (c->terms.n_owned == 256) {
    free(copy);
    sc_fail(c, "too many names");
    return c->no;
  }
  c->terms.owned[c->terms.n_owned++] = copy;
  const bool pos = sc_has(c, a, S_POS) && sc_has(c, b, S_POS);
  const size_t sym = c->store.n_syms;
  const sx q = sc_symbol(c, copy, 'q', S_INT | (pos ? S_POS | S_NONNEG | S_NONZERO : 0u));
  if (!c->fault.failed && pos) c->store.sym[sym].has_low = true, c->store.sym[sym].low = 1;
  return sx_eq(c, a, sx_mul(c, b, q));
}

static sx condition(sc *c, const rule_term *t, bool outright) {
  if (c->fault.failed) return c->no;
  const char *op = t->kind == RULE_EXPR ? t->u.s : "";
  if (!strcmp(op, "and") || !strcmp(op, "or")) {
    sx r = *op == 'a' ? c->yes : c->no;
    for (uint32_t i = 0; i < t->n; i++) {
      const sx x = condition(c, t->child[i], outright && *op == 'a');
      r = *op == 'a' ? sx_and(c, r, x) : sx_or(c, r, x);
    }
    return r;
  }
  if (!strcmp(op, "not")) return sx_not(c, condition(c, t->child[0], false));
  if (t->kind == RULE_BOOLEAN) return t->u.i ? c->yes : c->no;
  if (t->n < 2) {
    sc_fail(c, "a condition that is not understood");
    return c->no;
  }
  const rule_term *l = t->child[0], *r = t->child[1];
  const bool mod = !strcmp(op, "=") && l->kind == RULE_EXPR && !strcmp(l->u.s, "mod") &&
                   r->kind == RULE_INT && r->u.i == 0;
  if (outright && mod) return multiple(c, t, sc_size(c, l->child[0]), sc_size(c, l->child[1]));
  const sx a = sc_size(c, l), b = sc_size(c, r);
  if (!strcmp(op, "divides"))
    return outright ? multiple(c, t, b, a) : sx_eq(c, sx_mod(c, b, a), c->zero);
  if (!strcmp(op, "in")) return sx_and(c, sx_le(c, b, a), sx_lt(c, a, sc_size(c, t->child[2])));
  if (!strcmp(op, "=")) return sx_eq(c, a, b);
  if (!strcmp(op, "!=")) return sx_not(c, sx_eq(c, a, b));
  if (!strcmp(op, "<")) return sx_lt(c, a, b);
  if (!strcmp(op, "<=")) return sx_le(c, a, b);
  if (!strcmp(op, ">")) return sx_lt(c, b, a);
  if (!strcmp(op, ">=")) return sx_le(c, b, a);
  sc_fail(c, "a condition %.40s", op);
  return c->no;
}

sx sc_condition(sc *c, const rule_term *t) { return condition(c, t, true); }
