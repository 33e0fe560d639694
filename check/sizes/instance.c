/* A rule's step with sizes that are no numbers: its two terms are literally the rule's sides, with
 * a size over the symbols for each name, and the conditions hold of these for all values of the
 * symbols. The rule itself is proved for all sizes that meet its conditions. */
#include <string.h>

#include "check/sizes/sizes_int.h"

typedef struct place {
  chk_chain *z;
  const rule *r;
  const chk_step *x;
  const chk_sizes_step *by;
  chk_sum sum; /* what a name was last found to be */
} place;

/* The value of a name: as the scope says, else as at the captured sizes. */
static const rule_term *named(const place *at, const char *name) {
  const chk_state *k = at->z->k;
  for (uint32_t i = 0; i < at->by->n_names; i++)
    if (strcmp(k->cert.name[at->by->first_name + i].name, name) == 0)
      return k->cert.name[at->by->first_name + i].value;
  for (uint32_t i = 0; i < at->x->n_names; i++)
    if (strcmp(k->cert.name[at->x->first_name + i].name, name) == 0)
      return k->cert.name[at->x->first_name + i].value;
  return NULL;
}

static const chk_sum *sum_of(const void *ctx, const char *name) {
  place *at = (place *)(uintptr_t)ctx; /* ours */
  const rule_term *t = named(at, name);
  return t && chk_size_of(at->z, t, &at->sum) ? &at->sum : NULL;
}

static bool size_at(place *at, const rule_term *t, chk_sum *out) {
  const chk_meaning names = {sum_of, at};
  return chk_sum_read(&at->z->atoms, t, &names, out);
}

/* Whether each name has at the captured sizes the value of the step. */
static bool names_are_captured(const place *at) {
  const chk_state *k = at->z->k;
  for (uint32_t i = 0; i < at->by->n_names; i++) {
    const chk_name *n = &k->cert.name[at->by->first_name + i], *was = NULL;
    for (uint32_t j = 0; j < at->x->n_names; j++)
      if (strcmp(k->cert.name[at->x->first_name + j].name, n->name) == 0)
        was = &k->cert.name[at->x->first_name + j];
    if (!was || !chk_chain_is_captured(at->z, n->value, was->value)) return false;
  }
  return true;
}

/* ---- variables ---- */

static bool fits_variable(place *at, const rule_variable *v, uint32_t t) {
  const chk_dims *d = chk_dims_of(at->z, t);
  const chk_sum zero = {0};
  chk_sum x;
  if (v->low || v->high) return at->z->wrong = "its integers have a range", false;
  if (!d) return at->z->wrong = "the shape of a tensor is not known", false;
  for (uint32_t i = 0; i < d->rank; i++)
    if (!chk_sum_at_least(&at->z->atoms, &d->of[i], &zero, 1))
      return at->z->wrong = "a size may be 0", false;
  at->z->wrong = "a shape is not that of the rule";
  if (v->any_shape) return true;
  if (v->leading ? d->rank < v->n_dims : d->rank != v->n_dims) return false;
  for (uint32_t i = 0; i < v->n_dims; i++)
    if (v->dim[i]->kind != RULE_NONE &&
        !(size_at(at, v->dim[i], &x) && chk_sum_equal(&x, &d->of[d->rank - v->n_dims + i])))
      return false;
  return true;
}

/* ---- sides ---- */

static bool is_number(place *at, const rule_term *t) {
  chk_sum s;
  int64_t number;
  if (chk_is_size(t)) return chk_size_of(at->z, t, &s) && chk_sum_is_number(&s, &number);
  for (uint32_t i = 0; i < t->n; i++)
    if (!is_number(at, t->child[i])) return false;
  return true;
}

/* Whether all names in an expression keep their values of the captured sizes: then a condition that
 * held of it there holds at all sizes. */
static bool as_captured(place *at, const rule_term *t) {
  if (t->kind == RULE_NAME) {
    const rule_term *is = named(at, t->u.s);
    return is && (is->kind == RULE_FLOAT || is_number(at, is));
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!as_captured(at, t->child[i])) return false;
  return true;
}

/* Matches a part of the rule with the argument in its place, with its sizes. */
static bool literally(place *at, const rule_term *p, const rule_term *t) {
  chk_chain *z = at->z;
  chk_sum x, y;
  switch (p->kind) {
  case RULE_VAR: {
    const uint32_t v = z->k->cert.var[at->x->first_var + p->u.i];
    return t->kind == RULE_VAR && v != CHK_NONE &&
           chk_chain_root(z, v) == chk_chain_root(z, (uint32_t)t->u.i);
  }
  case RULE_NAME: {
    const rule_term *is = named(at, p->u.s);
    return is && chk_chain_alike(z, is, t, false);
  }
  case RULE_EXPR:
    if (t->kind == RULE_FLOAT) return as_captured(at, p); /* held against it there */
    return size_at(at, p, &x) && chk_size_of(z, t, &y) && chk_sum_equal(&x, &y);
  case RULE_OP:
    t = t->kind == RULE_VAR ? z->sized[t->u.i] : NULL;
    if (!t) return z->wrong = "the sizes of an operator are not known", false;
    if (t->kind != RULE_OP || strcmp(t->u.s, p->u.s) != 0) return false;
    break;
  case RULE_LIST:
    if (t->kind != RULE_LIST) return false;
    break;
  default: return chk_chain_alike(z, p, t, false);
  }
  if (p->n != t->n) return false;
  for (uint32_t i = 0; i < p->n; i++)
    if (!literally(at, p->child[i], t->child[i])) return false;
  return true;
}

/* ---- conditions ---- */

static bool compared(place *at, const rule_term *t) {
  const chk_atoms *a = &at->z->atoms;
  chk_sum x, y;
  if (t->n != 2 || !size_at(at, t->child[0], &x) || !size_at(at, t->child[1], &y)) return false;
  if (strcmp(t->u.s, "=") == 0) return chk_sum_equal(&x, &y);
  if (strcmp(t->u.s, ">=") == 0) return chk_sum_at_least(a, &x, &y, 0);
  if (strcmp(t->u.s, ">") == 0) return chk_sum_at_least(a, &x, &y, 1);
  if (strcmp(t->u.s, "<=") == 0) return chk_sum_at_least(a, &y, &x, 0);
  if (strcmp(t->u.s, "<") == 0) return chk_sum_at_least(a, &y, &x, 1);
  return strcmp(t->u.s, "!=") == 0 &&
         (chk_sum_at_least(a, &x, &y, 1) || chk_sum_at_least(a, &y, &x, 1));
}

static bool holds(place *at, const rule_term *t) {
  if (t->kind != RULE_EXPR) return false;
  if (as_captured(at, t)) return true;
  const bool all = strcmp(t->u.s, "and") == 0;
  if (!all && strcmp(t->u.s, "or") != 0) return compared(at, t);
  for (uint32_t i = 0; i < t->n; i++)
    if (holds(at, t->child[i]) != all) return !all;
  return all;
}

bool chk_chain_instance(chk_chain *z, const chk_step *x, const chk_sizes_step *by) {
  chk_state *k = z->k;
  const rule *r = rule_set_at(k->rules.rule[x->rule], 0);
  place at = {.z = z, .r = r, .x = x, .by = by};
  const rule_term a = {.kind = RULE_VAR, .u = {.i = x->a}},
                  b = {.kind = RULE_VAR, .u = {.i = x->b}};
  z->wrong = "it is tested, and not proved";
  if (r->claimed != RULE_PROVED || (k->rules.rests_on[x->rule] & CHK_SIZES_REST)) return false;
  z->wrong = "a name is another one at the captured sizes";
  if (!names_are_captured(&at)) return false;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const uint32_t t = k->cert.var[x->first_var + i];
    if (t != CHK_NONE && !fits_variable(&at, &r->var[i], t)) return false;
  }
  z->wrong = "a condition of it is not shown for all sizes";
  for (uint32_t i = 0; i < r->n_where; i++)
    if (!holds(&at, r->where[i])) return false;
  z->wrong = "a term is not its side";
  return literally(&at, r->lhs, &a) && literally(&at, r->rhs, &b);
}
