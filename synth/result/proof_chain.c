/* The chain from the left outputs to the right ones, as a list of steps that each follow from those
 * before them.
 *
 * The e-graph's explanations speak of e-nodes, and an e-node may stand for several captured nodes
 * at once (equal up to earlier merges). A certificate speaks of terms: captured nodes and calls
 * over terms. Every e-node becomes the term it was added as; where that is literally a captured
 * node, it is that node. Equalities that the e-graph used silently, when it found an e-node again
 * or matched a rule through another member of a class, are written out as congruences.
 *
 * Order: eg_explain gives a congruence's premises before it. A rule's premises are explained where
 * the rule is used. A path in the proof forest never changes, so they rest on older merges only,
 * and the recursion ends. */
#include "synth/result/proof_chain_int.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/result/result.h"

#include <stdlib.h>
#include <string.h>

static iso_code say(writer *w, synth_cert_step x) {
  if (!iso_grow(w->step, w->cap_steps, w->n_steps + 1)) return pc_nomem(w);
  w->step[w->n_steps++] = x;
  w->up[pc_root(w, x.a)] = pc_root(w, x.b);
  return ISO_OK;
}

static iso_code say_same(writer *w, uint32_t a, uint32_t b) {
  return pc_root(w, a) == pc_root(w, b)
             ? ISO_OK
             : say(w, (synth_cert_step){.kind = SYNTH_CERT_SAME, .a = a, .b = b});
}

static bool same_arg(writer *w, const rule_term *a, const rule_term *b) {
  if (a->kind == RULE_VAR && b->kind == RULE_VAR)
    return pc_root(w, (uint32_t)a->u.i) == pc_root(w, (uint32_t)b->u.i);
  if (a->kind != RULE_LIST || b->kind != RULE_LIST || a->n != b->n) return rule_term_eq(a, b);
  for (uint32_t k = 0; k < a->n; k++)
    if (!same_arg(w, a->child[k], b->child[k])) return false;
  return true;
}

static iso_code justify(writer *w, const application *app);
static iso_code ensure(writer *w, eg_node a, eg_node b);

/* ---- leaves ---- */

/* The other side's leaf that captured leaf `id` is by value; `id` itself where there is none. */
static iso_code counterpart(writer *w, uint32_t id, uint32_t *out) {
  state *s = w->s;
  const int side = w->term[id].right ? RIGHT : LEFT;
  const eg_node e = s->map[side][w->term[id].node], *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  *out = id;
  for (size_t i = 0; i < n && s->rec[e.i].leaf; i++) {
    if (!s->rec[m[i].i].leaf || s->rec[m[i].i].node[!side] < 0) continue;
    *out = pc_captured(w, !side, (size_t)s->rec[m[i].i].node[!side]);
    return ensure(w, m[i], e);
  }
  return ISO_OK;
}

static iso_code across(writer *w, int side, const rule_term *t, const rule_term **out);

/* Term `id` over the other side's leaves, as far as it is over those of `side`. */
static iso_code term_across(writer *w, int side, uint32_t id, uint32_t *out) {
  const synth_cert_term t = w->term[id];
  const rule_term *call;
  *out = id;
  if (!t.call) return t.right == (side == RIGHT) ? counterpart(w, id, out) : ISO_OK;
  iso_code c = across(w, side, t.call, &call);
  if (!c && !w->missing) c = pc_call(w, call, out);
  return c || w->missing ? c : say_same(w, *out, id);
}

static iso_code across(writer *w, int side, const rule_term *t, const rule_term **out) {
  iso_arena *a = &w->s->arena;
  uint32_t id;
  iso_code c = ISO_OK;
  *out = t;
  if (t->kind == RULE_VAR) {
    if ((c = term_across(w, side, (uint32_t)t->u.i, &id)) || w->missing) return c;
    return (*out = rule_var(a, id)) ? ISO_OK : pc_nomem(w);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return ISO_OK;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  if (!child) return pc_nomem(w);
  for (uint32_t k = 0; k < t->n && !c && !w->missing; k++)
    c = across(w, side, t->child[k], &child[k]);
  if (c || w->missing) return c;
  *out = t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
  return *out ? ISO_OK : pc_nomem(w);
}

static iso_code say_given(writer *w, const eg_step *x) {
  state *s = w->s;
  uint32_t a = pc_term_of(w, x->from), b = pc_term_of(w, x->to);
  eg_node other = x->to;
  if (x->why.kind == WHY_VALUE) {
    const bool rounds = s->assumed.of[x->why.data].kind == RULE_ASSUMES_ROUNDING;
    return say(w, (synth_cert_step){
                      .kind = rounds ? SYNTH_CERT_ROUNDING : SYNTH_CERT_VALUE, .a = a, .b = b});
  }
  if (!s->rec[x->from.i].leaf ||
      st_bound_by(&s->leaves, x->from, true)) { /* the leaf comes first */
    const uint32_t t = a;
    a = b, b = t;
    other = x->from;
  }
  const bool bound = st_bound_by(&s->leaves, other, false) != NULL;
  /* A leaf is a layout of the other side's. */
  iso_code c = bound || !w->term[b].call || w->term[a].call
                   ? ISO_OK
                   : term_across(w, w->term[a].right ? RIGHT : LEFT, b, &b);
  if (c || w->missing) return c;
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
    const uint32_t p = pc_term_of(w, x->from), q = pc_term_of(w, x->to);
    if (p == NONE || q == NONE || pc_root(w, p) == pc_root(w, q))
      continue; /* lists stand inside of calls */
    switch (x->why.kind) {
    case EG_WHY_CONGRUENCE: c = say_same(w, p, q); break;
    case WHY_RULE: c = justify(w, &w->s->rules.app[x->why.data]); break;
    default: c = say_given(w, x); break;
    }
  }
  free(step);
  if (!c && !w->missing && !same_arg(w, w->arg[a.i], w->arg[b.i]))
    w->missing = "an explanation did not connect what it should";
  return c;
}

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
  iso_code c = child && below ? ISO_OK : pc_nomem(w);
  for (uint32_t k = 0; k < p->n && !c; k++) c = instantiate(x, p->child[k], &child[k], &below[k]);
  if (!c) *node = x->inst->at[x->next++];
  for (uint32_t k = 0; k < p->n && !c && !w->missing; k++)
    if (below[k].i != EG_NONE)
      c = ensure(w, below[k], (eg_node){eg_node_original(s->g, *node, k).i});
  free(below);
  if (c) return c;
  if (p->kind == RULE_LIST)
    return (*arg = rule_list(&s->arena, child, p->n)) ? ISO_OK : pc_nomem(w);
  const rule_term *call = rule_op(&s->arena, p->u.s, child, p->n);
  uint32_t id;
  if (!call) return pc_nomem(w);
  const uint32_t there = pc_term_of(w, *node);
  const synth_cert_term *t = &w->term[there];
  /* A captured node may be this very call. */
  const rule_term *said = t->call ? t->call : pc_as_read(w, t->right ? RIGHT : LEFT, t->node);
  if (!said) return pc_nomem(w);
  if (rule_term_eq(said, call)) id = there;
  else if ((c = pc_call(w, call, &id)) || (c = say_same(w, id, there))) return c;
  return (*arg = rule_var(&s->arena, id)) ? ISO_OK : pc_nomem(w);
}

static iso_code justify(writer *w, const application *app) {
  state *s = w->s;
  const rule *r = rule_set_at(s->rules.set, app->rule);
  const instance *inst = app->inst;
  if (!inst) {
    w->missing = iso_arena_printf(&s->res->arena, "no instance of rule %s was noted", r->name);
    return w->missing ? ISO_OK : pc_nomem(w);
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
  if (!var) return pc_nomem(w);
  for (uint32_t i = 0; i < r->n_vars; i++)
    var[i] = inst->var[i].i == EG_NONE ? NONE : pc_term_of(w, inst->var[i]);
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

/* The terms at the variables of a captured argument are made equal to those of the e-node. */
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
  const rule_term *own = s->graph[side]->node[i].call, *given = s->constants.as_given[side][i].call;
  const rule_term *call = own != given ? own : st_read_call(s, side, i, &s->arena);
  uint32_t mine = pc_captured(w, side, i);
  if (own != given) { /* literals that were rounded are read with more digits */
    const rule_term *t = pc_over_terms(w, side, own);
    uint32_t read;
    if (!t) return pc_nomem(w);
    iso_code c = ensure_argument(w, side, own, e);
    if (c || w->missing) return c;
    if ((c = pc_call(w, t, &read)) ||
        (c = say(w, (synth_cert_step){.kind = SYNTH_CERT_ROUNDING, .a = mine, .b = read})))
      return c;
    return say_same(w, read, pc_term_of(w, e));
  }
  iso_code c = call ? ensure_argument(w, side, call, e) : pc_nomem(w);
  return c || w->missing ? c : say_same(w, mine, pc_term_of(w, e));
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
  iso_code c = mark ? ISO_OK : pc_nomem(w);
  if (!c) mark[top] = true;
  for (uint32_t i = top + 1; i-- > 0 && !c;) {
    if (!mark[i]) continue;
    if (w->linked[side][i] || pc_term_of(w, s->map[side][i]) == pc_captured(w, side, i))
      mark[i] = false;
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
    *id = pc_captured(w, RIGHT, (size_t)t->u.i);
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
  if (!child) return pc_nomem(w);
  memcpy(child, t->child, t->n * sizeof *child);
  child[0] = rule_var(&s->arena, below_id);
  const rule_term *call = child[0] ? rule_op(&s->arena, t->u.s, child, t->n) : NULL;
  if (!call) return pc_nomem(w);
  return (c = pc_call(w, call, id)) ? c : say_same(w, *id, pc_term_of(w, *e));
}

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

/* Keeps only terms that steps use, numbered anew. */
static iso_code compact(writer *w, synth_certificate *out, uint32_t (*output)[2],
                        size_t n_outputs) {
  iso_arena *a = &w->s->res->arena;
  bool *used = calloc(w->n_terms + 1, 1);
  uint32_t *to = calloc(w->n_terms + 1, sizeof *to);
  synth_cert_term *term = iso_arena_alloc(a, (w->n_terms + 1) * sizeof *term);
  synth_cert_step *step = iso_arena_alloc(a, (w->n_steps + 1) * sizeof *step);
  iso_code c = used && to && term && step ? ISO_OK : pc_nomem(w);
  uint32_t n = 0;
  if (!c) {
    for (size_t i = 0; i < n_outputs; i++) used[output[i][0]] = used[output[i][1]] = true;
    mark_steps(w, used);
  }
  for (size_t i = 0; i < w->n_terms && !c; i++) {
    if (!used[i]) continue;
    to[i] = n;
    term[n] = w->term[i];
    if (term[n].call && !(term[n].call = pc_renumber(a, term[n].call, to))) c = pc_nomem(w);
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
  *out = (synth_certificate){
      .masks_read = {w->s->masks.read[ST_MASK_HALF], w->s->masks.read[ST_MASK_OTHER]},
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
  if (!ref) return pc_nomem(w);
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
      c = pc_push(w, (synth_cert_term){.right = side == RIGHT, .node = (uint32_t)i});
  const size_t n = eg_count_added(s->g);
  if (!c && !(w->arg = calloc(n + 1, sizeof *w->arg))) c = pc_nomem(w);
  if (!c && !pc_enlarge(w)) c = pc_nomem(w);
  for (uint32_t i = 0; i < n && !c; i++) c = pc_name_node(w, (eg_node){i});
  return c;
}

iso_code st_certify(state *s, const eg_node *aux, const rule_term *const *relation,
                    iso_error *err) {
  writer x = {.s = s, .err = err}, *w = &x;
  const synth_graph *L = s->graph[LEFT];
  synth_certificate *out = iso_arena_alloc(&s->res->arena, sizeof *out);
  uint32_t(*output)[2] = iso_arena_alloc(&s->res->arena, (L->n_outputs + 1) * sizeof *output);
  iso_code c = out && output ? name_all(w) : pc_nomem(w);
  for (int side = 0; side < 2 && !c; side++)
    if (!(w->linked[side] = calloc(s->graph[side]->n_nodes + 1, 1))) c = pc_nomem(w);
  for (size_t i = 0; i < L->n_outputs && !c && !w->missing; i++) {
    const uint32_t node = L->output[i].node;
    eg_node right;
    output[i][0] = pc_captured(w, LEFT, node);
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
