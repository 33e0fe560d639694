/* The comparison of graphs that are not run: leaves related by name, constants by value, and rules
 * that are proved applied wherever they stand, until the outputs meet or nothing moves. */
#include "synth/unrun/unrun.h"
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/loop.h"
#include "synth/refute/refute.h"
#include "synth/result/result.h"
#include "synth/search/search.h"

#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static iso_code fill(state *s, const bool *const live[2], iso_error *err) {
  const double t = synth_clock();
  iso_code c = st_type_leaves(s, live, err);
  if (!c) c = st_find_readings(s, live, err);
  if (!c) c = st_find_masks(s, live, err);
  for (int side = 0; side < 2 && !c; side++) c = st_add_graph(s, side, live[side], err);
  if (!c) c = eg_rebuild(s->g, err);
  if (!c) c = st_draw_leaves(s, err);
  if (!c) st_type_operators(s);
  if (!c) c = st_relate_constants(s, err);
  s->res->seconds_relate = synth_clock() - t;
  return c;
}

/* Rules at one e-node. */
static iso_code rewrite_at(state *s, eg_node e, bool smaller, st_term_types *types, bool *joined,
                           iso_error *err) {
  const size_t before = s->n_rec;
  const iso_code c = st_rewrite(s, e, smaller, joined, err);
  return c ? c : st_type_terms(types, before, err);
}

/* Terms that rules added stand in neither graph: rules may only simplify them, so that this ends. A
 * reshape of another rule's reshape is such a place. */
static iso_code simplify(state *s, st_term_types *types, size_t *done, bool *joined,
                         iso_error *err) {
  iso_code c = ISO_OK;
  for (; *done < s->n_rec && !c; ++*done) {
    const rec *r = &s->rec[*done];
    const eg_node e = {(uint32_t)*done};
    if (r->node[LEFT] >= 0 || r->node[RIGHT] >= 0 || r->konst || r->leaf || !r->tensor ||
        !r->valued)
      continue;
    if (st_stopped(s)) return ISO_OK;
    c = rewrite_at(s, e, true, types, joined, err);
  }
  return c;
}

/* The operators of both graphs that are no constants, in the graphs' order, and of each as many as
 * stand from `first` to before `end` of `n_parts` equal parts. */
typedef struct stretch {
  const eg_node *place[2];
  size_t n[2];
  size_t first, end, n_parts;
} stretch;

static iso_code find_places(state *s, stretch *w, iso_error *err) {
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    eg_node *at = iso_arena_alloc(&s->arena, (g->n_nodes + 1) * sizeof *at);
    if (!at) return nomem(err);
    w->place[side] = at;
    for (size_t i = 0; i < g->n_nodes; i++) {
      const eg_node e = s->map[side][i];
      if (g->node[i].kind == SYNTH_OP && e.i != EG_NONE && !s->rec[e.i].konst) at[w->n[side]++] = e;
    }
  }
  return ISO_OK;
}

/* Every captured operator of a stretch is a place for rules, in the graphs' order. Terms that a
 * round adds may let other rules match, so there are several rounds. */
static iso_code rewrite_stretch(state *s, stretch w, st_term_types *types, size_t *simplified,
                                iso_error *err) {
  enum { ROUNDS = 6 };
  bool joined = true;
  for (int round = 0; round < ROUNDS && joined; round++) {
    joined = false;
    for (int side = 0; side < 2; side++) {
      const size_t n = w.n[side];
      for (size_t i = w.first * n / w.n_parts; i < w.end * n / w.n_parts; i++) {
        if (st_stopped(s)) return ISO_OK;
        const iso_code c = rewrite_at(s, w.place[side][i], false, types, &joined, err);
        if (c) return c;
      }
    }
    const iso_code c = simplify(s, types, simplified, &joined, err);
    if (c) return c;
  }
  return ISO_OK;
}

/* Stretch by stretch, each with the one before it: a layer's rules may need merges below them, so
 * that rounds over the whole graph would be needed once per layer. The whole graph comes last. */
static iso_code rewrite(state *s, const pairing *p, size_t n_pairs, st_term_types *types,
                        iso_error *err) {
  enum { PLACES = 160 };
  stretch w = {.first = 0};
  size_t simplified = 0;
  iso_code c = find_places(s, &w, err);
  const size_t n = (w.n[LEFT] > w.n[RIGHT] ? w.n[LEFT] : w.n[RIGHT]) / PLACES + 1;
  w.n_parts = n;
  for (size_t k = 0; k < n && !c && !s->stopped; k++) {
    w.first = k ? k - 1 : 0;
    w.end = k + 1;
    c = rewrite_stretch(s, w, types, &simplified, err);
  }
  if (c || s->stopped || n == 1 || st_outputs_met(s, p, n_pairs)) return c;
  w.first = 0;
  return rewrite_stretch(s, w, types, &simplified, err);
}

/* A rule of the chain may make no claim about NaN and infinity; where an operator may see one, only
 * a run could tell. */
static iso_code weigh(state *s, iso_error *err) {
  st_poles p = {0};
  iso_code c = st_poles_of(s, &p, err);
  if (!c && (p.watched || p.apart || p.told)) {
    s->res->verdict = SYNTH_UNDECIDED;
    s->res->reason = "the outputs are joined, but an operator may see what is no number, which "
                     "only a run can tell";
  }
  st_poles_free(&p);
  return c;
}

static iso_code judge(state *s, const pairing *p, const bool *const live[2], iso_error *err) {
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  synth_result *r = s->res;
  synth_pair *pair = iso_arena_alloc(&r->arena, (L->n_outputs + 1) * sizeof *pair);
  iso_code c = pair ? ISO_OK : nomem(err);
  bool all = true;
  r->evidence = RULE_PROVED;
  for (size_t i = 0; i < L->n_outputs && !c; i++) {
    const eg_node l = s->map[LEFT][L->output[p[i].left].node];
    const bool met = eg_equal(s->g, l, p[i].aux);
    if (met) c = st_explain(s, l, p[i].aux, &r->evidence, err);
    pair[i] = (synth_pair){L->output[i].name, R->output[p[i].right].name, p[i].relation, met};
    all &= met;
  }
  if (c) return c;
  r->pair = pair;
  r->n_pairs = L->n_outputs;
  r->verdict = all ? SYNTH_EQUIVALENT : SYNTH_UNDECIDED;
  if (s->stopped) r->verdict = SYNTH_UNDECIDED, r->reason = s->stopped;
  else if (all && s->constants.doubtful)
    r->verdict = SYNTH_UNDECIDED, r->reason = s->constants.doubtful;
  else if (all) return weigh(s, err);
  else return st_name_gaps(s, live, err);
  return ISO_OK;
}

static iso_code cover(state *s, const bool *const live[2], iso_error *err) {
  synth_coverage *v = &s->res->coverage;
  for (int side = 0; side < 2; side++) {
    const size_t n = s->graph[side]->n_nodes;
    uint32_t *dead = iso_arena_alloc(&s->res->arena, (n + 1) * sizeof *dead);
    if (!dead) return nomem(err);
    for (uint32_t i = 0; i < n; i++)
      if (live[side][i]) v->n_reached[side]++;
      else dead[v->n_unreached[side]++] = i;
    v->unreached[side] = dead;
  }
  return ISO_OK;
}

static iso_code decide(state *s, pairing *p, const bool *const live[2], iso_error *err) {
  const double t = synth_clock();
  s->right_of = iso_arena_alloc(&s->arena, (s->graph[LEFT]->n_outputs + 1) * sizeof *s->right_of);
  iso_code c = s->right_of ? st_output_terms(s, p, err) : nomem(err);
  for (size_t i = 0; i < s->graph[LEFT]->n_outputs && !c; i++) s->right_of[p[i].left] = p[i].right;
  st_term_types *types = NULL;
  if (!c) c = st_term_types_new(s, &types, err);
  if (!c) c = st_type_terms(types, 0, err);
  if (!c) c = rewrite(s, p, s->graph[LEFT]->n_outputs, types, err);
  st_term_types_free(types);
  if (!c) c = st_check_classes(s, err);
  if (!c) c = judge(s, p, live, err);
  if (!c) c = st_write_chain(s, p, err);
  if (!c) s->res->seconds_synthesise = synth_clock() - t - s->res->seconds_validate;
  return c ? c : cover(s, live, err);
}

static iso_code compare(state *s, synth_graph own[2], bool *live[2], synth_result **out,
                        iso_error *err) {
  pairing *p = NULL;
  const bool *const *const seen = (const bool *const *)live;
  iso_code c = st_prepare(s, &p, err);
  if (!c) c = st_look_over(s, own, live, err);
  if (!c) c = fill(s, seen, err);
  if (!c) c = decide(s, p, seen, err);
  if (!c) c = st_assume_all(s, err);
  if (!c) c = st_publish(s, live, err);
  if (c) synth_result_free(s->res);
  else {
    s->res->terms = s->arena;
    s->arena = (iso_arena){0};
    *out = s->res;
  }
  free(p);
  return c;
}

/* The comparison that `from` asks for, with masks as they are written, or read as minus
 * infinity. */
static iso_code once(const state *from, bool read_masks, bool *any_read, synth_result **out,
                     iso_error *err) {
  synth_graph own[2], paired[2];
  bool *live[2] = {NULL, NULL};
  state st = *from;
  st.masks.try_others = read_masks;
  st.leaves.by_looks =
      true; /* what masks make of constants has to hold for others like them, too */
  iso_code c = st_pair_outputs(from->graph[LEFT], from->graph[RIGHT], &st.arena, paired, err);
  if (c) {
    iso_arena_fini(&st.arena);
    return c;
  }
  for (int side = 0; side < 2; side++) st.graph[side] = &paired[side];
  c = compare(&st, own, live, out, err);
  *any_read = st.masks.read[ST_MASK_OTHER];
  st_state_free(&st);
  free(live[0]);
  free(live[1]);
  return c;
}

/* The rules that are known, and the identities of both graphs. Owns: rule_set_free. */
static iso_code all_rules(const synth_graph *const g[2], const rule_set *known, rule_set **out,
                          iso_error *err) {
  iso_arena a;
  iso_arena_init(&a);
  iso_code c = rule_set_new(out, err);
  for (size_t i = 0; known && i < rule_set_count(known) && !c; i++)
    c = rule_set_add(*out, rule_set_at(known, i), NULL, NULL, err);
  for (int side = 0; side < 2 && !c; side++) c = st_add_identities(g[side], *out, &a, err);
  iso_arena_fini(&a);
  if (c) rule_set_free(*out);
  return c;
}

/* Masks as they are written first, then as minus infinity. */
static iso_code either(const state *from, synth_result **out, iso_error *err) {
  synth_result *again = NULL;
  bool read = false;
  iso_code c = once(from, false, &read, out, err);
  if (c || (*out)->verdict == SYNTH_EQUIVALENT) return c;
  c = once(from, true, &read, &again, err);
  if (!c && (read || again->verdict == SYNTH_EQUIVALENT)) {
    synth_result_free(*out);
    *out = again;
  } else synth_result_free(again);
  return c;
}

/* parameters: those of synth_compare. */
iso_code synth_compare_unrun(const synth_graph *left, const synth_graph *right,
                             const rule_set *known, const rule_oracle *oracle,
                             rule_schemas *schemas, const synth_options *o, synth_result **out,
                             iso_error *err) {
  const synth_graph *const g[2] = {left, right};
  synth_options so = *o;
  so.n_redrawn = 0;
  *out = NULL;
  rule_set *rules;
  iso_code c = all_rules(g, known, &rules, err);
  if (c) return c;
  const state from = {.graph = {left, right},
                      .oracle = oracle,
                      .schemas = schemas,
                      .o = &so,
                      .known = rules,
                      .unrun = true,
                      .t0 = synth_clock()};
  c = either(&from, out, err);
  rule_set_free(rules);
  return c;
}
