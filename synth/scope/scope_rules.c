/* A rule's step with sizes that are no numbers. The rule is proved for all sizes that meet its
 * conditions, so the step holds at all sizes of the scope if its two terms literally are the rule's
 * sides with a size over the symbols for each name, and the conditions hold of these. */
#include <string.h>

#include "synth/scope/scope_int.h"

typedef struct matching {
  scoping *z;
  const rule *r;
  const synth_cert_step *step;
  uint32_t n;
  struct {
    const char *name;
    const rule_term *is; /* a size over the left's symbols, or another value */
  } of[SCOPE_NAMES];
  uint32_t *chosen; /* calls that got their sizes of this rule; there is room for all */
  uint32_t n_chosen;
} matching;

static const rule_term *named(const matching *m, const char *name) {
  for (uint32_t i = 0; i < m->n; i++)
    if (strcmp(m->of[i].name, name) == 0) return m->of[i].is;
  return NULL;
}

static bool bind(matching *m, const char *name, const rule_term *is) {
  if (named(m, name)) return true; /* held against it later */
  if (m->n == SCOPE_NAMES || !is) return false;
  m->of[m->n].name = name;
  m->of[m->n++].is = is;
  return true;
}

static const rule_term *number_of(const matching *m, const char *name) {
  for (uint32_t i = 0; i < m->step->n_names; i++)
    if (strcmp(m->step->name[i], name) == 0) return m->step->value[i];
  return NULL;
}

/* ---- names ---- */

static bool name_value(const void *ctx, const char *name, size_sum *out) {
  const matching *m = ctx;
  const rule_term *t = named(m, name);
  return t && scope_is_size(t) && scope_size(m->z, t, out);
}

static bool size_at(matching *m, const rule_term *t, size_sum *out) {
  const size_names names = {name_value, m};
  return size_read(&m->z->space, t, &names, out);
}

/* A name that is a whole argument stands for the size there. A call whose sizes are not known yet
 * says none, but those below it may. */
static bool bind_term(matching *m, const rule_term *p, const rule_term *t) {
  if (p->kind == RULE_VAR) return true;
  if (p->kind == RULE_NAME) return bind(m, p->u.s, t);
  if (p->kind == RULE_OP) {
    if (t->kind != RULE_VAR) return false;
    const rule_term *call = m->z->call[t->u.i], *sized = m->z->sized[t->u.i];
    if (!sized && !call) return true;
    for (uint32_t k = 0; !sized && k < p->n && k < call->n; k++)
      if (p->child[k]->kind == RULE_OP && !bind_term(m, p->child[k], call->child[k])) return false;
    if (!sized) return true;
    t = sized;
  }
  if (p->kind != RULE_OP && p->kind != RULE_LIST) return true;
  if (p->n != t->n) return false;
  for (uint32_t k = 0; k < p->n; k++)
    if (!bind_term(m, p->child[k], t->child[k])) return false;
  return true;
}

/* The dimensions that variable `i` speaks of: the last of the tensor's. */
static const size_sum *dims_of(matching *m, uint32_t i) {
  const rule_variable *v = &m->r->var[i];
  const scope_dims *d = scope_dims_of(m->z, m->z->of[m->step->var[i]]);
  if (!d) return m->z->wrong = "the shape of a tensor is not known", NULL;
  if (!v->any_shape && (v->leading ? d->rank < v->n_dims : d->rank != v->n_dims)) return NULL;
  return d->of + (v->any_shape ? 0 : d->rank - v->n_dims);
}

static bool bind_variables(matching *m) {
  const size_sum zero = {0};
  for (uint32_t i = 0; i < m->r->n_vars; i++) {
    const rule_variable *v = &m->r->var[i];
    if (m->step->var[i] == SCOPE_NONE) continue;
    if (v->low || v->high) return m->z->wrong = "its integers have a range", false;
    const size_sum *dim = dims_of(m, i);
    const scope_dims *all = scope_dims_of(m->z, m->z->of[m->step->var[i]]);
    if (!dim) return false;
    for (uint32_t d = 0; d < all->rank; d++)
      if (!size_at_least(&m->z->space, &all->of[d], &zero, 1))
        return m->z->wrong = "a size may be 0", false;
    for (uint32_t d = 0; d < v->n_dims; d++)
      if (v->dim[d]->kind == RULE_NAME &&
          !bind(m, v->dim[d]->u.s, size_term(&m->z->space, &dim[d])))
        return false;
  }
  return true;
}

/* Whether no tensor of the rule changes with a size. */
static bool over_fixed(const matching *m) {
  for (uint32_t i = 0; i < m->r->n_vars; i++)
    if (m->step->var[i] != SCOPE_NONE && !scope_is_fixed(m->z, m->z->of[m->step->var[i]]))
      return false;
  return m->r->n_vars > 0;
}

static bool bind_rest(matching *m) {
  const bool guess = m->z->guess && over_fixed(m);
  for (uint32_t i = 0; i < m->step->n_names; i++) {
    const rule_term *was = m->step->value[i];
    if (named(m, m->step->name[i])) continue;
    if ((was->kind == RULE_INT || was->kind == RULE_LIST) && !guess)
      return m->z->wrong = "nothing says what its sizes are", false;
    if (!bind(m, m->step->name[i], was)) return false;
  }
  return true;
}

static bool is_number(matching *m, const rule_term *t) {
  size_sum x;
  int64_t number;
  if (scope_is_size(t)) return scope_size(m->z, t, &x) && size_is_number(&x, &number);
  for (uint32_t k = 0; k < t->n; k++)
    if (!is_number(m, t->child[k])) return false;
  return true;
}

/* Whether all names of an expression stand for what they stood for at the captured sizes. */
static bool as_captured(matching *m, const rule_term *t) {
  if (t->kind == RULE_NAME) {
    const rule_term *is = named(m, t->u.s), *was = number_of(m, t->u.s);
    return is && (!was || is == was || is_number(m, is));
  }
  for (uint32_t k = 0; k < t->n; k++)
    if (!as_captured(m, t->child[k])) return false;
  return true;
}

/* ---- sides ---- */

/* The term at a place of the rule that is no operator. Returns: NULL where that is not known. */
static const rule_term *value_at(matching *m, const rule_term *p, const rule_term *was) {
  size_sum x;
  if (p->kind == RULE_NAME) return named(m, p->u.s);
  if (was->kind == RULE_FLOAT) return p->kind != RULE_EXPR || as_captured(m, p) ? was : NULL;
  if (p->kind == RULE_EXPR) return size_at(m, p, &x) ? size_term(&m->z->space, &x) : NULL;
  return p;
}

static bool fits(matching *m, const rule_term *p, const rule_term *was, const rule_term **out);

/* A call over terms: its sizes are those that the rule has there. Of one whose sizes are known they
 * are compared. */
static bool fits_call(matching *m, const rule_term *p, uint32_t t) {
  scoping *z = m->z;
  const rule_term *call = z->call[t], *sized = z->sized[t];
  if (!call || call->n != p->n || strcmp(call->u.s, p->u.s) != 0) return false;
  if (!sized && (z->captured[t] || !z->choose))
    return z->wrong = "the sizes of an operator are not known", false;
  const rule_term **child = iso_arena_alloc(&z->s->arena, (p->n + 1) * sizeof *child);
  for (uint32_t k = 0; k < p->n; k++)
    if (!child || !fits(m, p->child[k], call->child[k], &child[k])) return false;
  if (!sized) {
    m->chosen[m->n_chosen++] = t;
    return (z->sized[t] = rule_op(&z->s->arena, call->u.s, child, p->n)) != NULL;
  }
  for (uint32_t k = 0; k < p->n; k++)
    if (!scope_alike(z, sized->child[k], child[k]))
      return z->wrong = "its sizes are others than those of the captures", false;
  return true;
}

static bool fits(matching *m, const rule_term *p, const rule_term *was, const rule_term **out) {
  scoping *z = m->z;
  *out = was;
  if (p->kind == RULE_VAR)
    return was->kind == RULE_VAR && m->step->var[p->u.i] != SCOPE_NONE &&
           scope_root(z, (uint32_t)was->u.i) == scope_root(z, z->of[m->step->var[p->u.i]]);
  if (p->kind == RULE_OP) return was->kind == RULE_VAR && fits_call(m, p, (uint32_t)was->u.i);
  if (p->kind != RULE_LIST) return (*out = value_at(m, p, was)) != NULL;
  if (was->kind != RULE_LIST || was->n != p->n) return false;
  const rule_term **child = iso_arena_alloc(&z->s->arena, (p->n + 1) * sizeof *child);
  for (uint32_t k = 0; k < p->n; k++)
    if (!child || !fits(m, p->child[k], was->child[k], &child[k])) return false;
  return (*out = rule_list(&z->s->arena, child, p->n)) != NULL;
}

static bool fits_side(matching *m, const rule_term *side, uint32_t t) {
  const rule_term *at = rule_var(&m->z->s->arena, t), *out;
  return at && fits(m, side, at, &out);
}

static bool fits_variables(matching *m) {
  size_sum x;
  for (uint32_t i = 0; i < m->r->n_vars; i++) {
    const rule_variable *v = &m->r->var[i];
    const size_sum *dim = m->step->var[i] != SCOPE_NONE ? dims_of(m, i) : NULL;
    for (uint32_t d = 0; dim && d < v->n_dims; d++)
      if (v->dim[d]->kind != RULE_NONE && !(size_at(m, v->dim[d], &x) && size_equal(&x, &dim[d])))
        return m->z->wrong = "a shape is not that of the rule", false;
  }
  return true;
}

/* ---- conditions ---- */

static bool compared(matching *m, const char *op, const rule_term *a, const rule_term *b) {
  const size_space *s = &m->z->space;
  size_sum x, y;
  if (!size_at(m, a, &x) || !size_at(m, b, &y)) return false;
  if (strcmp(op, "=") == 0) return size_equal(&x, &y);
  if (strcmp(op, ">=") == 0) return size_at_least(s, &x, &y, 0);
  if (strcmp(op, ">") == 0) return size_at_least(s, &x, &y, 1);
  if (strcmp(op, "<=") == 0) return size_at_least(s, &y, &x, 0);
  if (strcmp(op, "<") == 0) return size_at_least(s, &y, &x, 1);
  if (strcmp(op, "!=") == 0) return size_at_least(s, &x, &y, 1) || size_at_least(s, &y, &x, 1);
  return false;
}

/* A condition whose names all keep their captured values held at the captured sizes, and so holds
 * at all. */
static bool holds(matching *m, const rule_term *t) {
  if (t->kind != RULE_EXPR) return false;
  if (as_captured(m, t)) return true;
  const bool all = strcmp(t->u.s, "and") == 0, any = strcmp(t->u.s, "or") == 0;
  if (!all && !any) return t->n == 2 && compared(m, t->u.s, t->child[0], t->child[1]);
  for (uint32_t k = 0; k < t->n; k++)
    if (holds(m, t->child[k]) != all) return any;
  return all;
}

static bool conditions_hold(matching *m) {
  for (uint32_t i = 0; i < m->r->n_where; i++)
    if (!holds(m, m->r->where[i]))
      return m->z->wrong = "a condition of it is not shown for all sizes", false;
  return true;
}

/* ---- steps ---- */

/* Whether the rule is proved, and that rests on nothing that was looked at at one size: that parts
 * are numbers, that rows of masks keep an element. */
static bool proved(scoping *z, const rule *r) {
  const st_rules *all = &z->s->rules;
  for (size_t i = 0; i < rule_set_count(all->set); i++)
    if (rule_set_at(all->set, i) == r)
      return all->info[i].verdict.status == RULE_PROVED &&
             !(all->info[i].verdict.rests_on & SCOPE_RESTS);
  return false;
}

/* Binds the step's names. Returns: false without memory. */
static bool take_names(const matching *m) {
  const synth_cert_step *x = m->step;
  iso_arena *a = &m->z->s->res->arena;
  const char **name = iso_arena_alloc(a, (x->n_names + 1) * sizeof *name);
  const rule_term **value = iso_arena_alloc(a, (x->n_names + 1) * sizeof *value);
  synth_sized_step *out = &m->z->taken;
  if (!name || !value) return false;
  for (uint32_t i = 0; i < x->n_names; i++) {
    const rule_term *is = named(m, x->name[i]);
    if (!is || is == x->value[i]) continue;
    name[out->n_names] = x->name[i];
    value[out->n_names++] = is;
  }
  out->name = name;
  out->value = value;
  return true;
}

bool scope_rule_step(scoping *z, const synth_cert_step *x) {
  matching m = {.z = z, .r = x->applied, .step = x, .chosen = z->chosen};
  const uint32_t a = z->of[x->a], b = z->of[x->b];
  const rule_term *at[2] = {rule_var(&z->s->arena, a), rule_var(&z->s->arena, b)};
  z->wrong = "it is not of the rule's form there";
  if (!at[0] || !at[1]) return false;
  if (!proved(z, x->applied)) return z->wrong = "it is tested, and not proved", false;
  const bool fits = bind_variables(&m) && bind_term(&m, x->applied->lhs, at[0]) &&
                    bind_term(&m, x->applied->rhs, at[1]) && bind_rest(&m) && fits_variables(&m) &&
                    conditions_hold(&m) && fits_side(&m, x->applied->lhs, a) &&
                    fits_side(&m, x->applied->rhs, b) && take_names(&m);
  /* The sizes of a rule that does not fit are no choice for another step. */
  for (uint32_t i = 0; i < m.n_chosen && !fits; i++) z->sized[m.chosen[i]] = NULL;
  return fits;
}
