/* An application of a rule, matched again against the rule, before anybody is told that the outputs
 * are equal.
 *
 * The matcher that found it is a search, and knows several spellings of one thing; this looks at
 * the rule's own two sides, at the recorded substitution for its variables, sizes and attributes,
 * and at the e-nodes as they were added. Equalities that the match needs are handed to the caller,
 * who has them explained by other steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "synth/joint/joint.h"
#include "synth/result/result.h"

#include "egraph/base/vec.h"

/* As in substitution.c: the tolerance within which a real that a condition asks for is read. */
static const double reading_tol = 1e-15;

typedef struct match {
  state *s;
  const rule *r;
  const instance *inst;
  size_t next; /* of inst->at */
  premise *need;
  size_t n, cap;
  const char *why; /* it does not fit */
  bool starved;
} match;

static bool refuse(match *m, const char *why) {
  if (!m->why) m->why = why;
  return false;
}

/* ---- sizes and attributes ---- */

static const rule_term *find(const instance *x, const char *name) {
  for (uint32_t i = 0; i < x->n_names; i++)
    if (strcmp(x->name[i], name) == 0) return x->value[i];
  return NULL;
}

static bool value_of(const void *ctx, const char *name, rule_term *out) {
  const rule_term *v = find(ctx, name);
  if (!v || (v->kind != RULE_INT && v->kind != RULE_FLOAT)) return false;
  *out = (rule_term){.kind = v->kind, .u = v->u};
  return true;
}

/* A declared real is a float, a declared list a list of integers, everything else an integer. */
static bool right_kind(const rule *r, const char *name, const rule_term *v) {
  char kind = 'i';
  for (uint32_t i = 0; i < r->n_attrs; i++)
    if (strcmp(r->attr[i].name, name) == 0) kind = r->attr[i].kind;
  if (kind == 'f') return v->kind == RULE_FLOAT && isfinite(v->u.f);
  for (uint32_t i = 0; kind == 'l' && i < v->n; i++)
    if (v->child[i]->kind != RULE_INT) return false;
  return v->kind == (kind == 'l' ? RULE_LIST : RULE_INT);
}

static bool sizes_are(const instance *x, const rule_term *t) {
  const rule_term *v = t->kind == RULE_NAME ? find(x, t->u.s) : NULL;
  if (t->kind == RULE_NAME && !(v && v->kind == RULE_INT && v->u.i >= 1)) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!sizes_are(x, t->child[i])) return false;
  return true;
}

static bool conditions_hold(match *m) {
  const rule_values at = {value_of, m->inst, reading_tol};
  for (uint32_t i = 0; i < m->inst->n_names; i++)
    if (!right_kind(m->r, m->inst->name[i], m->inst->value[i]))
      return refuse(m, "a name stands for a value of another kind");
  for (uint32_t i = 0; i < m->r->n_where; i++)
    if (rule_condition_at(m->r->where[i], &at) != RULE_TRUE)
      return refuse(m, "a condition does not hold");
  return true;
}

/* ---- variables ---- */

static bool variable_fits(match *m, const rule_variable *v, eg_node e) {
  const rule_shape *shape = &m->s->rec[e.i].shape;
  const rule_values at = {value_of, m->inst, 0};
  int64_t size;
  if (v->low || v->high) return refuse(m, "it holds for a range of values only");
  if (!rule_variable_takes(v, st_dtype(m->s, e)))
    return refuse(m, "a variable stands for a tensor of another kind");
  for (uint32_t d = 0; d < shape->rank; d++)
    if (shape->dim[d] < 1) return refuse(m, "a variable stands for an empty tensor");
  if (v->any_shape) return true;
  if (v->leading ? shape->rank < v->n_dims : shape->rank != v->n_dims)
    return refuse(m, "a variable has another rank");
  for (uint32_t d = 0; d < v->n_dims; d++) {
    if (v->dim[d]->kind == RULE_NONE) continue;
    if (!sizes_are(m->inst, v->dim[d]) || !rule_size_at(v->dim[d], &at, &size) ||
        size != shape->dim[shape->rank - v->n_dims + d])
      return refuse(m, "a variable has another shape");
  }
  return true;
}

static bool variables_fit(match *m) {
  for (uint32_t i = 0; i < m->r->n_vars; i++)
    if (m->inst->var[i].i != EG_NONE && !variable_fits(m, &m->r->var[i], m->inst->var[i]))
      return false;
  return true;
}

/* ---- sides ---- */

static bool need(match *m, eg_node a, eg_node b) {
  if (a.i == b.i) return true;
  if (!iso_grow(m->need, m->cap, m->n + 1)) return m->starved = true, false;
  m->need[m->n++] = (premise){a, b};
  return true;
}

static bool side(match *m, const rule_term *p, const rule_term *at, eg_node *node);

/* Whether the next e-node of the instance calls the operator of `p`, on arguments that match. */
static bool call(match *m, const rule_term *p, const rule_term *at, eg_node *node) {
  if (at->kind != p->kind || at->n != p->n || (p->kind == RULE_OP && strcmp(p->u.s, at->u.s) != 0))
    return refuse(m, "a side is another term");
  eg_node *below = malloc((p->n + 1) * sizeof *below);
  bool fine = below != NULL;
  m->starved |= !below;
  for (uint32_t k = 0; k < p->n && fine; k++) fine = side(m, p->child[k], at->child[k], &below[k]);
  if (fine) {
    *node = m->inst->at[m->next++];
    const bool list = st_is_list(m->s, *node);
    fine = eg_node_arity(m->s->g, *node) == p->n && list == (p->kind == RULE_LIST) &&
           (list || strcmp(st_operator(m->s, *node), p->u.s) == 0);
    if (!fine) refuse(m, "a tensor is computed by another operator");
  }
  for (uint32_t k = 0; k < p->n && fine; k++) {
    const eg_node child = {eg_node_original(m->s->g, *node, k).i};
    const rule_term *lit = st_literal(m->s, child);
    if (below[k].i != EG_NONE) fine = need(m, below[k], child);
    else if (!lit || !rule_term_eq(lit, at->child[k]))
      fine = refuse(m, "an argument is another number");
  }
  free(below);
  return fine;
}

/* `p` of the rule is `at` with numbers for names. Returns: in `node` the e-node that it is;
 * EG_NONE: a literal. */
static bool side(match *m, const rule_term *p, const rule_term *at, eg_node *node) {
  const rule_values v = {value_of, m->inst, 0};
  const rule_term *value;
  int64_t size;
  *node = (eg_node){EG_NONE};
  switch (p->kind) {
  case RULE_VAR:
    if (at->kind != RULE_VAR || at->u.i != p->u.i) return refuse(m, "a variable is another one");
    *node = m->inst->var[p->u.i];
    return node->i != EG_NONE || refuse(m, "a variable stands for nothing");
  case RULE_NAME:
    value = find(m->inst, p->u.s);
    return (value && rule_term_eq(value, at)) || refuse(m, "a name stands for another number");
  case RULE_EXPR:
    return (at->kind == RULE_INT && rule_size_at(p, &v, &size) && size == at->u.i) ||
           refuse(m, "an expression has another value");
  case RULE_OP:
  case RULE_LIST: return call(m, p, at, node);
  default: return rule_term_eq(p, at) || refuse(m, "a literal is another one");
  }
}

iso_code st_rematch(state *s, const application *a, premise **out, size_t *n, const char **why,
                    iso_error *err) {
  match m = {.s = s, .r = rule_set_at(s->rules.set, a->rule), .inst = a->inst};
  const eg_node end[2] = {a->from, a->to};
  bool fine = a->inst ? conditions_hold(&m) && variables_fit(&m)
                      : refuse(&m, "nothing was noted of how it was applied");
  for (int k = 0; k < 2 && fine; k++) {
    eg_node node;
    fine = side(&m, k ? m.r->rhs : m.r->lhs, a->inst->side[k], &node) && need(&m, end[k], node);
  }
  *why = m.why;
  *out = m.need;
  *n = m.n;
  if (!m.starved) return ISO_OK;
  free(m.need);
  *out = NULL;
  return iso_fail(err, ISO_NOMEM, "out of memory");
}
