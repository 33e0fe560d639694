/* Input sets that were drawn by what inputs look like, of which nothing is said: masks that happen
 * to be other than they were captured. What is proved is proved at the captured ones; both graphs
 * are then run on the others. */
#include <stdlib.h>

#include "synth/leaves/leaves.h"
#include "synth/loop.h"
#include "synth/refute/refute.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

bool st_has_looks(const synth_graph *left, const synth_graph *right) {
  const size_t n = left->n_sets < right->n_sets ? left->n_sets : right->n_sets;
  return left->n_said && left->n_said < n;
}

bool st_keep_sure(synth_graph graph[2]) {
  bool fewer = graph[LEFT].n_sure > graph[LEFT].n_said;
  for (int side = 0; side < 2; side++) fewer &= graph[side].n_sure < graph[side].n_sets;
  for (int side = 0; side < 2 && fewer; side++) graph[side].n_sets = graph[side].n_sure;
  return fewer;
}

/* The captured sets, and set `set` behind them, on which a difference may be none. Input values lie
 * in `arena`. */
static iso_code pick(const synth_graph *g, size_t set, iso_arena *arena, synth_graph *out,
                     iso_error *err) {
  const size_t n = g->n_said;
  synth_node *node = iso_arena_alloc(arena, (g->n_nodes + 1) * sizeof *node);
  if (!node) return nomem(err);
  for (size_t i = 0; i < g->n_nodes; i++) {
    node[i] = g->node[i];
    if (node[i].kind != SYNTH_INPUT || !node[i].value) continue;
    rule_tensor **value = iso_arena_alloc(arena, (n + 1) * sizeof(rule_tensor *));
    if (!value) return nomem(err);
    for (size_t k = 0; k <= n; k++) value[k] = node[i].value[k < n ? k : set];
    node[i].value = value;
  }
  *out = *g;
  out->node = node;
  out->n_sets = n + 1;
  out->n_sure = n;
  return ISO_OK;
}

/* parameters: those of synth_compare, an arena, and what is found. */
iso_code st_run_unsure(const synth_graph *left, const synth_graph *right, const rule_oracle *oracle,
                       rule_schemas *schemas, const synth_options *o, iso_arena *arena,
                       synth_graph one[2], bool *differ, bool *stopped, iso_error *err) {
  const size_t n = left->n_sets < right->n_sets ? left->n_sets : right->n_sets;
  iso_code c = ISO_OK;
  *differ = *stopped = false;
  for (size_t set = left->n_sure; set < n && c != ISO_NOMEM && !*differ && !*stopped; set++) {
    c = pick(left, set, arena, &one[LEFT], err);
    if (!c) c = pick(right, set, arena, &one[RIGHT], err);
    if (!c) c = st_run_looks(&one[LEFT], &one[RIGHT], oracle, schemas, o, differ, stopped, err);
  }
  return c == ISO_NOMEM ? c : ISO_OK;
}

/* Whether the outputs differ on a set that was drawn by looks, or, `chance`, where integers are
 * drawn that are kept by chance. Draws that hide more than the captured ones, and those that
 * rounding tells apart, show nothing (st_confirm). */
static iso_code seek(state *s, const pairing *p, bool chance, bool *differ, iso_error *err) {
  const size_t n = s->graph[LEFT]->n_outputs, end = chance ? s->n_draws : s->n_sets;
  bool *apart = calloc(s->n_draws + 1, 1), equal;
  st_difference found = {0};
  iso_code c = apart ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n && !c; i++) c = st_outputs_agree(s, &p[i], apart, &equal, err);
  for (size_t d = chance ? s->n_sets : 0; d < end && !c && !*differ; d++) {
    if (!apart[d] || !(chance || st_by_looks(s, d))) continue;
    c = st_confirm(s, d, &found, err);
    *differ = found.found;
  }
  free(apart);
  return c;
}

/* An input that is drawn though it would be kept. NULL: there is none. */
static const char *freed_by_chance(state *s, bool *const live[2]) {
  const char *name = NULL;
  for (int side = 0; side < 2 && !name; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !name; i++) {
      if (!st_kept_by_chance(s, side, i, live[side])) continue;
      s->leaves.frees_by_chance = false;
      if (st_structured(s, side, i, live[side])) name = s->graph[side]->node[i].name;
      s->leaves.frees_by_chance = true;
    }
  return name;
}

/* parameters: those of synth_compare, and what is found. `freed`: integers that are kept by chance
 * are drawn; gets the name of one, NULL where there is none. */
static iso_code run(const synth_graph *left, const synth_graph *right, const rule_oracle *oracle,
                    rule_schemas *schemas, const synth_options *o, const char **freed, bool *differ,
                    bool *stopped, iso_error *err) {
  synth_graph own[2], paired[2];
  bool *live[2] = {NULL, NULL};
  pairing *p = NULL;
  state st = {.oracle = oracle,
              .schemas = schemas,
              .o = o,
              .leaves.by_looks = !freed,
              .leaves.frees_by_chance = freed,
              .masks.as_written = true,
              .t0 = synth_clock()};
  state *s = &st;
  *differ = *stopped = false;
  iso_code c = st_pair_outputs(left, right, &s->arena, paired, err);
  if (c) {
    iso_arena_fini(&s->arena);
    return c;
  }
  for (int side = 0; side < 2; side++) s->graph[side] = &paired[side];
  c = st_prepare(s, &p, err);
  if (!c) c = st_look_over(s, own, live, err);
  if (!c && freed) *freed = freed_by_chance(s, live);
  const bool idle = freed && !*freed;
  if (!c && !idle) c = st_fill(s, live, err);
  if (!c && !idle) c = st_output_terms(s, p, err);
  if (!c &&
      !(s->right_of = iso_arena_alloc(&s->arena, (left->n_outputs + 1) * sizeof *s->right_of)))
    c = nomem(err);
  for (size_t i = 0; i < s->graph[LEFT]->n_outputs && !c && !idle; i++)
    s->right_of[p[i].left] = p[i].right;
  if (!c && !idle && !(*stopped = st_stopped(s))) c = seek(s, p, freed, differ, err);
  if (s->res) st_drop_witness(s);
  synth_result_free(s->res);
  st_state_free(s);
  free(live[0]);
  free(live[1]);
  free(p);
  return c;
}

/* parameters: those of synth_compare, and what is found. */
iso_code st_run_looks(const synth_graph *left, const synth_graph *right, const rule_oracle *oracle,
                      rule_schemas *schemas, const synth_options *o, bool *differ, bool *stopped,
                      iso_error *err) {
  return run(left, right, oracle, schemas, o, NULL, differ, stopped, err);
}

/* parameters: those of synth_compare, and what is found. */
iso_code st_run_chance(const synth_graph *left, const synth_graph *right, const rule_oracle *oracle,
                       rule_schemas *schemas, const synth_options *o, const char **freed,
                       bool *stopped, iso_error *err) {
  enum { DRAWS = 12 };
  synth_options more = *o;
  bool differ = false;
  more.n_redrawn = more.n_redrawn > DRAWS ? more.n_redrawn : DRAWS;
  const iso_code c = run(left, right, oracle, schemas, &more, freed, &differ, stopped, err);
  if (!differ) *freed = NULL;
  return c;
}
