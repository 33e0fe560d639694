/* The names of a rule as symbols: sizes, attributes, and the signs that conditions give them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/prove/prove.h"

static bool declared(const sc *c, const char *name) {
  for (size_t i = 0; i < c->store.n_syms; i++)
    if (c->store.sym[i].role != 'x' && !strcmp(c->store.sym[i].name, name)) return true;
  return false;
}

static void declare(sc *c, const char *name, char role, unsigned flags) {
  if (declared(c, name)) return;
  const size_t at = c->store.n_syms;
  if (role == 's') flags |= S_INT | S_POS | S_NONNEG | S_NONZERO;
  sc_symbol(c, name, role, flags);
  if (c->fault.failed) return;
  if (role == 's' || (flags & (S_INT | S_NONNEG)) == (S_INT | S_NONNEG))
    c->store.sym[at].has_low = true, c->store.sym[at].low = (flags & S_POS) != 0;
}

static void names_of(sc *c, const rule_term *t, char role, unsigned flags) {
  if (t->kind == RULE_NAME) declare(c, t->u.s, role, flags);
  if (t->kind == RULE_EXPR)
    for (uint32_t i = 0; i < t->n; i++) names_of(c, t->child[i], role, flags);
}

/* The signs that condition `t`, or one of its parts joined by `and`, gives to a name outright. */
static unsigned sign_from(const rule_term *t, const char *name) {
  unsigned f = 0;
  if (t->kind != RULE_EXPR) return f;
  if (!strcmp(t->u.s, "and"))
    for (uint32_t i = 0; i < t->n; i++) f |= sign_from(t->child[i], name);
  if (t->n != 2) return f;
  const rule_term *a = t->child[0], *b = t->child[1];
  const bool left = a->kind == RULE_NAME && !strcmp(a->u.s, name),
             right = b->kind == RULE_NAME && !strcmp(b->u.s, name);
  const rule_term *v = left ? b : a;
  if (left == right || (v->kind != RULE_INT && v->kind != RULE_FLOAT)) return f;
  const double k = v->kind == RULE_INT ? (double)v->u.i : v->u.f;
  const bool less = !strcmp(t->u.s, "<"), more = !strcmp(t->u.s, ">"), le = !strcmp(t->u.s, "<="),
             ge = !strcmp(t->u.s, ">=");
  const bool strict = left ? more : less, weak = left ? ge : le;
  if ((strict && k >= 0) || (weak && k > 0)) f |= S_POS | S_NONNEG | S_NONZERO;
  if (weak && k >= 0) f |= S_NONNEG;
  if (!strcmp(t->u.s, "!=") && !(k < 0) && !(k > 0)) f |= S_NONZERO;
  return f;
}

/* Signs that the conditions give to a name outright: part of its nodes from the start. */
static unsigned signs(const sc *c, const char *name) {
  unsigned f = 0;
  for (uint32_t i = 0; i < c->r->n_where; i++) f |= sign_from(c->r->where[i], name);
  return f;
}

static void names_in_calls(sc *c, const rule_term *t, bool integers) {
  if (t->kind != RULE_OP) {
    if (t->kind == RULE_LIST)
      for (uint32_t i = 0; i < t->n; i++) names_in_calls(c, t->child[i], integers);
    return;
  }
  const rule_schema *s = rule_schemas_find(c->schemas, t->u.s);
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_term *k = t->child[i];
    const rule_arg_type type = s && i < s->n_args ? s->arg[i].type : RULE_ARG_TENSOR;
    const bool whole = type == RULE_ARG_INT || type == RULE_ARG_INTS;
    const uint32_t n = k->kind == RULE_LIST ? k->n : 1;
    for (uint32_t j = 0; j < n; j++) {
      const rule_term *e = k->kind == RULE_LIST ? k->child[j] : k;
      if (e->kind == RULE_OP || e->kind == RULE_LIST) names_in_calls(c, e, integers);
      else if (whole == integers && e->kind == RULE_NAME)
        declare(c, e->u.s, 'a', (whole ? S_INT : 0u) | signs(c, e->u.s));
      else if (e->kind == RULE_EXPR && integers) names_of(c, e, 'a', S_INT);
    }
  }
}

void sc_declare_names(sc *c) {
  const rule *r = c->r, *whole = c->look && c->look->of ? c->look->of : r;
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t k = 0; k < r->var[i].n_dims; k++) {
      names_of(c, r->var[i].dim[k], 's', 0);
      char *name = r->var[i].dim[k]->kind == RULE_NONE ? malloc(32) : NULL;
      if (name) {
        snprintf(name, 32, "size %u %u", i, k); /* no name that a rule can give */
        if (c->terms.n_owned == 256) sc_fail(c, "too many names"), free(name);
        else c->terms.owned[c->terms.n_owned++] = name, declare(c, name, 's', 0);
      }
    }
  for (uint32_t i = 0; i < r->n_attrs; i++) {
    if (r->attr[i].kind == 'l') continue;
    declare(c, r->attr[i].name, 'a',
            (r->attr[i].kind == 'i' ? S_INT : 0u) | signs(c, r->attr[i].name));
  }
  for (int integers = 1; integers >= 0; integers--) {
    names_in_calls(c, whole->lhs, integers);
    names_in_calls(c, whole->rhs, integers);
  }
  for (uint32_t i = 0; i < r->n_where; i++) {
    const rule_term *t = r->where[i];
    for (uint32_t k = 0; k < t->n; k++) names_of(c, t->child[k], 'a', S_INT);
  }
}
