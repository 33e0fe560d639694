/* The chain from the left outputs to the right ones, as a list of steps that each follow from those
 * before them.
 *
 * The e-graph's explanations speak of e-nodes, and an e-node may stand for several captured nodes
 * at once (equal up to earlier merges). A certificate speaks of terms: captured nodes and calls
 * over terms. Every e-node becomes the term it was added as; where that is literally a captured
 * node, it is that node. What the e-graph took for granted when it found an e-node again, or
 * matched a rule through another member of a class, is written out as congruences.
 *
 * Order: eg_explain gives a congruence's premises before it. A rule's premises are explained where
 * the rule is used. A path in the proof forest never changes, so they rest on older merges only,
 * and the recursion ends. */
#include "synth/search/substitution.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/result/result.h"

#include "egraph/base/hash.h"
#include "rules/permutation.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX };

typedef struct writer {
  state *s;
  synth_cert_term *term; /* captured nodes of the left, of the right, then calls */
  uint32_t *up;          /* by term: equal so far */
  size_t n_terms, cap_terms, cap_up;
  uint32_t *table; /* calls by content: id + 1, 0 empty */
  size_t n_table;
  const rule_term **arg; /* by e-node: it as an argument: VAR, LIST or literal */
  synth_cert_step *step;
  size_t n_steps, cap_steps;
  bool *linked[2];
  const char *missing; /* why there is no certificate */
  iso_error *err;
} writer;

static iso_code nomem(writer *w) { return iso_fail(w->err, ISO_NOMEM, "out of memory"); }

/* ---- terms ---- */

static uint32_t root(writer *w, uint32_t i) {
  while (w->up[i] != i) i = w->up[i] = w->up[w->up[i]];
  return i;
}

static uint32_t captured(const writer *w, int side, size_t node) {
  return (uint32_t)(node + (side == RIGHT ? w->s->graph[LEFT]->n_nodes : 0));
}

static uint64_t hash_term(const rule_term *t) {
  uint64_t h = (uint64_t)t->kind * 31 + t->n;
  if (t->kind == RULE_OP || t->kind == RULE_STRING) h = iso_hash(t->u.s, strlen(t->u.s), h);
  else if (t->kind != RULE_LIST && t->kind != RULE_NONE) h = iso_hash(&t->u, sizeof t->u, h);
  for (uint32_t k = 0; k < t->n; k++) h = (h ^ hash_term(t->child[k])) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

static uint32_t *slot(writer *w, const rule_term *t) {
  for (uint64_t h = hash_term(t);; h++) {
    uint32_t *x = &w->table[h & (w->n_table - 1)];
    if (*x == 0 || rule_term_eq(w->term[*x - 1].call, t)) return x;
  }
}

static bool enlarge(writer *w) {
  uint32_t *old = w->table;
  const size_t n = w->n_table;
  w->n_table = n ? 2 * n : 1024;
  if (!(w->table = calloc(w->n_table, sizeof *w->table))) {
    w->table = old, w->n_table = n;
    return false;
  }
  for (size_t i = 0; i < n; i++)
    if (old[i]) *slot(w, w->term[old[i] - 1].call) = old[i];
  free(old);
  return true;
}

static iso_code push_term(writer *w, synth_cert_term t) {
  if (w->n_terms >= NONE - 1 || !iso_grow(w->term, w->cap_terms, w->n_terms + 1) ||
      !iso_grow(w->up, w->cap_up, w->n_terms + 1))
    return nomem(w);
  w->up[w->n_terms] = (uint32_t)w->n_terms;
  w->term[w->n_terms++] = t;
  return ISO_OK;
}

/* The number of a call over terms. */
static iso_code call_term(writer *w, const rule_term *t, uint32_t *out) {
  if (2 * w->n_terms >= w->n_table && !enlarge(w)) return nomem(w);
  uint32_t *x = slot(w, t);
  if (*x == 0) {
    iso_code c = push_term(w, (synth_cert_term){.call = t});
    if (c) return c;
    *x = (uint32_t)w->n_terms;
  }
  *out = *x - 1;
  return ISO_OK;
}

/* A captured call over the terms of its side's nodes. NULL when there is no memory. */
static const rule_term *over_terms(writer *w, int side, const rule_term *t) {
  iso_arena *a = &w->s->arena;
  if (t->kind == RULE_VAR) return rule_var(a, captured(w, side, (size_t)t->u.i));
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  if (!child) return NULL;
  for (uint32_t k = 0; k < t->n; k++)
    if (!(child[k] = over_terms(w, side, t->child[k]))) return NULL;
  return t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
}

static const rule_term *as_read(writer *w, int side, size_t node) {
  const rule_term *call = st_read_call(w->s, side, node, &w->s->arena);
  return call ? over_terms(w, side, call) : NULL;
}

/* The node of `side` that is literally this call. Returns: NONE if none. */
static uint32_t captured_as(writer *w, eg_node e, int side, const rule_term *call, bool *starved) {
  const int32_t n = w->s->rec[e.i].node[side];
  if (n < 0 || w->s->graph[side]->node[n].kind != SYNTH_OP) return NONE;
  const rule_term *t = as_read(w, side, (size_t)n);
  *starved |= !t;
  return t && rule_term_eq(t, call) ? captured(w, side, (size_t)n) : NONE;
}

/* A term over terms, each of whose calls becomes one. */
static iso_code flatten(writer *w, const rule_term *t, const rule_term **out) {
  const rule_term **child = iso_arena_alloc(&w->s->arena, (t->n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : nomem(w);
  *out = t;
  for (uint32_t k = 0; k < t->n && !c; k++) c = flatten(w, t->child[k], &child[k]);
  if (c || (t->kind != RULE_OP && t->kind != RULE_LIST)) return c;
  if (t->kind == RULE_LIST)
    return (*out = rule_list(&w->s->arena, child, t->n)) ? ISO_OK : nomem(w);
  const rule_term *call = rule_op(&w->s->arena, t->u.s, child, t->n);
  uint32_t id;
  if (!call) return nomem(w);
  if ((c = call_term(w, call, &id))) return c;
  return (*out = rule_var(&w->s->arena, id)) ? ISO_OK : nomem(w);
}

/* The numbers whose order an input of different integers begins. */
static iso_code name_order(writer *w, eg_node leaf, const rule_term **out) {
  state *s = w->s;
  const int side = s->rec[leaf.i].node[LEFT] >= 0 ? LEFT : RIGHT;
  const synth_node *n = &s->graph[side]->node[s->rec[leaf.i].node[side]];
  const rule_term *t;
  iso_code c = rule_order(&s->arena, s->schemas, n->domain, &n->shape, w->arg[leaf.i], &t, w->err);
  return c ? c : flatten(w, t, out);
}

/* An e-node as an argument. Its original children are older, and were done before. */
static iso_code name_node(writer *w, eg_node e) {
  state *s = w->s;
  iso_arena *a = &s->arena;
  const rule_term *lit = st_literal(s, e);
  const size_t n = eg_node_arity(s->g, e);
  uint32_t id = NONE;
  if (lit) {
    w->arg[e.i] = lit;
    return ISO_OK;
  }
  if (st_bound_by(s, e, true)) {
    const st_bound *b = st_bound_by(s, e, true);
    w->arg[e.i] = w->arg[b->leaf.i];
    return b->other ? name_order(w, b->leaf, &w->arg[e.i]) : ISO_OK;
  }
  for (int side = 0; side < 2 && s->rec[e.i].leaf && id == NONE; side++)
    if (s->rec[e.i].node[side] >= 0) id = captured(w, side, (size_t)s->rec[e.i].node[side]);
  if (id == NONE) {
    const rule_term **child = iso_arena_alloc(a, (n + 1) * sizeof *child);
    if (!child) return nomem(w);
    for (size_t k = 0; k < n; k++)
      if (!(child[k] = w->arg[eg_node_original(s->g, e, k).i])) return nomem(w);
    if (st_is_list(s, e)) return (w->arg[e.i] = rule_list(a, child, n)) ? ISO_OK : nomem(w);
    const rule_term *call = rule_op(a, eg_symbol_name(s->g, eg_node_symbol(s->g, e)), child, n);
    bool starved = !call;
    for (int side = 0; side < 2 && call && id == NONE; side++)
      id = captured_as(w, e, side, call, &starved);
    if (starved) return nomem(w);
    iso_code c = id == NONE ? call_term(w, call, &id) : ISO_OK;
    if (c) return c;
  }
  return (w->arg[e.i] = rule_var(a, id)) ? ISO_OK : nomem(w);
}

static uint32_t term_of(const writer *w, eg_node e) {
  return w->arg[e.i]->kind == RULE_VAR ? (uint32_t)w->arg[e.i]->u.i : NONE;
}

/* ---- steps ---- */

static iso_code say(writer *w, synth_cert_step x) {
  if (!iso_grow(w->step, w->cap_steps, w->n_steps + 1)) return nomem(w);
  w->step[w->n_steps++] = x;
  w->up[root(w, x.a)] = root(w, x.b);
  return ISO_OK;
}

static iso_code say_same(writer *w, uint32_t a, uint32_t b) {
  return root(w, a) == root(w, b)
             ? ISO_OK
             : say(w, (synth_cert_step){.kind = SYNTH_CERT_SAME, .a = a, .b = b});
}

static bool same_arg(writer *w, const rule_term *a, const rule_term *b) {
  if (a->kind == RULE_VAR && b->kind == RULE_VAR)
    return root(w, (uint32_t)a->u.i) == root(w, (uint32_t)b->u.i);
  if (a->kind != RULE_LIST || b->kind != RULE_LIST || a->n != b->n) return rule_term_eq(a, b);
  for (uint32_t k = 0; k < a->n; k++)
    if (!same_arg(w, a->child[k], b->child[k])) return false;
  return true;
}

static iso_code justify(writer *w, const application *app);

static iso_code say_given(writer *w, const eg_step *x) {
  state *s = w->s;
  uint32_t a = term_of(w, x->from), b = term_of(w, x->to);
  eg_node other = x->to;
  if (x->why.kind == WHY_VALUE) {
    const bool rounds = s->assume[x->why.data].kind == RULE_ASSUMES_ROUNDING;
    return say(w, (synth_cert_step){
                      .kind = rounds ? SYNTH_CERT_ROUNDING : SYNTH_CERT_VALUE, .a = a, .b = b});
  }
  if (!s->rec[x->from.i].leaf || st_bound_by(s, x->from, true)) { /* the leaf comes first */
    const uint32_t t = a;
    a = b, b = t;
    other = x->from;
  }
  const bool bound = st_bound_by(s, other, false) != NULL;
  return say(w,
             (synth_cert_step){.kind = bound ? SYNTH_CERT_BOUND : SYNTH_CERT_LEAF, .a = a, .b = b});
}

/* Say why two e-nodes are equal. */
static iso_code ensure(writer *w, eg_node a, eg_node b) {
  if (same_arg(w, w->arg[a.i], w->arg[b.i])) return ISO_OK;
  eg_step *step = NULL;
  size_t n = 0;
  iso_code c = eg_explain(w->s->g, a, b, &step, &n, w->err);
  for (size_t i = 0; i < n && !c && !w->missing; i++) {
    const eg_step *x = &step[i];
    const uint32_t p = term_of(w, x->from), q = term_of(w, x->to);
    if (p == NONE || q == NONE || root(w, p) == root(w, q))
      continue; /* lists stand inside of calls */
    switch (x->why.kind) {
    case EG_WHY_CONGRUENCE: c = say_same(w, p, q); break;
    case WHY_RULE: c = justify(w, &w->s->app[x->why.data]); break;
    default: c = say_given(w, x); break;
    }
  }
  free(step);
  if (!c && !w->missing && !same_arg(w, w->arg[a.i], w->arg[b.i]))
    w->missing = "an explanation did not connect what it should";
  return c;
}

/* ---- rules ---- */

typedef struct replay {
  writer *w;
  const instance *inst;
  size_t next; /* of inst->at */
} replay;

/* A side of the rule with its variables replaced: literally, as an argument, and the e-node that it
 * is equal to. */
static iso_code instantiate(replay *x, const rule_term *p, const rule_term **arg, eg_node *node) {
  writer *w = x->w;
  state *s = w->s;
  *node = (eg_node){EG_NONE};
  if (p->kind == RULE_VAR) {
    *node = x->inst->var[p->u.i];
    *arg = w->arg[node->i];
    return ISO_OK;
  }
  *arg = p;
  if (p->kind != RULE_OP && p->kind != RULE_LIST) return ISO_OK;
  const rule_term **child = iso_arena_alloc(&s->arena, (p->n + 1) * sizeof *child);
  eg_node *below = calloc(p->n + 1, sizeof *below);
  iso_code c = child && below ? ISO_OK : nomem(w);
  for (uint32_t k = 0; k < p->n && !c; k++) c = instantiate(x, p->child[k], &child[k], &below[k]);
  if (!c) *node = x->inst->at[x->next++];
  for (uint32_t k = 0; k < p->n && !c && !w->missing; k++)
    if (below[k].i != EG_NONE)
      c = ensure(w, below[k], (eg_node){eg_node_original(s->g, *node, k).i});
  free(below);
  if (c) return c;
  if (p->kind == RULE_LIST) return (*arg = rule_list(&s->arena, child, p->n)) ? ISO_OK : nomem(w);
  const rule_term *call = rule_op(&s->arena, p->u.s, child, p->n);
  uint32_t id;
  if (!call) return nomem(w);
  const uint32_t there = term_of(w, *node);
  const synth_cert_term *t = &w->term[there];
  /* A captured node may be this very call. */
  const rule_term *said = t->call ? t->call : as_read(w, t->right ? RIGHT : LEFT, t->node);
  if (!said) return nomem(w);
  if (rule_term_eq(said, call)) id = there;
  else if ((c = call_term(w, call, &id)) || (c = say_same(w, id, there))) return c;
  return (*arg = rule_var(&s->arena, id)) ? ISO_OK : nomem(w);
}

static iso_code justify(writer *w, const application *app) {
  state *s = w->s;
  const rule *r = rule_set_at(s->rules, app->rule);
  const instance *inst = app->inst;
  if (!inst) {
    w->missing = iso_arena_printf(&s->res->arena, "no instance of rule %s was noted", r->name);
    return w->missing ? ISO_OK : nomem(w);
  }
  replay x = {.w = w, .inst = inst};
  const rule_term *l = NULL, *t = NULL;
  eg_node nl, nr;
  iso_code c = instantiate(&x, inst->side[0], &l, &nl);
  if (!c && !w->missing) c = ensure(w, app->from, nl);
  if (!c && !w->missing) c = instantiate(&x, inst->side[1], &t, &nr);
  if (!c && !w->missing) c = ensure(w, app->to, nr);
  if (c || w->missing) return c;
  uint32_t *var = iso_arena_alloc(&s->res->arena, (r->n_vars + 1) * sizeof *var);
  if (!var) return nomem(w);
  for (uint32_t i = 0; i < r->n_vars; i++)
    var[i] = inst->var[i].i == EG_NONE ? NONE : term_of(w, inst->var[i]);
  if (same_arg(w, l, t)) return ISO_OK;
  return say(w, (synth_cert_step){.kind = SYNTH_CERT_RULE,
                                  .a = (uint32_t)l->u.i,
                                  .b = (uint32_t)t->u.i,
                                  .applied = r,
                                  .var = var,
                                  .n_names = inst->n_names,
                                  .name = inst->name,
                                  .value = inst->value});
}

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

static const rule_term *renumber(iso_arena *a, const rule_term *t, const uint32_t *to) {
  if (t->kind == RULE_VAR) return rule_var(a, to[t->u.i]);
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  if (!child) return NULL;
  for (uint32_t k = 0; k < t->n; k++)
    if (!(child[k] = renumber(a, t->child[k], to))) return NULL;
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
                .lhs = renumber(&s->arena, as->lhs, to),
                .rhs = renumber(&s->arena, as->rhs, to)};
  return out->lhs && out->rhs ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* What stands for the names of `r`, in the result's memory. Returns: false where `at` is no
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
  const rule *r = rule_set_at(s->rules, a->rule);
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

/* ---- from captured nodes to e-nodes ---- */

/* What stands at the variables of a captured argument is equal to what the e-node had there. */
static iso_code ensure_argument(writer *w, int side, const rule_term *t, eg_node e) {
  iso_code c = ISO_OK;
  if (t->kind == RULE_VAR) return ensure(w, w->s->map[side][t->u.i], e);
  if (t->kind == RULE_OP || t->kind == RULE_LIST)
    for (uint32_t k = 0; k < t->n && !c && !w->missing; k++)
      c = ensure_argument(w, side, t->child[k], (eg_node){eg_node_original(w->s->g, e, k).i});
  return c;
}

static iso_code link_node(writer *w, int side, uint32_t i) {
  state *s = w->s;
  const eg_node e = s->map[side][i];
  const rule_term *own = s->graph[side]->node[i].call, *given = s->given[side][i].call;
  const rule_term *call = own != given ? own : st_read_call(s, side, i, &s->arena);
  uint32_t mine = captured(w, side, i);
  if (own != given) { /* literals that were rounded are read with more digits */
    const rule_term *t = over_terms(w, side, own);
    uint32_t read;
    if (!t) return nomem(w);
    iso_code c = ensure_argument(w, side, own, e);
    if (c || w->missing) return c;
    if ((c = call_term(w, t, &read)) ||
        (c = say(w, (synth_cert_step){.kind = SYNTH_CERT_ROUNDING, .a = mine, .b = read})))
      return c;
    return say_same(w, read, term_of(w, e));
  }
  iso_code c = call ? ensure_argument(w, side, call, e) : nomem(w);
  return c || w->missing ? c : say_same(w, mine, term_of(w, e));
}

static void mark_below(const rule_term *t, bool *mark) {
  if (t->kind == RULE_VAR) mark[t->u.i] = true;
  for (uint32_t k = 0; k < t->n; k++) mark_below(t->child[k], mark);
}

/* Captured node `top` equals its e-node: so do the nodes below it, down to those that are literally
 * their e-nodes. */
static iso_code link_captured(writer *w, int side, uint32_t top) {
  state *s = w->s;
  const synth_graph *g = s->graph[side];
  bool *mark = calloc(g->n_nodes + 1, 1);
  iso_code c = mark ? ISO_OK : nomem(w);
  if (!c) mark[top] = true;
  for (uint32_t i = top + 1; i-- > 0 && !c;) {
    if (!mark[i]) continue;
    if (w->linked[side][i] || term_of(w, s->map[side][i]) == captured(w, side, i)) mark[i] = false;
    else mark_below(g->node[i].call, mark);
  }
  for (uint32_t i = 0; i <= top && !c && !w->missing; i++) {
    if (!mark[i]) continue;
    c = link_node(w, side, i);
    w->linked[side][i] = true;
  }
  free(mark);
  return c;
}

/* A term over captured nodes of the right: its number; it equals `e`. */
static iso_code link_relation(writer *w, const rule_term *t, uint32_t *id, eg_node *e) {
  state *s = w->s;
  if (t->kind == RULE_VAR) {
    *e = s->map[RIGHT][t->u.i];
    *id = captured(w, RIGHT, (size_t)t->u.i);
    return link_captured(w, RIGHT, (uint32_t)t->u.i);
  }
  eg_node below;
  uint32_t below_id;
  iso_code c = link_relation(w, t->child[0], &below_id, &below);
  const size_t before = eg_count_added(s->g);
  if (!c) c = st_add_term(s, t, s->map[RIGHT], e, w->err);
  if (c || w->missing) return c;
  if (eg_count_added(s->g) != before) {
    w->missing = "an output's relation is not in the e-graph";
    return ISO_OK;
  }
  if ((c = ensure(w, below, (eg_node){eg_node_original(s->g, *e, 0).i})) || w->missing) return c;
  const rule_term **child = iso_arena_alloc(&s->arena, (t->n + 1) * sizeof *child);
  if (!child) return nomem(w);
  memcpy(child, t->child, t->n * sizeof *child);
  child[0] = rule_var(&s->arena, below_id);
  const rule_term *call = child[0] ? rule_op(&s->arena, t->u.s, child, t->n) : NULL;
  if (!call) return nomem(w);
  return (c = call_term(w, call, id)) ? c : say_same(w, *id, term_of(w, *e));
}

/* ---- the whole ---- */

static void mark_terms(const rule_term *t, bool *used) {
  if (t->kind == RULE_VAR) used[t->u.i] = true;
  for (uint32_t k = 0; k < t->n; k++) mark_terms(t->child[k], used);
}

static void mark_steps(const writer *w, bool *used) {
  for (size_t i = 0; i < w->n_steps; i++) {
    const synth_cert_step *x = &w->step[i];
    used[x->a] = used[x->b] = true;
    for (uint32_t k = 0; x->applied && k < x->applied->n_vars; k++)
      if (x->var[k] != NONE) used[x->var[k]] = true;
  }
  for (size_t i = w->n_terms; i-- > 0;)
    if (used[i] && w->term[i].call) mark_terms(w->term[i].call, used);
}

/* Only what is spoken of, numbered anew. */
static iso_code compact(writer *w, synth_certificate *out, uint32_t (*output)[2],
                        size_t n_outputs) {
  iso_arena *a = &w->s->res->arena;
  bool *used = calloc(w->n_terms + 1, 1);
  uint32_t *to = calloc(w->n_terms + 1, sizeof *to);
  synth_cert_term *term = iso_arena_alloc(a, (w->n_terms + 1) * sizeof *term);
  synth_cert_step *step = iso_arena_alloc(a, (w->n_steps + 1) * sizeof *step);
  iso_code c = used && to && term && step ? ISO_OK : nomem(w);
  uint32_t n = 0;
  if (!c) {
    for (size_t i = 0; i < n_outputs; i++) used[output[i][0]] = used[output[i][1]] = true;
    mark_steps(w, used);
  }
  for (size_t i = 0; i < w->n_terms && !c; i++) {
    if (!used[i]) continue;
    to[i] = n;
    term[n] = w->term[i];
    if (term[n].call && !(term[n].call = renumber(a, term[n].call, to))) c = nomem(w);
    n++;
  }
  for (size_t i = 0; i < w->n_steps && !c; i++) {
    step[i] = w->step[i];
    step[i].a = to[step[i].a], step[i].b = to[step[i].b];
    uint32_t *var = (uint32_t *)step[i].var; /* ours: justify made it */
    for (uint32_t k = 0; step[i].applied && k < step[i].applied->n_vars; k++)
      if (var[k] != NONE) var[k] = to[var[k]];
  }
  for (size_t i = 0; i < n_outputs && !c; i++)
    output[i][0] = to[output[i][0]], output[i][1] = to[output[i][1]];
  free(used);
  free(to);
  *out = (synth_certificate){.masks_read = {w->s->read[ST_MASK_HALF], w->s->read[ST_MASK_OTHER]},
                             .n_terms = n,
                             .term = term,
                             .n_steps = w->n_steps,
                             .step = step,
                             .n_outputs = n_outputs,
                             .output = (const uint32_t(*)[2])output};
  return c;
}

static iso_code note_fixed(writer *w, synth_certificate *out) {
  state *s = w->s;
  struct synth_leaf_ref *ref = iso_arena_alloc(
      &s->res->arena, (s->graph[LEFT]->n_nodes + s->graph[RIGHT]->n_nodes + 1) * sizeof *ref);
  if (!ref) return nomem(w);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->graph[side]->node[i].kind == SYNTH_INPUT && s->rec[s->map[side][i].i].konst)
        ref[out->n_fixed++] = (struct synth_leaf_ref){side == RIGHT, (uint32_t)i};
  out->fixed = ref;
  return ISO_OK;
}

static iso_code name_all(writer *w) {
  state *s = w->s;
  iso_code c = ISO_OK;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++)
      c = push_term(w, (synth_cert_term){.right = side == RIGHT, .node = (uint32_t)i});
  const size_t n = eg_count_added(s->g);
  if (!c && !(w->arg = calloc(n + 1, sizeof *w->arg))) c = nomem(w);
  if (!c && !enlarge(w)) c = nomem(w);
  for (uint32_t i = 0; i < n && !c; i++) c = name_node(w, (eg_node){i});
  return c;
}

iso_code st_certify(state *s, const eg_node *aux, const rule_term *const *relation,
                    iso_error *err) {
  writer x = {.s = s, .err = err}, *w = &x;
  const synth_graph *L = s->graph[LEFT];
  synth_certificate *out = iso_arena_alloc(&s->res->arena, sizeof *out);
  uint32_t(*output)[2] = iso_arena_alloc(&s->res->arena, (L->n_outputs + 1) * sizeof *output);
  iso_code c = out && output ? name_all(w) : nomem(w);
  for (int side = 0; side < 2 && !c; side++)
    if (!(w->linked[side] = calloc(s->graph[side]->n_nodes + 1, 1))) c = nomem(w);
  for (size_t i = 0; i < L->n_outputs && !c && !w->missing; i++) {
    const uint32_t node = L->output[i].node;
    eg_node right;
    output[i][0] = captured(w, LEFT, node);
    c = ensure(w, s->map[LEFT][node], aux[i]);
    if (!c && !w->missing) c = link_captured(w, LEFT, node);
    if (!c && !w->missing) c = link_relation(w, relation[i], &output[i][1], &right);
    if (!c && !w->missing) c = ensure(w, aux[i], right);
  }
  if (!c && !w->missing) c = compact(w, out, output, L->n_outputs);
  if (!c && !w->missing) c = note_fixed(w, out);
  if (!c) {
    out->missing = w->missing;
    s->res->certificate = out;
  }
  free(w->term);
  free(w->up);
  free(w->table);
  free(w->arg);
  free(w->step);
  free(w->linked[LEFT]);
  free(w->linked[RIGHT]);
  return c;
}
