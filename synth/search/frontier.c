/* Rule synthesis: the abstraction frontiers that two e-classes share (Emerge, section 3.3 and 4.2).
 *
 * A frontier is a set of classes at which both sides are cut; what lies above is the pattern, what
 * is cut becomes a variable. Cutting at every class that both cones contain gives the coarsest
 * shared frontier. Where validation refutes the rule, a class used by it is opened (taken out of
 * the set) and the pattern grows on both sides alike: a best-first search by total pattern size. */
#include "synth/search/frontier.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/search/substitution.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONE_MAX = 600, QUEUE_MAX = 256, MOST_WASTED = 512 };
enum {
  SHARED_MAX = 40
}; /* what a pattern may grow to, written out, where much of it stands in several places, as in a
      loop's states */
static const double INFINITE = 1e9, VARIABLE_COST = 4;

/* Literals are no part of a cone: a pattern holds them as they are. */
static const rule_term *literal_class(state *s, uint32_t c) {
  const eg_node *m;
  return eg_class_nodes(s->g, (eg_class){c}, &m) ? st_literal(s, m[0]) : NULL;
}

/* Where a captured node stands in each graph: what it is computed from stands earlier. */
typedef struct place {
  uint32_t before[2];
} place;

/* Whether an e-node may be what stands before `p`, and what may stand below it. Classes hold equal
 * tensors of several places (two masks that are empty, two layers' zeros): to go on from a later
 * one would lead round in a circle. */
static bool earlier(const rec *r, place *p) {
  bool any = r->node[0] < 0 && r->node[1] < 0;
  for (int side = 0; side < 2; side++)
    any |= r->node[side] >= 0 && (uint32_t)r->node[side] < p->before[side];
  for (int side = 0; side < 2; side++)
    if (r->node[side] >= 0 && (uint32_t)r->node[side] < p->before[side])
      p->before[side] = (uint32_t)r->node[side];
  return any;
}

static bool widen(place *p, const place *q) {
  bool wider = false;
  for (int side = 0; side < 2; side++)
    if (q->before[side] > p->before[side]) p->before[side] = q->before[side], wider = true;
  return wider;
}

typedef struct walk {
  state *s;
  cone *k;
  uint8_t bit;
  place *at;       /* by class id */
  uint8_t *queued; /* by class id */
  uint32_t *queue; /* a ring */
  size_t head, n, found;
} walk;

enum { RING = 4096 };

static void enter(walk *w, uint32_t c, const place *p) {
  cone *k = w->k;
  if (!(k->in[c] & w->bit)) {
    if (w->found == CONE_MAX) return;
    w->found++;
    if (!k->in[c]) k->cls[k->n++] = c;
    k->in[c] |= w->bit;
    w->at[c] = *p;
  } else if (!widen(&w->at[c], p)) return;
  if (w->queued[c] || w->n == RING) return;
  w->queued[c] = 1;
  w->queue[(w->head + w->n++) % RING] = c;
}

/* Breadth first through the members of every class: what is near comes first, the bound cuts what
 * is far. */
static iso_code explore(state *s, cone *k, eg_node root, uint8_t bit, iso_error *err) {
  const size_t n = eg_count_added(s->g);
  walk w = {.s = s,
            .k = k,
            .bit = bit,
            .at = malloc(n * sizeof *w.at),
            .queued = calloc(n, 1),
            .queue = calloc(RING, sizeof *w.queue)};
  iso_code code = w.at && w.queued && w.queue ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  const place start = {{UINT32_MAX, UINT32_MAX}};
  bool first = true;
  if (!code) enter(&w, eg_class_of(s->g, root).i, &start);
  while (!code && w.n) {
    const uint32_t c = w.queue[w.head];
    w.head = (w.head + 1) % RING;
    w.n--;
    w.queued[c] = 0;
    const eg_node *m;
    const size_t cnt = eg_class_nodes(s->g, (eg_class){c}, &m);
    for (size_t i = 0; i < cnt; i++) {
      if (first && m[i].i != root.i && !s->rec[m[i].i].leaf)
        continue; /* the root is this e-node, not its class */
      place p = w.at[c];
      if (!earlier(&s->rec[m[i].i], &p) && !first) continue;
      for (size_t a = 0; a < eg_node_arity(s->g, m[i]); a++) {
        const uint32_t d = eg_node_child(s->g, m[i], a).i;
        if (!literal_class(s, d)) enter(&w, d, &p);
      }
    }
    first = false;
  }
  free(w.at);
  free(w.queued);
  free(w.queue);
  return code;
}

static bool input_class(state *s, eg_class c) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    for (int side = 0; side < 2; side++) {
      const int32_t k = s->rec[m[i].i].node[side];
      if (k >= 0 && s->graph[side]->node[k].kind == SYNTH_INPUT) return true;
    }
  return false;
}

/* The classes that are being looked at, the last one first: two shapes of one table are made of
 * each other. */
typedef struct asked {
  eg_class c;
  const struct asked *above;
} asked;

static bool class_written_out(state *s, eg_class c, const asked *above);

/* A constant's numbers as a term without leaves: an arange, a fill, a table's in order. */
static bool written_out(state *s, eg_node e, const asked *above) {
  const rec *r = &s->rec[e.i];
  if (!r->konst || !r->tensor || r->leaf || r->node[0] >= 0 || r->node[1] >= 0) return false;
  const bool table = strcmp(eg_symbol_name(s->g, eg_node_symbol(s->g, e)), OP_RESHAPE) == 0;
  for (size_t a = 0; a < eg_node_arity(s->g, e); a++) {
    const eg_class c = eg_node_child(s->g, e, a);
    const eg_node d = st_rep(s, c);
    if (d.i == EG_NONE || !s->rec[d.i].tensor) continue;
    if (!table || input_class(s, eg_class_of(s->g, e)) || !class_written_out(s, c, above))
      return false;
  }
  return true;
}

static bool class_written_out(state *s, eg_class c, const asked *above) {
  const asked here = {eg_find(s->g, c), above};
  for (const asked *k = above; k; k = k->above)
    if (k->c.i == here.c.i) return false;
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    if (written_out(s, m[i], &here)) return true;
  return false;
}

bool fr_written_out(state *s, eg_class c) { return class_written_out(s, c, NULL); }

static double node_cost(state *s, cone *k, eg_node e) {
  if (st_literal(s, e)) return 0;
  const rec *r = &s->rec[e.i];
  /* A constant's leaf that only one side reads says nothing as a variable: any other form of what
   * is above it is better. */
  if (r->leaf) return !r->atom || k->opened[eg_class_of(s->g, e).i] ? INFINITE : r->konst ? 4 : 1;
  if (k->opened[eg_class_of(s->g, e).i] == READ && written_out(s, e, NULL)) return INFINITE;
  const char *op = eg_symbol_name(s->g, eg_node_symbol(s->g, e));
  double sum = strcmp(op, "#list") == 0 || rule_is_getitem(op) ? 0.01 : 1;
  /* What a graph computes is more general than a constant's layout that was read off its values. */
  if (r->konst && r->node[0] < 0 && r->node[1] < 0) sum += 0.5;
  for (size_t a = 0; a < eg_node_arity(s->g, e) && sum < INFINITE; a++) {
    const uint32_t d = eg_node_child(s->g, e, a).i;
    sum += k->in[d] ? k->cost[d] : literal_class(s, d) ? 0 : INFINITE;
  }
  return sum;
}

/* Smallest patterns by relaxation: cycles never win, since every operator costs. */
static void costs(state *s, cone *k) {
  for (size_t i = 0; i < k->n; i++) {
    k->cost[k->cls[i]] = k->cut[k->cls[i]] ? 1 : INFINITE;
    k->best[k->cls[i]] = EG_NONE;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = k->n; i-- > 0;) {
      const uint32_t c = k->cls[i];
      if (k->cut[c] || k->opened[c] == SHUT) continue;
      const eg_node *m;
      const size_t cnt = eg_class_nodes(s->g, (eg_class){c}, &m);
      for (size_t j = 0; j < cnt; j++) {
        const double x = node_cost(s, k, m[j]);
        if (x < k->cost[c] - 1e-9) {
          k->cost[c] = x;
          k->best[c] = m[j].i;
          changed = true;
        }
      }
    }
  }
}

static const rule_term *build_class(builder *b, uint32_t c, eg_node as);

static bool need(builder *b, eg_node x, eg_node y) {
  if (x.i == y.i) return true;
  if (!iso_grow(b->prem, b->cap_prem, b->n_prem + 1)) return false;
  b->prem[b->n_prem++] = (premise){x, y};
  return true;
}

static const rule_term *build_node(builder *b, eg_node e) {
  state *s = b->s;
  const rule_term *lit = st_literal(s, e);
  if (lit) return lit;
  const size_t n = eg_node_arity(s->g, e);
  b->distinct++;
  if (b->depth > 200) return NULL;
  const rule_term **child = iso_arena_alloc(&s->arena, (n + 1) * sizeof *child);
  if (!child) return NULL;
  b->depth++;
  for (size_t a = 0; a < n; a++)
    if (!(child[a] = build_class(b, eg_node_child(s->g, e, a).i,
                                 (eg_node){eg_node_original(s->g, e, a).i})))
      return NULL;
  b->depth--;
  const char *op = eg_symbol_name(s->g, eg_node_symbol(s->g, e));
  return strcmp(op, "#list") == 0 ? rule_list(&s->arena, child, n)
                                  : rule_op(&s->arena, op, child, n);
}

static const rule_term *make_var(builder *b, uint32_t c, eg_node as) {
  for (size_t i = 0; i < b->n_vars; i++)
    if (b->var[i].i == c) {
      b->used[i] |= b->side;
      if (!need(b, b->var_as[i], as)) return NULL;
      return rule_var(&b->s->arena, (uint32_t)i);
    }
  if (b->n_vars == MAX_VARS) return NULL;
  b->var[b->n_vars] = (eg_class){c};
  b->var_as[b->n_vars] = as;
  b->used[b->n_vars] = b->side;
  return rule_var(&b->s->arena, (uint32_t)b->n_vars++);
}

static const rule_term *build_class(builder *b, uint32_t c, eg_node as) {
  if (!b->k->in[c]) return literal_class(b->s, c);
  if (b->k->cut[c]) return make_var(b, c, as);
  const eg_node e = {b->k->best[c]};
  if (e.i == EG_NONE || !need(b, as, e)) return NULL;
  if (b->memo[c]) return b->memo[c];
  return b->memo[c] = b->s->rec[e.i].leaf ? make_var(b, c, e) : build_node(b, e);
}

static double root_cost(state *s, cone *k, eg_node root) {
  const uint32_t c = eg_class_of(s->g, root).i;
  return k->cut[c] ? 1 : node_cost(s, k, root);
}

static const rule_term *build_root(builder *b, eg_node root) {
  const uint32_t c = eg_class_of(b->s->g, root).i;
  memset(b->memo, 0, eg_count_added(b->s->g) * sizeof *b->memo);
  if (b->k->cut[c] || b->s->rec[root.i].leaf) return make_var(b, c, root);
  return build_node(b, root);
}

/* ---- naming ---- */

static void var_name(state *s, const rule_variable *v, const rec *r, const size_t *count, char *out,
                     size_t n) {
  static const char *const floats[] = {"x", "y", "z"};
  (void)s;
  if (v->kind == 'f' && r->leaf && !r->konst) {
    const char *base = v->n_dims >= 2 ? "w" : "b";
    const size_t k = count[v->n_dims >= 2 ? 1 : 2];
    if (k) snprintf(out, n, "%s%zu", base, k + 1);
    else snprintf(out, n, "%s", base);
  } else if (v->kind == 'f') {
    if (count[0] < 3) snprintf(out, n, "%s", floats[count[0]]);
    else snprintf(out, n, "x%zu", count[0] - 1);
  } else {
    const size_t k = count[v->kind == 'b' ? 4 : 3];
    const char base = v->kind == 'b' ? 'm' : v->kind == 'c' ? 'c' : 'i';
    if (k) snprintf(out, n, "%c%zu", base, k + 1);
    else snprintf(out, n, "%c", base);
  }
}

static const char *bare_op(const char *op, char *buf, size_t n) {
  const char *p = strstr(op, "::");
  snprintf(buf, n, "%s", p ? p + 2 : op);
  char *dot = strchr(buf, '.');
  if (dot) *dot = 0;
  return buf;
}

/* The operator that a person would name the side by: the outermost that is not plain layout, else
 * the outermost. */
static const char *head_op(const rule_term *t) {
  const rule_term *first = NULL;
  while (t->kind == RULE_OP) {
    if (!first) first = t;
    if (!fr_layout_op(t->u.s)) return t->u.s;
    if (!t->n) break;
    t = t->child[0];
  }
  return first ? first->u.s : "id";
}

static const char *rule_title(state *s, const rule_term *l, const rule_term *r) {
  char a[64], b[64];
  bare_op(head_op(l), a, sizeof a);
  bare_op(head_op(r), b, sizeof b);
  if (strcmp(a, b) == 0) {
    const rule_term *outer = r->kind == RULE_OP && fr_layout_op(r->u.s) ? r : l;
    if (outer->kind == RULE_OP) bare_op(outer->u.s, b, sizeof b);
  }
  return iso_arena_printf(&s->arena, strcmp(a, b) == 0 ? "%s" : "%s-%s", a, b);
}

/* ---- one frontier ---- */

static bool make_rule(state *s, builder *b, const rule_term *l, const rule_term *r, rule *out,
                      rule_tensor **example) {
  rule_variable *v = iso_arena_alloc(&s->arena, (b->n_vars + 1) * sizeof *v);
  if (!v) return false;
  size_t count[5] = {0};
  for (size_t i = 0; i < b->n_vars; i++) {
    const eg_node rep = st_rep(s, b->var[i]);
    if (rep.i == EG_NONE || !s->rec[rep.i].tensor) return false;
    const rec *q = &s->rec[rep.i];
    const rule_dtype dtype = st_dtype(s, rep);
    const rule_term **dim = iso_arena_alloc(&s->arena, (q->shape.rank + 1) * sizeof *dim);
    if (!dim) return false;
    for (uint32_t k = 0; k < q->shape.rank; k++) {
      if (q->shape.dim[k] < 1) return false;
      if (!(dim[k] = rule_int(&s->arena, q->shape.dim[k]))) return false;
    }
    v[i] = (rule_variable){.n_dims = q->shape.rank, .dim = dim};
    v[i].kind = rule_dtype_is_float(dtype)     ? 'f'
                : rule_dtype_is_complex(dtype) ? 'c'
                : dtype == RULE_BOOL           ? 'b'
                                               : 'i';
    char name[32];
    var_name(s, &v[i], q, count, name, sizeof name);
    count[v[i].kind == 'f'   ? (q->leaf && !q->konst ? (v[i].n_dims >= 2 ? 1 : 2) : 0)
          : v[i].kind == 'b' ? 4
                             : 3]++;
    if (!(v[i].name = iso_arena_strdup(&s->arena, name))) return false;
    example[i] =
        st_spare(s, st_home(s, rep))
            ? NULL
            : st_val(s, rep, 0); /* a large parameter is an example of nothing but its shape */
  }
  *out = (rule){
      .name = rule_title(s, l, r), .n_vars = (uint32_t)b->n_vars, .var = v, .lhs = l, .rhs = r};
  return out->name != NULL;
}

/* What the oracle says of a candidate: in `general` the rule that the verdict is about, as general
 * as it holds. */
static iso_code consult(state *s, const rule *r, rule_tensor **example, rule *general, bool *exact,
                        rule_verdict *v, iso_error *err) {
  const rule_oracle *o = s->oracle;
  *general = *r;
  *exact = true;
  if (!o->generalise) return o->decide(o->ctx, r, example, v, err);
  iso_code c = o->generalise(o->ctx, r, example, &s->arena, general, v, err);
  if (c || v->status != RULE_PROVED || names_cover(general, r, &s->arena, exact)) return c;
  /* It has to explain the place that it comes from. */
  *general = *r;
  return o->decide(o->ctx, r, example, v, err);
}

static void trace_candidate(state *s, const rule *r, const rule_verdict *v, double seconds) {
  char *text = rule_print(r), how[RULE_METHOD_TEXT];
  char *line = text ? iso_arena_printf(&s->arena, "candidate %s %s (%s%s, %.3f s): %s", r->name,
                                       rule_status_name(v->status), rule_verdict_method(v, how),
                                       v->reason, seconds, text)
                    : NULL;
  if (line) s->o->trace(s->o->ctx, line);
  free(text);
}

/* Validate a candidate, once. Returns: in `index` where what was accepted is among the rules,
 * SIZE_MAX where nothing was; in `fresh` whether it had to be validated. */
static iso_code decide(state *s, const rule *r, rule_tensor **example, size_t *index,
                       rule_verdict *v, bool *fresh, iso_error *err) {
  size_t at;
  bool first;
  iso_code c = rule_set_add(s->tried, r, &at, &first, err);
  if (c) return c;
  if (!iso_grow(s->tries, s->cap_tries, at + 1)) return iso_fail(err, ISO_NOMEM, "out of memory");
  *fresh = first || st_without(s, SYNTH_REUSE);
  if (!*fresh) {
    *v = s->tries[at].verdict;
    *index = s->tries[at].rule;
    return ISO_OK;
  }
  const double t0 = synth_clock(), cpu = synth_cpu_clock();
  rule general;
  bool exact;
  *v = (rule_verdict){0};
  *index = SIZE_MAX;
  if ((c = consult(s, r, example, &general, &exact, v, err))) return c;
  s->res->seconds_validate += synth_clock() - t0;
  st_note_cost(s, r->name, cpu);
  st_refuse_masks(s, v);
  if (v->status >= RULE_TESTED) {
    general.reads_literals = v->status == RULE_PROVED && (v->rests_on & RULE_RESTS_ON_LITERALS);
    c = rule_set_add(s->rules, &general, index, &first, err);
    if (!c && !iso_grow(s->info, s->cap_info, *index + 1))
      c = iso_fail(err, ISO_NOMEM, "out of memory");
    if (c) return c;
    if (first) s->info[*index] = (rule_info){0};
    s->info[*index].verdict = *v;
    s->info[*index].read |= !exact;
    rule_set_evidence(s->rules, *index, v->status, v->scope);
    s->res->n_synthesised += first;
  } else s->res->n_refuted++;
  s->tries[at] = (try){*v, *index};
  if (s->o->trace)
    trace_candidate(s, v->status >= RULE_TESTED ? rule_set_at(s->rules, *index) : r, v,
                    synth_cpu_clock() - cpu);
  return ISO_OK;
}

static void set_cut(cone *k, const uint8_t *base, const opening *o) {
  for (size_t i = 0; i < k->n; i++) k->cut[k->cls[i]] = base[k->cls[i]];
  for (size_t i = 0; i < k->n; i++) k->opened[k->cls[i]] = 0;
  for (size_t i = 0; i < o->n; i++) {
    k->cut[o->cls[i]] = 0;
    k->opened[o->cls[i]] = o->how[i];
  }
}

static bool same_opening(const opening *a, const opening *b) {
  if (a->n != b->n) return false;
  for (size_t i = 0; i < a->n; i++) {
    bool found = false;
    for (size_t j = 0; j < b->n; j++) found |= a->cls[i] == b->cls[j] && a->how[i] == b->how[j];
    if (!found) return false;
  }
  return true;
}

typedef struct search {
  opening *queue;
  size_t n, done; /* queue[0 .. done) were expanded */
} search;

/* Both patterns under the current cut. Returns: false where one cannot be built. */
static bool build_both(builder *b, eg_node u, eg_node t, const rule_term **l, const rule_term **r) {
  b->n_vars = 0;
  b->n_prem = 0;
  b->depth = 0;
  b->distinct = 0;
  b->side = 1;
  *l = build_root(b, u);
  b->side = 2;
  *r = *l ? build_root(b, t) : NULL;
  return *r != NULL;
}

static void push(state *s, cone *k, builder *b, search *q, const uint8_t *base, const opening *from,
                 const uint32_t *extra, size_t n_extra, uint8_t how, double favour, eg_node u,
                 eg_node t) {
  if (q->n == QUEUE_MAX || from->n + n_extra > sizeof from->cls / sizeof *from->cls) return;
  opening o = *from;
  for (size_t i = 0; i < n_extra; i++) {
    o.how[o.n] = how;
    o.cls[o.n++] = extra[i];
  }
  for (size_t i = 0; i < q->n; i++)
    if (same_opening(&q->queue[i], &o)) return;
  set_cut(k, base, &o);
  costs(s, k);
  o.size = root_cost(s, k, u) + root_cost(s, k, t);
  if (o.size > (s->large_patterns ? SHARED_MAX : 2) * (double)s->o->max_pattern) return;
  /* A variable that depends on another one is false freedom: what leaves fewer variables goes
   * first. */
  const rule_term *l, *r;
  if (!build_both(b, u, t, &l, &r) || b->distinct > 2 * s->o->max_pattern) return;
  o.size += VARIABLE_COST * (double)b->n_vars;
  if (favour >= 0 && o.size > favour) o.size = favour;
  q->queue[q->n++] = o;
}

static void expand(state *s, cone *k, const uint8_t *base, search *q, opening o, eg_node u,
                   eg_node t, builder *b, bool refuted);

/* Queue the finer frontiers of every one in the queue, and theirs. */
static void enumerate(state *s, cone *k, const uint8_t *base, search *q, eg_node u, eg_node t,
                      builder *b) {
  for (size_t i = 0; i < q->n; i++) {
    const rule_term *l, *r;
    const opening o = q->queue[i];
    set_cut(k, base, &o);
    costs(s, k);
    if (build_both(b, u, t, &l, &r)) expand(s, k, base, q, o, u, t, b, true);
  }
}

/* Each side reads a parameter or an input that the other does not: so does every finer frontier. */
static bool reads_apart(state *s, const cone *k, const builder *b) {
  unsigned only = 0;
  for (size_t i = 0; i < b->n_vars; i++) {
    const rec *r = &s->rec[b->var_as[i].i];
    if (!k->cut[b->var[i].i] && r->leaf && r->atom && !r->konst && b->used[i] != 3)
      only |= b->used[i];
  }
  return only == 3;
}

static iso_code try_opening(state *s, cone *k, const uint8_t *base, search *q, opening o, eg_node u,
                            eg_node t, builder *b, bool *fresh, bool *done, iso_error *err) {
  *fresh = false;
  set_cut(k, base, &o);
  costs(s, k);
  const rule_term *l, *r;
  if (!build_both(b, u, t, &l, &r)) return ISO_OK;
  if (l->kind == RULE_VAR && r->kind == RULE_VAR) return ISO_OK;
  rule cand;
  rule_tensor *example[MAX_VARS];
  if (!make_rule(s, b, l, r, &cand, example)) return ISO_OK;
  size_t index;
  rule_verdict v;
  iso_code c = decide(s, &cand, example, &index, &v, fresh, err);
  if (c) return c;
  if (index != SIZE_MAX && st_usable(s, index)) {
    *done = true;
    return st_record_application(s, index, u, t, b->prem, b->n_prem, &cand, b->var_as, err);
  }
  if (!st_without(s, SYNTH_LAZY) && !reads_apart(s, k, b))
    expand(s, k, base, q, o, u, t, b, v.status == RULE_REFUTED);
  return ISO_OK;
}

/* Queue what is finer than the frontier `o`, whose patterns are in `b`. */
static void expand(state *s, cone *k, const uint8_t *base, search *q, opening o, eg_node u,
                   eg_node t, builder *b, bool refuted) {
  /* Open what one side only depends on, all at once and one by one; then any class that both use.
   */
  uint32_t one[MAX_VARS], both[MAX_VARS];
  size_t n_one = 0, n_both = 0;
  for (size_t i = 0; i < b->n_vars; i++) {
    const uint32_t cl = b->var[i].i;
    if (!k->cut[cl]) continue; /* an atom: nothing below */
    if (b->used[i] == 3) both[n_both++] = cl;
    else one[n_one++] = cl;
  }
  builder work = {.s = s, .k = k, .memo = b->memo};
  /* Constants that only hold as they are: all of them at once, down to terms without leaves. */
  uint32_t ground[96];
  size_t n_ground = 0;
  bool used_konst = false;
  for (size_t i = 0; i < b->n_vars; i++)
    used_konst |= k->cut[b->var[i].i] && s->rec[st_rep(s, b->var[i]).i].konst;
  for (size_t i = 0; i < k->n && used_konst; i++) {
    const uint32_t cl = k->cls[i];
    if (k->cut[cl] && s->rec[st_rep(s, (eg_class){cl}).i].konst && n_ground < 96)
      ground[n_ground++] = cl;
  }
  for (int near = 1; near >= 0 && refuted;
       near--) { /* what is the same both times is queued once */
    opening dep = {.n = 0}, base_of = {.n = 0}, aside = {.n = 0}, straight = o;
    if (!fr_dependencies(s, k, b, near, &dep, &base_of, &aside)) break;
    for (size_t i = 0; i < aside.n && straight.n < sizeof o.cls / sizeof *o.cls; i++)
      straight.how[straight.n] = SHUT, straight.cls[straight.n++] = aside.cls[i];
    if (aside.n) push(s, k, &work, q, base, &straight, dep.cls, dep.n, OPEN, o.size, u, t);
    if (base_of.n) push(s, k, &work, q, base, &o, base_of.cls, base_of.n, SHUT, o.size, u, t);
    if (dep.n) push(s, k, &work, q, base, &o, dep.cls, dep.n, OPEN, o.size, u, t);
  }
  if (n_ground) push(s, k, &work, q, base, &o, ground, n_ground, OPEN, o.size, u, t);
  /* Leaves of constants as their numbers, too. */
  const size_t n_cut = n_ground;
  for (size_t i = 0; i < b->n_vars; i++)
    if (!k->cut[b->var[i].i] && fr_written_out(s, b->var[i]) && n_ground < 96)
      ground[n_ground++] = b->var[i].i;
  if (n_ground > n_cut) push(s, k, &work, q, base, &o, ground, n_ground, OPEN, -1, u, t);
  /* One side reads a constant and the other one has its numbers: both read it. */
  uint32_t written[96];
  size_t n_written = 0;
  for (size_t i = 0; i < k->n && n_one && refuted; i++) {
    const uint32_t cl = k->cls[i];
    if (!k->cut[cl] && !k->opened[cl] && k->best[cl] != EG_NONE &&
        written_out(s, (eg_node){k->best[cl]}, NULL) && n_written < 96)
      written[n_written++] = cl;
  }
  if (n_written) push(s, k, &work, q, base, &o, written, n_written, READ, o.size, u, t);
  if (n_one > 1) push(s, k, &work, q, base, &o, one, n_one, OPEN, -1, u, t);
  for (size_t i = 0; i < n_one; i++) push(s, k, &work, q, base, &o, &one[i], 1, OPEN, -1, u, t);
  for (size_t i = 0; i < n_both; i++) push(s, k, &work, q, base, &o, &both[i], 1, OPEN, -1, u, t);
  free(work.prem);
}

static bool holds_leaf(state *s, uint32_t c) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, (eg_class){c}, &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].leaf) return true;
  return false;
}

/* Without the restriction to what both sides depend on: frontiers are cut at anything, validation
 * finds out that one is not shared, and it moves down a step on either side. What this ends with is
 * the shared frontier that the search begins with. */
static iso_code try_unshared(state *s, cone *k, const uint8_t *base, eg_node u, eg_node t,
                             builder *b, bool *done, iso_error *err) {
  uint8_t *wide = calloc(eg_count_added(s->g), 1);
  if (!wide) return iso_fail(err, ISO_NOMEM, "out of memory");
  const uint32_t cu = eg_class_of(s->g, u).i, ct = eg_class_of(s->g, t).i;
  for (size_t i = 0; i < k->n; i++) {
    const uint32_t c = k->cls[i];
    wide[c] = base[c] || (c != cu && c != ct && fr_shared(s, c) && !holds_leaf(s, c));
  }
  search none = {.n = QUEUE_MAX}; /* full: nothing is queued */
  const opening whole = {.n = 0};
  iso_code c = ISO_OK;
  for (bool moved = true; moved && !c && !*done && !st_stopped(s);) {
    b->n_vars = 0;
    bool fresh;
    c = try_opening(s, k, wide, &none, whole, u, t, b, &fresh, done, err);
    moved = false;
    for (size_t i = 0; i < b->n_vars; i++)
      if (k->cut[b->var[i].i] && !base[b->var[i].i]) moved = true, wide[b->var[i].i] = 0;
  }
  free(wide);
  return c;
}

/* From the coarsest frontier on, open what the values say is tied, all of it at once: one way down,
 * where best first has tried many. */
static iso_code try_tied(state *s, cone *k, const uint8_t *base, eg_node u, eg_node t, builder *b,
                         bool *done, iso_error *err) {
  enum { STEPS = 12 };
  search none = {.n = QUEUE_MAX}; /* full: nothing is queued */
  opening o = {.n = 0};
  iso_code c = ISO_OK;
  for (int step = 0; step < STEPS && !c && !*done && !st_stopped(s); step++) {
    const rule_term *l, *r;
    bool tied[MAX_VARS], fresh;
    const size_t n = o.n;
    set_cut(k, base, &o);
    costs(s, k);
    if (!build_both(b, u, t, &l, &r)) break;
    if (!(c = fr_tied(s, b, l, r, tied, err)) && !fr_tied_open(s, k, b, tied, &o))
      c = iso_fail(err, ISO_NOMEM, "out of memory");
    if (c || o.n == n) break;
    c = try_opening(s, k, base, &none, o, u, t, b, &fresh, done, err);
  }
  return c;
}

/* Whether both cones hold what earlier candidates left open: such a candidate mostly fails the same
 * way, and gets fewer tries where many were in vain. */
static bool holds_open(state *s, const cone *k, uint32_t cu, uint32_t ct) {
  uint8_t open = 0;
  for (size_t i = 0; i < k->n && open != 3; i++) {
    const uint32_t c = k->cls[i];
    const eg_node *m;
    const size_t n = c == cu || c == ct ? 0 : eg_class_nodes(s->g, (eg_class){c}, &m);
    for (size_t j = 0; j < n; j++)
      if (s->rec[m[j].i].open) open |= k->in[c];
  }
  return open == 3;
}

iso_code st_synthesise(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  *done = false;
  const size_t n = eg_count_added(s->g);
  cone k = {.cls = calloc(2 * CONE_MAX, sizeof *k.cls),
            .in = calloc(n, 1),
            .cost = calloc(n, sizeof *k.cost),
            .best = calloc(n, sizeof *k.best),
            .cut = calloc(n, 1),
            .opened = calloc(n, 1)};
  uint8_t *base = calloc(n, 1);
  builder b = {.s = s, .k = &k, .memo = calloc(n, sizeof *b.memo)};
  search q = {.queue = calloc(QUEUE_MAX, sizeof *q.queue)};
  iso_code c = ISO_OK;
  if (!k.cls || !k.in || !k.cost || !k.best || !k.cut || !k.opened || !base || !b.memo ||
      !q.queue) {
    c = iso_fail(err, ISO_NOMEM, "out of memory");
    goto done;
  }
  if ((c = explore(s, &k, u, 1, err)) || (c = explore(s, &k, t, 2, err))) goto done;
  const uint32_t cu = eg_class_of(s->g, u).i, ct = eg_class_of(s->g, t).i;
  for (size_t i = 0; i < k.n; i++) {
    const uint32_t cl = k.cls[i];
    /* The two roots are cut only where the other side contains them: an identity x <=> f(x). */
    if (k.in[cl] == 3 && fr_shared(s, cl) && !(cl == cu && cl == ct)) base[cl] = 1;
  }
  const bool many = s->n_wasted < MOST_WASTED || !holds_open(s, &k, cu, ct);
  const size_t max_tries = many ? s->o->max_tries : s->o->max_tries / 4;
  const size_t patience = max_tries / 8; /* mostly the first few are enough */
  bool directed = st_without(s, SYNTH_LAZY);
  size_t tries = 0;
  opening none = {.n = 0};
  push(s, &k, &b, &q, base, &none, NULL, 0, OPEN, -1, u, t);
  if (st_without(s, SYNTH_REACHABLE)) c = try_unshared(s, &k, base, u, t, &b, done, err);
  if (st_without(s, SYNTH_LAZY)) enumerate(s, &k, base, &q, u, t, &b);
  /* Rules that were decided before cost nothing. */
  while (tries < max_tries && !*done && !c && !st_stopped(s)) {
    size_t best = q.n;
    for (size_t i = q.done; i < q.n; i++)
      if (best == q.n || q.queue[i].size < q.queue[best].size - 1e-9) best = i;
    if ((tries == patience || best == q.n) && tries && !directed) {
      directed = true;
      if ((c = try_tied(s, &k, base, u, t, &b, done, err)) || *done) break;
    }
    if (best == q.n) break;
    const opening o = q.queue[best];
    q.queue[best] = q.queue[q.done];
    q.queue[q.done++] = o;
    bool fresh;
    c = try_opening(s, &k, base, &q, o, u, t, &b, &fresh, done, err);
    tries += fresh;
  }
  if (!*done) s->n_wasted += tries, s->rec[u.i].open = s->rec[t.i].open = true;
done:
  free(k.cls);
  free(k.in);
  free(k.cost);
  free(k.best);
  free(k.cut);
  free(k.opened);
  free(base);
  free(b.memo);
  free(b.prem);
  free(q.queue);
  return c;
}
