/* A region of the joint e-graph in the compact engine, and rules over it (saturate.h).
 *
 * Each class of the joint e-graph is a leaf `@N` here, joined with its members; a literal is a leaf
 * `#N` of its symbol. A class id of the engine keeps standing for the term that it was made for, so
 * that a rule application is remembered by ids alone and can be written as terms again
 * (replay.c). */
#include "synth/saturate/saturate_int.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

void sat_free(sat_run *x) {
  eg_rules_free(x->rules);
  eg_sat_free(x->g);
  free(x->class_of);
  free(x->goal);
  free(x->joint);
  free(x->term);
  free(x->row);
  free(x->app);
  free(x->kids);
  free(x->there);
  free(x->said);
  free(x->names);
  sat_types_free(&x->types);
  iso_arena_fini(&x->arena);
  iso_arena_fini(&x->scratch);
}

/* ---- types of classes ---- */

const sat_type *sat_type_of(const eg_sat *g, eg_class c) {
  const sat_type *const *t = eg_sat_data(g, c);
  return *t;
}

static void make_type(void *ctx, const eg_sat *g, eg_op op, const eg_class *child, size_t n,
                      void *data) {
  sat_run *x = ctx;
  const char *name = eg_sat_op_name(g, op);
  const sat_type **out = data, *arg[MAX_CHILDREN];
  *out = NULL;
  if (n == 0) {
    *out = x->pending;
    return;
  }
  if (n > MAX_CHILDREN) return;
  for (size_t i = 0; i < n; i++)
    if (!(arg[i] = sat_type_of(g, child[i]))) return;
  *out = strcmp(name, "#list") == 0 ? sat_list(&x->types, arg, n)
                                    : sat_result(&x->types, name, arg, n);
  if (x->types.starved) x->code = ISO_NOMEM;
}

/* One that is known stays: where two are known and differ, the replay will not hold. */
static unsigned join_types(void *ctx, const eg_sat *g, void *into, void *from) {
  (void)ctx, (void)g;
  const sat_type **a = into, *const *b = from;
  if (*a == *b) return 0;
  if (*a) return EG_FROM_DIFFERS;
  *a = *b;
  return EG_INTO_CHANGED;
}

/* ---- terms ---- */

/* Add an e-node. A class that is made for it remembers it. */
static iso_code add(sat_run *x, const char *name, const eg_class *child, size_t n, eg_class *out,
                    sat_term *term, iso_error *err) {
  eg_op op;
  iso_code c = eg_sat_op(x->g, name, strlen(name), n, &op, err);
  if (c) return c;
  const size_t before = eg_sat_count_ids(x->g);
  if (!iso_grow(x->kids, x->cap_kids, x->n_kids + n) ||
      !iso_grow(x->term, x->cap_terms, before + 1))
    return nomem(err);
  *term = (sat_term){op, (uint32_t)x->n_kids, (uint32_t)n};
  for (size_t k = 0; k < n; k++) x->kids[x->n_kids++] = child[k].i;
  if ((c = eg_sat_add(x->g, op, child, out, err))) return c;
  if (eg_sat_count_ids(x->g) != before) {
    x->term[before] = *term;
    x->n_terms = before + 1;
  }
  return x->code ? nomem(err) : ISO_OK;
}

static iso_code add_leaf(sat_run *x, char mark, uint32_t id, const sat_type *type, eg_class *out,
                         iso_error *err) {
  char name[24];
  sat_term term;
  snprintf(name, sizeof name, "%c%u", mark, id);
  x->pending = type;
  const iso_code c = add(x, name, NULL, 0, out, &term, err);
  x->pending = NULL;
  return c;
}

static iso_code add_literal(sat_run *x, const rule_term *t, eg_class *out, iso_error *err) {
  eg_symbol sym;
  iso_code c = st_literal_symbol(x->s, t, &sym, err);
  if (c) return c;
  const sat_type *type = sat_literal(&x->types, x->s->literals.of[sym.i]);
  return type ? add_leaf(x, '#', sym.i, type, out, err) : nomem(err);
}

/* A term over classes. */
iso_code sat_add_term(sat_run *x, const rule_term *t, const eg_class *var, eg_class *out,
                      iso_error *err) {
  eg_class child[MAX_CHILDREN];
  sat_term term;
  iso_code c = ISO_OK;
  if (t->kind == RULE_VAR) return *out = var[t->u.i], ISO_OK;
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return add_literal(x, t, out, err);
  if (t->n > MAX_CHILDREN) return iso_fail(err, ISO_RANGE, "%u arguments", t->n);
  for (uint32_t k = 0; k < t->n && !c; k++) c = sat_add_term(x, t->child[k], var, &child[k], err);
  return c ? c : add(x, t->kind == RULE_LIST ? "#list" : t->u.s, child, t->n, out, &term, err);
}

/* ---- the copy ---- */

/* Types of tensors come from their values, those of literals from themselves, and those of all
 * other terms from these. */
static iso_code type_in_joint(sat_run *x, eg_class c, const sat_type **out, iso_error *err) {
  state *s = x->s;
  const eg_node rep = st_rep(s, c);
  *out = NULL;
  if (rep.i == EG_NONE) return ISO_OK;
  const rec *r = &s->rec[rep.i];
  if (r->tensor) *out = sat_tensor(&x->types, st_dtype(s, rep), &r->shape);
  else if (r->multi && r->val && r->n_out <= MAX_OUT) {
    const sat_type *of[MAX_OUT];
    for (size_t k = 0; k < r->n_out; k++) {
      of[k] = sat_tensor(&x->types, r->val[k]->dtype, &r->val[k]->shape);
      if (!of[k]) return nomem(err);
    }
    *out = sat_multi(&x->types, of, r->n_out);
  }
  return x->types.starved ? nomem(err) : ISO_OK;
}

/* The class of a class of the joint e-graph, which becomes known here. */
static iso_code copy_class(sat_run *x, eg_class c, iso_error *err) {
  state *s = x->s;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  const sat_type *type;
  eg_class out;
  if (x->class_of[c.i] != EG_NONE) return ISO_OK;
  iso_code code = ISO_OK;
  for (size_t i = 0; i < n; i++) {
    const rule_term *t = st_literal(s, m[i]);
    if (!t) continue;
    if (!(code = add_literal(x, t, &out, err))) x->class_of[c.i] = out.i;
    return code;
  }
  if ((code = type_in_joint(x, c, &type, err))) return code;
  if ((code = add_leaf(x, '@', c.i, type, &out, err))) return code;
  if (!iso_grow(x->joint, x->cap_joint, (size_t)out.i + 1)) return nomem(err);
  x->joint[out.i] = c;
  x->class_of[c.i] = out.i;
  return ISO_OK;
}

typedef struct queue {
  eg_class *at;
  size_t n, cap;
  bool *seen; /* by class of the joint e-graph */
} queue;

static iso_code push(sat_run *x, queue *q, eg_class c, iso_error *err) {
  if (q->seen[c.i]) return ISO_OK;
  q->seen[c.i] = true;
  if (!iso_grow(q->at, q->cap, q->n + 1)) return nomem(err);
  q->at[q->n++] = c;
  return copy_class(x, c, err);
}

/* A member of a class, over the classes of its children. Only e-nodes with values are copied. */
static iso_code copy_member(sat_run *x, eg_class c, eg_node m, iso_error *err) {
  state *s = x->s;
  const size_t n = eg_node_arity(s->g, m);
  const rec *r = &s->rec[m.i];
  eg_class child[MAX_CHILDREN], out;
  sat_term term;
  if (n == 0 || n > MAX_CHILDREN || ((r->tensor || r->multi) && !r->valued)) return ISO_OK;
  for (size_t k = 0; k < n; k++) {
    child[k].i = x->class_of[eg_node_child(s->g, m, k).i];
    if (child[k].i == EG_NONE) return ISO_OK;
  }
  const char *op = st_operator(s, m);
  const eg_class of = {x->class_of[c.i]};
  iso_code code = add(x, op, child, n, &out, &term, err);
  if (code) return code;
  if (!iso_grow(x->row, x->cap_rows, x->n_rows + 1)) return nomem(err);
  x->row[x->n_rows++] = (sat_row){term, of};
  return eg_sat_merge(x->g, of, out, (eg_why){1, 0}, err);
}

/* The classes below the goals, breadth first: near ones come first, the limit cuts far ones.
 */
static iso_code copy_region(sat_run *x, iso_error *err) {
  state *s = x->s;
  const size_t n = eg_count_added(s->g);
  queue q = {.seen = calloc(n + 1, 1)};
  x->class_of = malloc((n + 1) * sizeof *x->class_of);
  x->goal = calloc(x->o->n_goals + 1, sizeof *x->goal);
  iso_code c = q.seen && x->class_of && x->goal ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n && !c; i++) x->class_of[i] = EG_NONE;
  for (size_t i = 0; i < x->o->n_goals && !c; i++)
    for (int k = 0; k < 2 && !c; k++) {
      const eg_class at = eg_class_of(s->g, k ? x->o->goal[i].b : x->o->goal[i].a);
      c = push(x, &q, at, err);
      x->goal[i][k].i = x->class_of[at.i];
    }
  for (size_t i = 0; i < q.n && q.n < x->o->classes && !c; i++) {
    const eg_node *m;
    const size_t members = eg_class_nodes(s->g, q.at[i], &m);
    for (size_t k = 0; k < members && !c; k++)
      for (size_t j = 0; j < eg_node_arity(s->g, m[k]) && !c; j++)
        c = push(x, &q, eg_node_child(s->g, m[k], j), err);
  }
  for (size_t i = 0; i < q.n && !c; i++) {
    const eg_node *m;
    const size_t members = eg_class_nodes(s->g, q.at[i], &m);
    for (size_t k = 0; k < members && !c; k++) c = copy_member(x, q.at[i], m[k], err);
  }
  free(q.at);
  free(q.seen);
  if (!c) c = eg_sat_rebuild(x->g, err);
  x->n_copied = eg_sat_count_nodes(x->g);
  return c;
}

/* ---- the run ---- */

bool sat_met(const sat_run *x, size_t i) {
  return eg_sat_find(x->g, x->goal[i][0]).i == eg_sat_find(x->g, x->goal[i][1]).i;
}

static bool go_on(void *ctx, eg_sat *g, size_t iteration, const eg_iteration *it) {
  sat_run *x = ctx;
  (void)g, (void)iteration, (void)it;
  if (x->code || st_stopped(x->s)) return false;
  for (size_t i = 0; i < x->o->n_goals; i++)
    if (!sat_met(x, i)) return true;
  return false;
}

iso_code sat_grow(sat_run *x, iso_error *err) {
  enum { ELEMENTS = 1 << 28, WORK = 1 << 24 };
  const eg_sat_options how = {
      .analysis = {.ctx = x, .size = sizeof(sat_type *), .make = make_type, .join = join_types}};
  x->types.s = x->s;
  x->types.elements_left = ELEMENTS;
  x->names = malloc(sizeof *x->names);
  iso_code c = x->names ? eg_sat_new(&how, &x->g, err) : nomem(err);
  if (!c) c = eg_rules_new(x->g, &x->rules, err);
  if (!c) c = copy_region(x, err);
  if (!c) c = sat_add_rules(x, err);
  if (c || eg_rules_count(x->rules) == 0) return c;
  eg_run_options o = eg_run_options_default();
  o.scheduler = EG_BACKOFF;
  o.iteration_limit = x->o->iterations;
  o.node_limit = x->n_copied + x->o->nodes;
  o.work_limit = WORK;
  o.mem_limit_bytes = 0; /* e-nodes bound it, and --memory the program */
  o.each = go_on;
  o.ctx = x;
  eg_run_report report;
  c = eg_sat_run(x->g, x->rules, &o, &report, err);
  if (!c && x->code) c = nomem(err);
  if (c) return c;
  const size_t n = eg_sat_count_nodes(x->g);
  x->o->n_grown += n > x->n_copied ? n - x->n_copied : 0;
  x->o->limit = report.stop == EG_NODE_LIMIT        ? "e-nodes"
                : report.stop == EG_ITERATION_LIMIT ? "iterations"
                : report.n_left_out                 ? "work"
                                                    : NULL;
  return ISO_OK;
}
