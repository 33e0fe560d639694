/* The steps that joined two classes of the copy, told as terms and repeated in the joint e-graph.
 *
 * All terms come first, then the merges, in an e-graph that explains: so an e-node that is found is
 * spelled as it was asked for, and a step by a rule is between instances of its sides to the
 * letter. Only the rule applications that the explanation names are repeated. */
#include "synth/saturate/saturate_int.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

enum { BY_COPY = 1, BY_RULE = 2 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef struct told {
  sat_run *x;
  eg_graph *g;
  eg_node *node;       /* by class id of the copy */
  eg_node (*side)[2];  /* by application */
  eg_node *in_joint;   /* by class id of the copy: EG_NONE until it is needed */
  bool *done, *needed; /* by application */
  size_t *need;        /* applications, in the explanation's order */
  size_t n_need;
} told;

static void told_free(told *t) {
  eg_free(t->g);
  free(t->node);
  free(t->side);
  free(t->in_joint);
  free(t->done);
  free(t->needed);
  free(t->need);
}

/* ---- an e-graph that explains ---- */

static iso_code add(told *t, const char *name, const eg_node *child, size_t n, eg_node *out,
                    iso_error *err) {
  eg_class of[MAX_CHILDREN];
  eg_symbol sym;
  iso_code c = eg_intern(t->g, name, strlen(name), &sym, err);
  for (size_t k = 0; k < n; k++) of[k].i = child[k].i;
  return c ? c : eg_add(t->g, sym, of, n, out, err);
}

static iso_code tell_term(told *t, const sat_term *term, eg_node *out, iso_error *err) {
  eg_node child[MAX_CHILDREN];
  for (uint32_t k = 0; k < term->n; k++) child[k] = t->node[t->x->kids[term->first + k]];
  return add(t, eg_sat_op_name(t->x->g, term->op), child, term->n, out, err);
}

/* A side of a rule at numbers, over the terms that its variables stand for. */
static iso_code tell_side(told *t, const rule_term *p, const eg_class *var, eg_node *out,
                          iso_error *err) {
  eg_node child[MAX_CHILDREN];
  iso_code c = ISO_OK;
  if (p->kind == RULE_VAR) return *out = t->node[var[p->u.i].i], ISO_OK;
  if (p->kind != RULE_OP && p->kind != RULE_LIST) {
    char name[24];
    eg_symbol sym;
    if ((c = st_literal_symbol(t->x->s, p, &sym, err))) return c;
    snprintf(name, sizeof name, "#%u", sym.i);
    return add(t, name, NULL, 0, out, err);
  }
  for (uint32_t k = 0; k < p->n && !c; k++) c = tell_side(t, p->child[k], var, &child[k], err);
  return c ? c : add(t, p->kind == RULE_LIST ? "#list" : p->u.s, child, p->n, out, err);
}

/* Both sides of an application at its numbers, in the copy's scratch memory. */
static bool at_numbers(sat_run *x, const sat_app *a, eg_class *var, const rule_term *side[2]) {
  const sat_rule *r = a->rule;
  eg_class bound[RULE_MAX_VARS];
  for (uint32_t k = 0; k < r->n_bind; k++) bound[k].i = x->kids[a->first + k];
  for (uint32_t i = 0; i < RULE_MAX_VARS; i++) var[i].i = EG_NONE;
  if (!sat_bind(x, r, bound, var)) return false;
  side[0] = names_put(x->names, r->r->lhs, &x->scratch);
  side[1] = names_put(x->names, r->r->rhs, &x->scratch);
  return side[0] && side[1];
}

static iso_code tell_apps(told *t, iso_error *err) {
  sat_run *x = t->x;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < x->n_apps && !c; i++) {
    const rule_term *side[2];
    eg_class var[RULE_MAX_VARS];
    t->side[i][0].i = EG_NONE;
    const bool fits = at_numbers(x, &x->app[i], var, side);
    if (x->scratch.failed) c = nomem(err);
    for (int k = 0; k < 2 && !c && fits; k++) c = tell_side(t, side[k], var, &t->side[i][k], err);
    iso_arena_fini(&x->scratch);
  }
  return c;
}

static iso_code tell(told *t, iso_error *err) {
  sat_run *x = t->x;
  eg_node *row = calloc(x->n_rows + 1, sizeof *row);
  iso_code c = row ? eg_new(NULL, &t->g, err) : nomem(err);
  for (size_t i = 0; i < x->n_terms && !c; i++) c = tell_term(t, &x->term[i], &t->node[i], err);
  for (size_t i = 0; i < x->n_rows && !c; i++) c = tell_term(t, &x->row[i].term, &row[i], err);
  if (!c) c = tell_apps(t, err);
  for (size_t i = 0; i < x->n_rows && !c; i++)
    c = eg_merge(t->g, row[i], t->node[x->row[i].of.i], (eg_why){BY_COPY, (uint32_t)i}, err);
  for (size_t i = 0; i < x->n_apps && !c; i++)
    if (t->side[i][0].i != EG_NONE)
      c = eg_merge(t->g, t->side[i][0], t->side[i][1], (eg_why){BY_RULE, (uint32_t)i}, err);
  free(row);
  return c ? c : eg_rebuild(t->g, err);
}

/* The applications that make two terms equal, behind those that were needed before. */
static iso_code explain(told *t, eg_node a, eg_node b, iso_error *err) {
  eg_step *step = NULL;
  size_t n = 0;
  iso_code c = eg_explain(t->g, a, b, &step, &n, err);
  for (size_t i = 0; i < n && !c; i++) {
    if (step[i].why.kind != BY_RULE || t->needed[step[i].why.data]) continue;
    t->needed[step[i].why.data] = true;
    t->need[t->n_need++] = step[i].why.data;
  }
  free(step);
  return c;
}

/* ---- the joint e-graph ---- */

/* Which operators give several tensors is known from their schemas, before they are run. */
void st_mark_multi(state *s, size_t from) {
  for (size_t i = from; i < s->n_rec; i++) {
    rec *r = &s->rec[i];
    const rule_schema *d =
        r->tensor ? rule_schemas_find(s->schemas, st_operator(s, (eg_node){(uint32_t)i})) : NULL;
    if (d == NULL || rule_schema_outputs(d) == 1) continue;
    r->multi = true;
    r->tensor = false;
  }
}

iso_code st_add_valued(state *s, const rule_term *t, const eg_node *var, eg_node *out, bool *ok,
                       iso_error *err) {
  const size_t before = s->n_rec;
  iso_error local = {0};
  iso_code c = st_add_term(s, t, var, out, err);
  if (c) return c;
  st_mark_multi(s, before);
  if ((t->kind == RULE_OP || t->kind == RULE_VAR) && !s->rec[out->i].valued)
    c = st_value(s, *out, &local);
  *ok = c == ISO_OK;
  return c == ISO_NOMEM ? iso_fail(err, c, "%s", local.msg) : ISO_OK;
}

/* The e-node that a class of the copy was made for. */
static iso_code joint_node(told *t, uint32_t id, eg_node *out, bool *ok, iso_error *err) {
  sat_run *x = t->x;
  state *s = x->s;
  *out = t->in_joint[id];
  if (out->i != EG_NONE) return ISO_OK;
  const sat_term *term = &x->term[id];
  const char *op = eg_sat_op_name(x->g, term->op);
  eg_node child[MAX_CHILDREN];
  const rule_term *var[MAX_CHILDREN], *call;
  iso_code c = ISO_OK;
  if (term->n == 0 && op[0] == '@') {
    *out = st_rep(s, eg_find(s->g, x->joint[id]));
    if (out->i == EG_NONE) out->i = x->joint[id].i; /* a list */
    t->in_joint[id] = *out;
    return ISO_OK;
  }
  for (uint32_t k = 0; k < term->n && !c && *ok; k++) {
    c = joint_node(t, x->kids[term->first + k], &child[k], ok, err);
    if (!c && !(var[k] = rule_var(&x->arena, k))) c = nomem(err);
  }
  if (c || !*ok) return c;
  if (term->n == 0) call = s->literals.of[strtoul(op + 1, NULL, 10)];
  else if (strcmp(op, "#list") == 0) call = rule_list(&x->arena, var, term->n);
  else call = rule_op(&x->arena, op, var, term->n);
  c = call ? st_add_valued(s, call, child, out, ok, err) : nomem(err);
  if (!c && *ok) t->in_joint[id] = *out;
  return c;
}

/* Whether the two sides are one tensor on every draw. */
static bool sides_agree(state *s, eg_node a, eg_node b) {
  const rec *ra = &s->rec[a.i], *rb = &s->rec[b.i];
  return ra->tensor && rb->tensor && ra->valued && rb->valued &&
         rule_shape_eq(&ra->shape, &rb->shape) && st_dtype(s, a) == st_dtype(s, b) &&
         st_values_equal(s, a, b);
}

/* An application in the joint e-graph. Returns: in `ok` whether its rule holds there. */
static iso_code repeat(told *t, const sat_app *a, bool *ok, iso_error *err) {
  sat_run *x = t->x;
  state *s = x->s;
  const rule *r = a->rule->r;
  const rule_term *side[2];
  eg_class of_var[RULE_MAX_VARS];
  const rule_shape *shape[RULE_MAX_VARS];
  eg_node var[RULE_MAX_VARS], end[2] = {{EG_NONE}, {EG_NONE}};
  rule at;
  iso_code c = ISO_OK;
  *ok = at_numbers(x, a, of_var, side);
  for (uint32_t i = 0; i < r->n_vars && *ok && !c; i++) {
    var[i].i = EG_NONE;
    if (of_var[i].i != EG_NONE) c = joint_node(t, of_var[i].i, &var[i], ok, err);
  }
  for (uint32_t i = 0; i < r->n_vars && *ok && !c; i++)
    shape[i] = var[i].i == EG_NONE ? NULL : &s->rec[var[i].i].shape;
  if (!c && *ok) *ok = sat_instance(x, r, side, shape, &at);
  for (int k = 0; k < 2 && !c && *ok; k++)
    c = st_add_valued(s, k ? at.rhs : at.lhs, var, &end[k], ok, err);
  if (!c && *ok && !x->o->trusted) *ok = sides_agree(s, end[0], end[1]);
  size_t index = a->rule->index;
  if (!c && *ok && a->rule->given) c = st_admit_known(s, index, &at, var, x->names, &index, err);
  if (!c && *ok && !a->rule->given && !x->o->use)
    s->rules.info[index].read |= !names_exact(x->names, r);
  if (!c && x->scratch.failed) c = nomem(err);
  iso_arena_fini(&x->scratch);
  *ok = *ok && index != SIZE_MAX && (x->o->use || st_usable(s, index));
  if (c || !*ok || eg_equal(s->g, end[0], end[1])) return c;
  const st_use use = {.rule = index, .from = end[0], .to = end[1], .as = &at, .var = var};
  return st_record_application(s, &use, err);
}

static iso_code join_goal(told *t, size_t goal, const sat_rule **refused, iso_error *err) {
  sat_run *x = t->x;
  const eg_node a = t->node[x->goal[goal][0].i], b = t->node[x->goal[goal][1].i];
  t->n_need = 0;
  memset(t->needed, 0, x->n_apps + 1);
  iso_code c = eg_equal(t->g, a, b) ? explain(t, a, b, err) : ISO_OK;
  for (size_t i = 0; i < t->n_need && !c && !*refused; i++) {
    const size_t k = t->need[i];
    bool ok = true;
    if (t->done[k]) continue;
    c = repeat(t, &x->app[k], &ok, err);
    t->done[k] = true;
    if (!c && !ok) *refused = x->app[k].rule;
  }
  return c;
}

iso_code sat_replay(sat_run *x, const sat_rule **refused, iso_error *err) {
  told t = {.x = x,
            .node = calloc(x->n_terms + 1, sizeof *t.node),
            .side = calloc(x->n_apps + 1, sizeof *t.side),
            .in_joint = malloc((x->n_terms + 1) * sizeof *t.in_joint),
            .done = calloc(x->n_apps + 1, 1),
            .needed = calloc(x->n_apps + 1, 1),
            .need = calloc(x->n_apps + 1, sizeof *t.need)};
  const bool room = t.node && t.side && t.in_joint && t.done && t.needed && t.need;
  iso_code c = room ? ISO_OK : nomem(err);
  for (size_t i = 0; i < x->n_terms && !c; i++) t.in_joint[i].i = EG_NONE;
  *refused = NULL;
  if (!c && x->n_apps) c = tell(&t, err);
  for (size_t i = 0; i < x->o->n_goals && !c && !*refused && x->n_apps; i++)
    if (sat_met(x, i)) c = join_goal(&t, i, refused, err);
  told_free(&t);
  return c;
}
