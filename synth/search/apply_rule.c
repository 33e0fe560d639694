/* Known rules against a candidate: both sides of a rule are matched at once, at the two e-nodes'
 * classes, through any member of a class. Variables are bound to classes; sizes and attributes that
 * a rule leaves open to numbers, for which its expressions and conditions must then hold
 * (substitution.c). */
#include "synth/search/compiled.h"
#include "synth/search/substitution.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/result/result.h"
#include "synth/saturate/saturate.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GOALS = 2048, MAX_STEPS = 20000, MAX_PREMISES = 4096 };

/* ---- compiled for the matcher (compiled.h) ---- */

static iso_code compile(state *s, const rule_term *t, st_pattern *out, iso_error *err) {
  *out = (st_pattern){.t = t, .op = {EG_NONE}};
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return ISO_OK;
  iso_code c = ISO_OK;
  if (t->kind == RULE_LIST) out->op = s->literals.list;
  else {
    c = eg_intern(s->g, t->u.s, strlen(t->u.s), &out->op, err);
    out->rearranges = rule_operator_of(t->u.s)->rearranges;
  }
  st_pattern *child = iso_arena_alloc(&s->arena, (t->n + 1) * sizeof *child);
  if (!c && !child) c = iso_fail(err, ISO_NOMEM, "out of memory");
  for (uint32_t k = 0; k < t->n && !c; k++) c = compile(s, t->child[k], &child[k], err);
  out->child = child;
  return c;
}

iso_code st_compile(state *s, st_compiled_rules *of, size_t i, const rule *r, st_compiled *out,
                    iso_error *err) {
  if (!iso_grow(of->rule, of->cap, i + 1)) return iso_fail(err, ISO_NOMEM, "out of memory");
  st_compiled *at = &of->rule[i];
  for (int k = 0; k < 2 && !at->side[k]; k++) {
    st_pattern *p = iso_arena_alloc(&s->arena, sizeof *p);
    iso_code c =
        p ? compile(s, k ? r->rhs : r->lhs, p, err) : iso_fail(err, ISO_NOMEM, "out of memory");
    if (c) return c;
    at->side[k] = p;
  }
  *out = *at;
  return ISO_OK;
}

/* Patterns that are still to be matched: a stack as a list, so that alternatives share the lower
 * part. */
typedef struct goal {
  const st_pattern *p;
  eg_class c;
  eg_node as; /* the e-node that stood there when the one above was added; EG_NONE at a root */
  const struct goal *rest;
} goal;

/* An alternative that fails is taken back to the counts that it began with. */
typedef struct mark {
  size_t n_bound, n_prem, n_goals;
  names_mark names;
} mark;

typedef struct matcher {
  state *s;
  const rule *r;
  goal *pool;    /* MAX_GOALS */
  premise *prem; /* MAX_PREMISES */
  size_t steps;
  mark at;
  struct places *all;            /* where every match is wanted; NULL: the first */
  uint32_t bound[RULE_MAX_VARS]; /* variables, in the order in which they were bound */
  eg_class var[RULE_MAX_VARS];   /* EG_NONE: unbound */
  eg_node var_as[RULE_MAX_VARS];
  names names;
} matcher;

/* Owns: matcher_free. */
static bool matcher_new(state *s, matcher **out) {
  matcher *m = malloc(sizeof *m);
  if (!m) return false;
  m->s = s;
  m->all = NULL;
  m->pool = malloc(MAX_GOALS * sizeof *m->pool);
  m->prem = malloc(MAX_PREMISES * sizeof *m->prem);
  *out = m;
  return m->pool && m->prem;
}

static void matcher_free(matcher *m) {
  if (!m) return;
  free(m->pool);
  free(m->prem);
  free(m);
}

static void take_back(matcher *m, mark to) {
  while (m->at.n_bound > to.n_bound) m->var[m->bound[--m->at.n_bound]].i = EG_NONE;
  m->at = to;
  names_back(&m->names, to.names);
}

/* Where the matcher stands now, to be taken back to. */
static mark here(const matcher *m) {
  mark at = m->at;
  at.names = names_here(&m->names);
  return at;
}

/* The literal that a class is; a list of literals is one. NULL where it is none, or there is no
 * memory. */
static const rule_term *class_literal(state *s, eg_class c) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++) {
    const rule_term *t = st_literal(s, m[i]);
    if (t) return t;
    if (!st_is_list(s, m[i])) continue;
    const size_t k = eg_node_arity(s->g, m[i]);
    const rule_term **child = iso_arena_alloc(&s->arena, (k + 1) * sizeof *child);
    for (size_t j = 0; j < k && child; j++)
      if (!(child[j] = class_literal(s, eg_node_child(s->g, m[i], j)))) return NULL;
    return child ? rule_list(&s->arena, child, k) : NULL;
  }
  return NULL;
}

static bool need(matcher *m, eg_node a, eg_node b) {
  if (a.i == b.i || a.i == EG_NONE || b.i == EG_NONE) return true;
  if (m->at.n_prem == MAX_PREMISES) return false;
  m->prem[m->at.n_prem++] = (premise){a, b};
  return true;
}

static bool bind_var(matcher *m, uint32_t i, eg_class c, eg_node as) {
  if (m->var[i].i != EG_NONE)
    return eg_find(m->s->g, m->var[i]).i == c.i && need(m, m->var_as[i], as);
  const eg_node rep = st_rep(m->s, c);
  if (rep.i == EG_NONE || !m->s->rec[rep.i].tensor) return false;
  const rule_shape *shape = &m->s->rec[rep.i].shape;
  const rule_variable *d = &m->r->var[i];
  if (!rule_variable_takes(d, st_dtype(m->s, rep))) return false;
  if (!names_bind_shape(&m->names, d, shape)) return false;
  m->var[i] = c;
  m->var_as[i] = as;
  m->bound[m->at.n_bound++] = i;
  return true;
}

static bool literal_matches(matcher *m, const rule_term *t, eg_class c) {
  const rule_term *v = class_literal(m->s, c);
  return v && names_bind(&m->names, t, v);
}

static bool note_place(matcher *m);
static bool solve(matcher *m, const goal *g);

/* `node` for an operator or a list of the rule. */
static bool solve_node(matcher *m, const goal *g, eg_node node) {
  state *s = m->s;
  const uint32_t n = g->p->t->n;
  if (eg_node_symbol(s->g, node).i != g->p->op.i || eg_node_arity(s->g, node) != n) return false;
  if (m->at.n_goals + n > MAX_GOALS) return false;
  const goal *next = g->rest;
  /* The last child comes first, so that literals at the end prune early. */
  for (uint32_t k = 0; k < n; k++) {
    goal *child = &m->pool[m->at.n_goals++];
    *child = (goal){
        &g->p->child[k], eg_node_child(s->g, node, k), {eg_node_original(s->g, node, k).i}, next};
    next = child;
  }
  return need(m, g->as, node) && solve(m, next);
}

static bool solve(matcher *m, const goal *g) {
  if (++m->steps > MAX_STEPS) return false;
  if (!g) return names_hold(&m->names, m->r) && (!m->all || note_place(m));
  state *s = m->s;
  const eg_class c = eg_find(s->g, g->c);
  const mark before = here(m);
  const rule_term *t = g->p->t;
  switch (t->kind) {
  case RULE_VAR:
    if (bind_var(m, (uint32_t)t->u.i, c, g->as) && solve(m, g->rest)) return true;
    break;
  case RULE_OP:
  case RULE_LIST: {
    const eg_node *nodes;
    const size_t cnt = eg_class_nodes(s->g, c, &nodes);
    for (size_t i = 0; i < cnt; i++) {
      if (solve_node(m, g, nodes[i])) return true;
      take_back(m, before);
    }
    return false;
  }
  default:
    if (literal_matches(m, t, c) && solve(m, g->rest)) return true;
    break;
  }
  take_back(m, before);
  return false;
}

/* Whether some member of the class could be the root of `p`: nearly every rule ends here. */
static bool root_fits(state *s, const st_pattern *p, eg_class c) {
  if (p->t->kind != RULE_OP) return true;
  const eg_node *nodes;
  const size_t n = eg_class_nodes(s->g, c, &nodes);
  for (size_t i = 0; i < n; i++)
    if (eg_node_symbol(s->g, nodes[i]).i == p->op.i && eg_node_arity(s->g, nodes[i]) == p->t->n)
      return true;
  return false;
}

static bool match_rule(matcher *m, const rule *r, const st_compiled *as, eg_node u, eg_node t) {
  const eg_class cu = eg_class_of(m->s->g, u), ct = eg_class_of(m->s->g, t);
  if (r->n_vars > RULE_MAX_VARS || !root_fits(m->s, as->side[0], cu) ||
      !root_fits(m->s, as->side[1], ct))
    return false;
  m->r = r;
  m->steps = 0;
  m->at = (mark){0};
  names_init(&m->names, &m->s->arena);
  for (uint32_t i = 0; i < r->n_vars; i++) m->var[i].i = m->var_as[i].i = EG_NONE;
  const goal right = {as->side[1], ct, t, NULL}, left = {as->side[0], cu, u, &right};
  return solve(m, &left);
}

bool st_usable(const state *s, size_t i) {
  const rule_info *r = &s->rules.info[i];
  return r->verdict.status >= (s->o->require_proved ? RULE_PROVED : RULE_TESTED) && !r->passed_over;
}

iso_code st_record_application(state *s, const st_use *use, iso_error *err) {
  const size_t n = use->n_prem;
  if (!iso_grow(s->rules.app, s->rules.cap_app, s->rules.n_app + 1) ||
      !iso_grow(s->rules.prem, s->rules.cap_prem, s->rules.n_prem + n))
    return iso_fail(err, ISO_NOMEM, "out of memory");
  if (n) memcpy(s->rules.prem + s->rules.n_prem, use->prem, n * sizeof *use->prem);
  s->rules.app[s->rules.n_app] = (application){
      .rule = use->rule, .from = use->from, .to = use->to, .first = s->rules.n_prem, .n = n};
  s->rules.n_prem += n;
  s->rules.info[use->rule].uses++;
  iso_code c = ISO_OK;
  if (use->as) c = st_note_instance(s, &s->rules.app[s->rules.n_app], use->as, use->var, err);
  else if (s->arena.failed) c = iso_fail(err, ISO_NOMEM, "out of memory");
  if (c) return c;
  return st_merge(s, use->from, use->to, WHY_RULE, (uint32_t)s->rules.n_app++, err);
}

/* The match of `m` as a use of rule `index`; `as`: NULL where that is not known whole. */
static st_use use_of(const matcher *m, size_t index, eg_node from, eg_node to, const rule *as) {
  return (st_use){.rule = index,
                  .from = from,
                  .to = to,
                  .prem = m->prem,
                  .n_prem = m->at.n_prem,
                  .as = as,
                  .var = m->var_as};
}

/* The rule at the matched sizes and attributes; false where something stays open. */
static bool instantiate(matcher *m, iso_arena *a, rule *out) {
  const rule *r = m->r;
  rule_variable *v = iso_arena_alloc(a, (r->n_vars + 1) * sizeof *v);
  if (!v) return false;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    if (m->var[i].i == EG_NONE) return false;
    const rule_shape *sh = &m->s->rec[st_rep(m->s, eg_find(m->s->g, m->var[i])).i].shape;
    const rule_term **dim = iso_arena_alloc(a, (sh->rank + 1) * sizeof *dim);
    if (!dim) return false;
    for (uint32_t k = 0; k < sh->rank; k++)
      if (!(dim[k] = rule_int(a, sh->dim[k]))) return false;
    v[i] = (rule_variable){.name = r->var[i].name,
                           .kind = r->var[i].kind,
                           .narrow = r->var[i].narrow,
                           .n_dims = sh->rank,
                           .dim = dim};
  }
  *out = (rule){.name = r->name,
                .n_vars = r->n_vars,
                .var = v,
                .lhs = names_put(&m->names, r->lhs, a),
                .rhs = names_put(&m->names, r->rhs, a)};
  return out->lhs && out->rhs;
}

iso_code st_apply_rules(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  matcher *m = NULL;
  rule inst;
  *done = false;
  iso_code c = matcher_new(s, &m) ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; !c && i < rule_set_count(s->rules.set) && !*done; i++) {
    if (!st_usable(s, i)) continue;
    const rule *r = rule_set_at(s->rules.set, i);
    eg_node from = u, to = t;
    st_compiled as;
    if ((c = st_compile(s, &s->rules.compiled, i, r, &as, err))) break;
    if (!match_rule(m, r, &as, u, t) || !names_strict(&m->names, r)) {
      if (!match_rule(m, r, &as, t, u) || !names_strict(&m->names, r)) continue;
      from = t, to = u;
    }
    s->res->n_reused++;
    s->rules.info[i].read |= !names_exact(&m->names, r);
    *done = true;
    const bool known = instantiate(m, &s->arena, &inst);
    const st_use use = use_of(m, i, from, to, known ? &inst : NULL);
    c = st_record_application(s, &use, err);
  }
  matcher_free(m);
  return c;
}

/* ---- rules given by the user: each concrete instance is validated again ---- */

/* Add a rule to the validated ones, or find it there. Returns: in `fresh` whether its verdict is
 * still to be found out. */
static iso_code enter(st_rules *rules, const rule *r, size_t *index, bool *fresh, iso_error *err) {
  iso_code c = rule_set_add(rules->set, r, index, fresh, err);
  if (!c && !iso_grow(rules->info, rules->cap_info, *index + 1))
    c = iso_fail(err, ISO_NOMEM, "out of memory");
  return c;
}

static iso_code ask(state *s, size_t index, rule_tensor *const *example, iso_error *err) {
  const double t0 = synth_clock(), cpu = synth_cpu_clock();
  rule_verdict v = {0};
  iso_code c =
      s->oracle->decide(s->oracle->ctx, rule_set_at(s->rules.set, index), example, &v, err);
  s->res->seconds_validate += synth_clock() - t0;
  st_note_cost(s, rule_set_at(s->rules.set, index)->name, cpu);
  if (c) return c;
  st_refuse_masks(&s->masks, &v);
  s->rules.info[index] = (rule_info){.verdict = v, .loaded = true};
  rule_set_evidence(s->rules.set, index, v.status, v.scope);
  return ISO_OK;
}

/* A rule with open sizes is validated once, for all of them. Returns: in `index` where it is among
 * the validated rules, SIZE_MAX where it does not hold for all sizes as far as is known: then its
 * instances are validated. */
static iso_code whole(state *s, size_t known, size_t *index, iso_error *err) {
  const rule *r = rule_set_at(s->known, known);
  rule_tensor *example[RULE_MAX_VARS] = {NULL};
  bool fresh = false, open = r->n_attrs > 0 || r->n_where > 0;
  *index = SIZE_MAX;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    if (r->var[i].low || r->var[i].high) return ISO_OK; /* holds for some values only */
    open |= r->var[i].any_shape || r->var[i].leading;
    for (uint32_t k = 0; k < r->var[i].n_dims; k++) open |= r->var[i].dim[k]->kind != RULE_INT;
  }
  if (!open) return ISO_OK;
  iso_code c = enter(&s->rules, r, index, &fresh, err);
  if (!c && fresh) c = ask(s, *index, example, err);
  if (!c && s->rules.info[*index].verdict.status != RULE_PROVED) {
    /* Tests of some sizes say less than those of the sizes at hand. */
    s->rules.info[*index].verdict.status = RULE_UNKNOWN;
    *index = SIZE_MAX;
  }
  return c;
}

/* The rule at the sizes of its variables' tensors, validated for them. */
static iso_code at_these_sizes(state *s, const rule *at, const eg_node *var, size_t *index,
                               iso_error *err) {
  rule_tensor *example[RULE_MAX_VARS] = {NULL};
  bool fresh = false;
  for (uint32_t k = 0; k < at->n_vars && var; k++) {
    const eg_node rep = st_rep(s, eg_class_of(s->g, var[k]));
    example[k] = st_spare(s, st_home(s, rep)) ? NULL : st_val(s, rep, 0);
  }
  iso_code c = enter(&s->rules, at, index, &fresh, err);
  if (!c && fresh) c = ask(s, *index, example, err);
  return c;
}

iso_code st_admit_known(state *s, size_t known, const rule *at, const eg_node *var, const names *n,
                        size_t *index, iso_error *err) {
  const rule *r = rule_set_at(s->known, known);
  iso_code c = ISO_OK;
  *index = SIZE_MAX;
  if (names_strict(n, r)) c = whole(s, known, index, err);
  if (!c && *index != SIZE_MAX) s->rules.info[*index].read |= !names_exact(n, r);
  if (!c && *index == SIZE_MAX) c = at_these_sizes(s, at, var, index, err);
  if (!c && *index != SIZE_MAX && !st_usable(s, *index)) *index = SIZE_MAX;
  return c;
}

/* The e-class that each variable is bound to. */
static void stand_for(const matcher *m, eg_node *var) {
  for (uint32_t i = 0; i < m->r->n_vars; i++)
    var[i] = m->var_as[i].i != EG_NONE ? m->var_as[i] : st_rep(m->s, eg_find(m->s->g, m->var[i]));
}

iso_code st_apply_known(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  matcher *m = NULL;
  *done = false;
  const size_t n = s->known ? rule_set_count(s->known) : 0;
  if (!n) return ISO_OK;
  iso_code c = matcher_new(s, &m) ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; !c && i < n && !*done; i++) {
    const rule *r = rule_set_at(s->known, i);
    eg_node from = u, to = t, var[RULE_MAX_VARS];
    st_compiled as;
    if ((c = st_compile(s, &s->rules.known_compiled, i, r, &as, err))) break;
    if (!match_rule(m, r, &as, u, t)) {
      if (!match_rule(m, r, &as, t, u)) continue;
      from = t, to = u;
    }
    size_t index = SIZE_MAX;
    rule inst;
    if (!instantiate(m, &s->arena, &inst)) {
      if (s->arena.failed) c = iso_fail(err, ISO_NOMEM, "out of memory");
      continue;
    }
    stand_for(m, var);
    c = st_admit_known(s, i, &inst, var, &m->names, &index, err);
    if (c || index == SIZE_MAX) continue;
    s->res->n_reused++;
    *done = true;
    const st_use use = use_of(m, index, from, to, &inst);
    c = st_record_application(s, &use, err);
  }
  matcher_free(m);
  return c;
}

/* ---- rules on graphs that are not run ---- */

enum { MAX_PLACES = 8 };

/* The matches of one side of a rule at an e-node, as the rule at their numbers. */
typedef struct places {
  size_t n;
  rule at[MAX_PLACES];
  eg_node var[MAX_PLACES][RULE_MAX_VARS];
  names as[MAX_PLACES];
  bool exact[MAX_PLACES];
  bool starved;
} places;

/* The same match by other members of its classes. Most are: nothing is made for these. */
static bool noted(const matcher *m, const places *p, size_t k) {
  for (uint32_t i = 0; i < m->r->n_vars; i++)
    if (eg_class_of(m->s->g, p->var[k][i]).i != eg_find(m->s->g, m->var[i]).i) return false;
  return names_same(&p->as[k], &m->names);
}

/* Returns: whether there is no room for more. */
static bool note_place(matcher *m) {
  places *p = m->all;
  if (!names_strict(&m->names, m->r)) return false;
  for (uint32_t i = 0; i < m->r->n_vars; i++)
    if (m->var[i].i == EG_NONE) return false;
  for (size_t k = 0; k < p->n; k++)
    if (noted(m, p, k)) return false;
  rule at;
  if (!instantiate(m, m->names.arena, &at)) return false;
  for (uint32_t i = 0; i < m->r->n_vars; i++) {
    const eg_node as = m->var_as[i], rep = st_rep(m->s, eg_find(m->s->g, m->var[i]));
    p->var[p->n][i] = as.i != EG_NONE && m->s->rec[as.i].valued ? as : rep;
  }
  p->exact[p->n] = names_exact(&m->names, m->r);
  p->as[p->n] = m->names;
  p->at[p->n++] = at;
  return p->n == MAX_PLACES;
}

/* The rule among the validated ones, if it holds there. One whose sizes are numbers is asked at
 * them, if they are small: nothing large is made. */
static iso_code admit_unrun(state *s, size_t known, const rule *at, bool exact, size_t *index,
                            iso_error *err) {
  enum { SMALL = 1 << 16 };
  bool small = true;
  iso_code c = whole(s, known, index, err);
  for (uint32_t i = 0; i < at->n_vars; i++) {
    int64_t n = 1;
    for (uint32_t d = 0; d < at->var[i].n_dims && n <= SMALL; d++) n *= at->var[i].dim[d]->u.i;
    small &= n <= SMALL;
  }
  if (!c && *index == SIZE_MAX && small) c = at_these_sizes(s, at, NULL, index, err);
  if (!c && *index != SIZE_MAX && !st_usable(s, *index)) *index = SIZE_MAX;
  if (!c && *index != SIZE_MAX) s->rules.info[*index].read |= !exact;
  return c;
}

/* Both sides of a match are added, and joined. */
static iso_code join_sides(state *s, size_t known, const places *p, size_t k, bool *joined,
                           iso_error *err) {
  size_t index = SIZE_MAX;
  const size_t before = s->n_rec;
  rule at = p->at[k];
  eg_node end[2];
  iso_code c = admit_unrun(s, known, &at, p->exact[k], &index, err);
  if (c || index == SIZE_MAX) return c;
  for (int side = 0; side < 2 && !c; side++)
    c = st_add_term(s, side ? at.rhs : at.lhs, p->var[k], &end[side], err);
  if (!c) st_mark_multi(s, before);
  if (c || eg_equal(s->g, end[0], end[1])) return c;
  at.lhs = rule_term_copy(&s->arena, at.lhs); /* what is noted of it stays */
  at.rhs = rule_term_copy(&s->arena, at.rhs);
  if (!at.lhs || !at.rhs) return iso_fail(err, ISO_NOMEM, "out of memory");
  const st_use use = {.rule = index, .from = end[0], .to = end[1], .as = &at, .var = p->var[k]};
  *joined = true;
  s->res->n_reused++;
  return st_record_application(s, &use, err);
}

/* Where the other side says its shape at its root, that is the shape of the one that is matched:
 * half of an odd size is written nowhere else. */
static bool bind_result(matcher *m, const rule_term *other, eg_node u) {
  if (other->kind != RULE_OP || !rule_operator_of(other->u.s)->sizes || other->n < 2) return true;
  const rule_term *list = other->child[1];
  const rule_shape *shape = &m->s->rec[u.i].shape;
  if (list->kind != RULE_LIST || !m->s->rec[u.i].tensor || list->n != shape->rank) return true;
  for (uint32_t d = 0; d < list->n; d++) {
    const rule_term *n = rule_int(m->names.arena, shape->dim[d]);
    if (!n || !names_bind(&m->names, list->child[d], n)) return false;
  }
  return true;
}

static void match_from(matcher *m, const rule *r, const st_pattern *p, eg_node u) {
  const goal root = {p, eg_class_of(m->s->g, u), u, NULL};
  m->r = r;
  m->steps = 0;
  m->at = (mark){0};
  names_init(&m->names, m->names.arena);
  for (uint32_t i = 0; i < r->n_vars; i++) m->var[i].i = m->var_as[i].i = EG_NONE;
  const rule_term *other = p->t == r->lhs ? r->rhs : p->t == r->rhs ? r->lhs : NULL;
  if (!other || bind_result(m, other, u)) solve_node(m, &root, u);
}

/* Matches a side of the rule with its root at `u`; or the operand that its root only rearranges,
 * since no graph need have the root itself: unsqueeze(f(x)) where f(x) stands, reshape(reshape(x))
 * at the inner one. `first`: at the outermost operator that `u` is, and no further. */
static void match_at(matcher *m, const rule *r, const st_pattern *p, eg_node u, bool first) {
  bool here = false;
  for (; p->t->kind == RULE_OP && !(here && first); p = &p->child[0]) {
    here = p->op.i == eg_node_symbol(m->s->g, u).i;
    if (here && m->all->n < MAX_PLACES) match_from(m, r, p, u);
    if (p->t->n == 0 || !p->rearranges) return;
  }
}

iso_code st_rewrite(state *s, eg_node u, bool smaller, bool *joined, iso_error *err) {
  const size_t n = s->known ? rule_set_count(s->known) : 0;
  matcher *m = NULL;
  places *p = malloc(sizeof *p);
  iso_arena scratch;
  iso_arena_init(&scratch);
  iso_code c = p && matcher_new(s, &m) ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < n && !c; i++) {
    const rule *r = rule_set_at(s->known, i);
    st_compiled as;
    if (r->n_vars > RULE_MAX_VARS) continue;
    c = st_compile(s, &s->rules.known_compiled, i, r, &as, err);
    const rule_term *const term[2] = {r->lhs, r->rhs};
    for (int from = 0; from < 2 && !c; from++) {
      if (smaller && rule_term_size(term[!from]) >= rule_term_size(term[from])) continue;
      p->n = 0;
      m->all = p;
      names_init(&m->names, &scratch);
      match_at(m, r, as.side[from], u, smaller);
      if (scratch.failed) c = iso_fail(err, ISO_NOMEM, "out of memory");
      for (size_t k = 0; k < p->n && !c; k++) c = join_sides(s, i, p, k, joined, err);
    }
  }
  matcher_free(m);
  free(p);
  iso_arena_fini(&scratch);
  return c;
}
