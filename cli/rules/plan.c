/* One direction of a rule, as a pattern with steps that bind names and check conditions (export.h).
 */
#include <stdlib.h>
#include <string.h>

#include "cli/rules/export.h"
#include "egraph/base/vec.h"

typedef struct equation {
  const rule_term *t, *value;
  bool done;
} equation;

typedef struct planner {
  rules_plan *p;
  equation *eq;
  size_t n, cap, fresh;
  bool failed;
} planner;

static bool has_name(const char *const *list, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i], name) == 0) return true;
  return false;
}

static void bind(planner *q, const char *name) {
  rules_plan *p = q->p;
  if (!iso_grow(p->bound, p->cap_bound, p->n_bound + 1)) q->failed = true;
  else p->bound[p->n_bound++] = name;
}

static void step(planner *q, const char *name, const rule_term *value) {
  rules_plan *p = q->p;
  if (value == NULL || !iso_grow(p->step, p->cap_steps, p->n_steps + 1)) q->failed = true;
  else p->step[p->n_steps++] = (rules_step){name, value};
  if (name != NULL) bind(q, name);
}

static void equate(planner *q, const rule_term *t, const rule_term *value) {
  if (t == NULL || value == NULL || !iso_grow(q->eq, q->cap, q->n + 1)) q->failed = true;
  else q->eq[q->n++] = (equation){t, value, false};
}

static void mark_variables(const rule_term *t, bool *in) {
  if (t->kind == RULE_VAR) in[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark_variables(t->child[i], in);
}

/* The pattern with expressions replaced by fresh names, whose values they then have to have. */
static const rule_term *open_pattern(planner *q, const rule_term *t) {
  iso_arena *a = &q->p->arena;
  if (t->kind == RULE_NAME && !has_name(q->p->bound, q->p->n_bound, t->u.s)) bind(q, t->u.s);
  if (t->kind == RULE_EXPR) {
    const rule_term *name = rule_name(a, iso_arena_printf(a, "e.%zu", q->fresh++));
    if (name == NULL) {
      q->failed = true;
      return t;
    }
    bind(q, name->u.s);
    equate(q, t, name);
    return name;
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; i < t->n && child != NULL; i++) child[i] = open_pattern(q, t->child[i]);
  const rule_term *out = child == NULL        ? NULL
                         : t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n)
                                              : rule_list(a, child, t->n);
  if (out == NULL) q->failed = true;
  return out != NULL ? out : t;
}

static const rule_term *binary(iso_arena *a, const char *op, const rule_term *x,
                               const rule_term *y) {
  const rule_term *child[2] = {x, y};
  return x == NULL || y == NULL ? NULL : rule_expr(a, op, child, 2);
}

static void shapes(planner *q, const bool *in) {
  const rule *r = q->p->r;
  iso_arena *a = &q->p->arena;
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t k = 0; k < r->var[i].n_dims && in[i]; k++) {
      if (r->var[i].dim[k]->kind == RULE_NONE) continue;
      /* Behind leading dimensions, counted from the end. */
      const rule_term *at =
          rule_int(a, r->var[i].leading ? (int64_t)k - (int64_t)r->var[i].n_dims : (int64_t)k);
      equate(q, r->var[i].dim[k], binary(a, "dim", rule_var(a, i), at));
    }
}

/* ---- solving ---- */

static size_t count_open(const rules_plan *p, const rule_term *t, const char **name) {
  if (t->kind == RULE_NAME && !has_name(p->bound, p->n_bound, t->u.s)) {
    *name = t->u.s;
    return 1;
  }
  size_t n = 0;
  for (uint32_t i = 0; i < t->n; i++) n += count_open(p, t->child[i], name);
  return n;
}

/* The value that the one open name in `t` must have for t = v; NULL where that takes more than the
 * inverse of + - *. */
static const rule_term *invert(rules_plan *p, const rule_term *t, const rule_term *v) {
  const char *name;
  if (t->kind == RULE_NAME) return v;
  if (t->kind != RULE_EXPR || t->n != 2) return NULL;
  const bool second = count_open(p, t->child[1], &name) > 0;
  const rule_term *open = t->child[second], *other = t->child[!second];
  iso_arena *a = &p->arena;
  if (strcmp(t->u.s, "*") == 0) return invert(p, open, binary(a, "/", v, other));
  if (strcmp(t->u.s, "+") == 0) return invert(p, open, binary(a, "-", v, other));
  if (strcmp(t->u.s, "-") == 0)
    return invert(p, open, second ? binary(a, "-", other, v) : binary(a, "+", v, other));
  return NULL;
}

/* Whether something was bound. The equation is checked all the same: a division may leave a
 * remainder. */
static bool solve(planner *q, equation *e) {
  rules_plan *p = q->p;
  const char *name = NULL;
  const size_t l = count_open(p, e->t, &name), r = count_open(p, e->value, &name);
  if (l + r != 1) return false;
  const rule_term *v = l ? invert(p, e->t, e->value) : invert(p, e->value, e->t);
  if (v == NULL || (v->kind == RULE_EXPR && strcmp(v->u.s, "dim") != 0 && rules_plan_is_real(p, v)))
    return false;
  e->done = v == (l ? e->value : e->t); /* the equation was the definition */
  step(q, name, v);
  return true;
}

static bool all_bound(const rules_plan *p, const rule_term *t) {
  const char *name;
  return count_open(p, t, &name) == 0;
}

static bool has_all_variables(const rule_term *t, const bool *in) {
  if (t->kind == RULE_VAR) return in[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (!has_all_variables(t->child[i], in)) return false;
  return true;
}

static void sizes_positive(planner *q, const bool *in, const rule_term *t) {
  iso_arena *a = &q->p->arena;
  if (t->kind == RULE_NAME) step(q, NULL, binary(a, ">=", t, rule_int(a, 1)));
  for (uint32_t i = 0; i < t->n; i++) sizes_positive(q, in, t->child[i]);
}

bool rules_plan_has(const rules_plan *p, uint32_t var) {
  bool in[256] = {false};
  mark_variables(p->pattern, in);
  return in[var];
}

bool rules_plan_is_real(const rules_plan *p, const rule_term *t) {
  if (t->kind == RULE_FLOAT) return true;
  if (t->kind == RULE_NAME) return has_name(p->real, p->n_real, t->u.s);
  for (uint32_t i = 0; i < t->n; i++)
    if (rules_plan_is_real(p, t->child[i])) return true;
  return false;
}

static const char *order(planner *q, const bool *in) {
  rules_plan *p = q->p;
  const rule *r = p->r;
  for (bool more = true; more && !q->failed;) {
    more = false;
    for (size_t i = 0; i < q->n; i++) more |= !q->eq[i].done && solve(q, &q->eq[i]);
  }
  if (!all_bound(p, p->other))
    return "a size or attribute of the result does not follow from what is matched";
  for (uint32_t i = 0; i < r->n_where; i++)
    if (!all_bound(p, r->where[i]))
      return "a condition speaks of a size that does not follow from what is matched";
  for (size_t i = 0; i < q->n; i++) {
    if (q->eq[i].done) continue;
    if (!all_bound(p, q->eq[i].t)) return "a size does not follow from what is matched";
    step(q, NULL, binary(&p->arena, "=", q->eq[i].t, q->eq[i].value));
  }
  for (uint32_t i = 0; i < r->n_where; i++) step(q, NULL, r->where[i]);
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t k = 0; k < r->var[i].n_dims && in[i]; k++)
      sizes_positive(q, in, r->var[i].dim[k]);
  return NULL;
}

iso_code rules_plan_make(const rule *r, bool backward, rules_plan *p, const char **no) {
  *p = (rules_plan){
      .r = r, .other = backward ? r->lhs : r->rhs, .pattern = backward ? r->rhs : r->lhs};
  iso_arena_init(&p->arena);
  planner q = {.p = p};
  bool in[256] = {false};
  *no = NULL;
  if (r->n_vars > 256) *no = "it has more than 256 variables";
  else if (p->pattern->kind != RULE_OP) *no = "the side to look for is a variable";
  if (*no != NULL) return ISO_OK;
  p->real = iso_arena_alloc(&p->arena, (r->n_attrs + 1) * sizeof *p->real);
  for (uint32_t i = 0; i < r->n_attrs && p->real != NULL; i++)
    if (r->attr[i].kind == 'f') p->real[p->n_real++] = r->attr[i].name;
  mark_variables(p->pattern, in);
  if (!has_all_variables(p->other, in)) *no = "the side to look for lacks a variable of the other";
  else if (p->real != NULL) {
    p->pattern = open_pattern(&q, p->pattern);
    p->n_pattern = p->n_bound;
    shapes(&q, in);
    for (uint32_t i = 0; i < r->n_where; i++)
      if (strcmp(r->where[i]->u.s, "=") == 0 && r->where[i]->n == 2 &&
          !rules_plan_is_real(p, r->where[i]))
        equate(&q, r->where[i]->child[0], r->where[i]->child[1]);
    *no = order(&q, in);
  }
  free(q.eq);
  return q.failed || p->real == NULL ? ISO_NOMEM : ISO_OK;
}

void rules_plan_free(rules_plan *p) {
  free(p->step);
  free(p->bound);
  iso_arena_fini(&p->arena);
}
