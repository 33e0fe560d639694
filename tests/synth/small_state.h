/* One comparison's state over the small graphs of small_graphs.h, so that parts of a comparison can
 * be asked by themselves. */
#ifndef TESTS_SYNTH_SMALL_STATE_H
#define TESTS_SYNTH_SMALL_STATE_H

#include "synth/joint/joint.h"
#include "tests/synth/small_graphs.h"

static rule_oracle oracle;
static synth_result result;
static state st;
static iso_error err;

/* Nothing is in the joint e-graph yet. */
static inline void begin_state(void) {
  setup();
  oracle = (rule_oracle){.ctx = &w.oracle, .call = small_call, .compare = small_compare};
  result = (synth_result){0};
  st = (state){.oracle = &oracle,
               .schemas = w.schemas,
               .o = &w.options,
               .res = &result,
               .graph = {&w.l.g, &w.r.g},
               .n_draws = 1,
               .n_sets = 1,
               .n_kept = 1};
  ck_assert(st_new_graph(&st, &err) == ISO_OK);
  for (int side = 0; side < 2; side++)
    ck_assert((st.map[side] = calloc(MAX_NODES, sizeof *st.map[side])) != NULL);
}

static inline void end_state(void) {
  for (size_t i = 0; i < st.n_rec; i++) {
    for (size_t k = 0; st.rec[i].val && k < st.n_draws * st.rec[i].n_out; k++)
      rule_tensor_unref(st.rec[i].val[k]);
    for (size_t k = 0; st.rec[i].cval && k < st.n_kept * st.rec[i].n_out; k++)
      rule_tensor_unref(st.rec[i].cval[k]);
    free(st.rec[i].val);
    free(st.rec[i].cval);
  }
  for (int side = 0; side < 2; side++) {
    free(st.map[side]);
    free(st.ranks.part[side]);
  }
  free(st.rec);
  free(st.literals.of);
  free(st.rules.app);
  free(st.rules.prem);
  free(st.rules.compiled.rule);
  free(st.rules.info);
  free(st.rules.tries);
  rule_set_free(st.rules.set);
  rule_set_free(st.rules.tried);
  for (size_t i = 0; i < st.groups.n; i++) free(st.groups.of[i].member);
  free(st.groups.of);
  free(st.groups.place);
  eg_free(st.g);
  iso_arena_fini(&st.arena);
  iso_arena_fini(&result.arena);
  teardown();
}

static inline graph *graph_of(int side) { return side ? &w.r : &w.l; }

/* The e-node of a graph's node: an atom of its own, equal to no other one. */
static inline void add_atom(int side, uint32_t i) {
  const rule_term atom = {.kind = RULE_OP, .u.s = iso_arena_printf(&w.arena, "#%d.%u", side, i)};
  ck_assert(st_add_term(&st, &atom, NULL, &st.map[side][i], &err) == ISO_OK);
  st.rec[st.map[side][i].i].konst = false;
  st.rec[st.map[side][i].i].node[side] = (int32_t)i;
}

#endif
