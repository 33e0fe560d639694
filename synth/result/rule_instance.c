/* How a rule was applied: its variables, sizes and attributes, and the e-node of each operator.
 * Noted when it is matched, because afterwards the e-graph has merged e-nodes that the match told
 * apart. */
#include "synth/result/proof_chain_int.h"
#include "synth/search/substitution.h"
#include "synth/joint/joint.h"
#include "synth/result/result.h"

#include <stdlib.h>
#include <string.h>

static void in_order(const rule_term *t, uint32_t *order, size_t *n, uint32_t n_vars) {
  if (t->kind == RULE_VAR) {
    for (size_t i = 0; i < *n; i++)
      if (order[i] == (uint32_t)t->u.i) return;
    if (*n < n_vars) order[(*n)++] = (uint32_t)t->u.i;
  }
  for (uint32_t k = 0; k < t->n; k++) in_order(t->child[k], order, n, n_vars);
}

typedef struct notes {
  eg_node *at;
  size_t n, cap;
} notes;

/* The e-node of an instance, which is there, since it was matched. EG_NONE in `out`: it is not. */
static iso_code note(state *s, notes *x, const rule_term *p, const eg_node *bind, eg_node *out,
                     iso_error *err) {
  iso_code c = ISO_OK;
  if (p->kind == RULE_VAR) {
    *out = bind[p->u.i];
    return ISO_OK;
  }
  if (p->kind != RULE_OP && p->kind != RULE_LIST) return st_add_term(s, p, NULL, out, err);
  eg_node *child = malloc((p->n + 1) * sizeof *child);
  const rule_term **var = iso_arena_alloc(&s->arena, (p->n + 1) * sizeof *var);
  if (!child || !var) c = iso_fail(err, ISO_NOMEM, "out of memory");
  out->i = 0;
  for (uint32_t k = 0; k < p->n && !c && out->i != EG_NONE; k++) {
    c = note(s, x, p->child[k], bind, out, err);
    child[k] = *out;
    if (!c && !(var[k] = rule_var(&s->arena, k))) c = iso_fail(err, ISO_NOMEM, "out of memory");
  }
  if (!c && out->i != EG_NONE) {
    const size_t before = eg_count_added(s->g);
    const rule_term *t = p->kind == RULE_LIST ? rule_list(&s->arena, var, p->n)
                                              : rule_op(&s->arena, p->u.s, var, p->n);
    c = t ? st_add_term(s, t, child, out, err) : iso_fail(err, ISO_NOMEM, "out of memory");
    if (!c && eg_count_added(s->g) != before) out->i = EG_NONE;
    else if (!c && !iso_grow(x->at, x->cap, x->n + 1))
      c = iso_fail(err, ISO_NOMEM, "out of memory");
    else if (!c) x->at[x->n++] = *out;
  }
  free(child);
  return c;
}

const rule_term *pc_renumber(iso_arena *a, const rule_term *t, const uint32_t *to) {
  if (t->kind == RULE_VAR) return rule_var(a, to[t->u.i]);
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  if (!child) return NULL;
  for (uint32_t k = 0; k < t->n; k++)
    if (!(child[k] = pc_renumber(a, t->child[k], to))) return NULL;
  return t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
}

/* `as` with its variables as `r` numbers them: in `to`, by a variable of `as`, that of `r`.
 * Variables that neither side has, and which no rule of a comparison has, leave none. */
static iso_code in_numbers_of(state *s, const rule *r, const rule *as, uint32_t *to, rule *out,
                              bool *fits, iso_error *err) {
  const uint32_t n = r->n_vars;
  uint32_t *from = calloc(2 * (size_t)n + 1, sizeof *from), *mine = from ? from + n : NULL;
  rule_variable *v = iso_arena_alloc(&s->arena, (n + 1) * sizeof *v);
  size_t n_from = 0, n_mine = 0;
  *fits = false;
  if (!from || !v) {
    free(from);
    return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  if (as->n_vars == n) {
    in_order(as->lhs, from, &n_from, n);
    in_order(as->rhs, from, &n_from, n);
    in_order(r->lhs, mine, &n_mine, n);
    in_order(r->rhs, mine, &n_mine, n);
    *fits = n_from == n && n_mine == n;
  }
  for (size_t i = 0; i < n && *fits; i++) {
    to[from[i]] = mine[i];
    v[mine[i]] = as->var[from[i]];
  }
  free(from);
  if (!*fits) return ISO_OK;
  *out = (rule){.name = r->name,
                .n_vars = n,
                .var = v,
                .lhs = pc_renumber(&s->arena, as->lhs, to),
                .rhs = pc_renumber(&s->arena, as->rhs, to)};
  return out->lhs && out->rhs ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* The values of the names of `r`, in the result's memory. Returns: false where `at` is no
 * instance of it. */
static iso_code note_names(state *s, const rule *r, const rule *at, instance *out, bool *fits,
                           iso_error *err) {
  iso_arena *a = &s->res->arena;
  names *n = malloc(sizeof *n);
  iso_code c = n ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  *fits = !c && names_of(r, at, &s->arena, n);
  const uint32_t cnt = *fits ? n->at.n : 0;
  const char **name = iso_arena_alloc(a, (cnt + 1) * sizeof *name);
  const rule_term **value = iso_arena_alloc(a, (cnt + 1) * sizeof *value);
  if (!c && (!name || !value)) c = iso_fail(err, ISO_NOMEM, "out of memory");
  for (uint32_t i = 0; i < cnt && !c; i++)
    if (!(name[i] = iso_arena_strdup(a, n->name[i])) ||
        !(value[i] = rule_term_copy(a, n->value[i])))
      c = iso_fail(err, ISO_NOMEM, "out of memory");
  free(n);
  out->n_names = cnt;
  out->name = name;
  out->value = value;
  return c;
}

iso_code st_note_instance(state *s, application *a, const rule *as, const eg_node *var,
                          iso_error *err) {
  const rule *r = rule_set_at(s->rules.set, a->rule);
  uint32_t *to = calloc((size_t)r->n_vars + 1, sizeof *to);
  eg_node *mine = iso_arena_alloc(&s->arena, (r->n_vars + 1) * sizeof *mine), end;
  instance *out = iso_arena_alloc(&s->arena, sizeof *out);
  notes x = {0};
  rule at;
  bool fits = false;
  iso_code c = to && mine && out ? in_numbers_of(s, r, as, to, &at, &fits, err)
                                 : iso_fail(err, ISO_NOMEM, "out of memory");
  if (!c && fits) c = note_names(s, r, &at, out, &fits, err);
  if (!c && fits) {
    for (uint32_t i = 0; i < r->n_vars; i++) mine[to[i]] = var[i];
    c = note(s, &x, at.lhs, mine, &end, err);
    if (!c && end.i != EG_NONE) c = note(s, &x, at.rhs, mine, &end, err);
    fits = !c && end.i != EG_NONE;
  }
  if (fits) {
    eg_node *node = iso_arena_alloc(&s->arena, (x.n + 1) * sizeof *node);
    if (!node) c = iso_fail(err, ISO_NOMEM, "out of memory");
    else if (x.n) memcpy(node, x.at, x.n * sizeof *node);
    out->side[0] = at.lhs;
    out->side[1] = at.rhs;
    out->at = node;
    out->var = mine;
    a->inst = out;
  } else if (!c && s->arena.failed) c = iso_fail(err, ISO_NOMEM, "out of memory");
  free(to);
  free(x.at);
  return c;
}
