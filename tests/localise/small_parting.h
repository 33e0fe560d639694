/* Where two small graphs part, as localisation has it: values of one run, and a joint e-graph in
 * which only nodes that a test unites are equal. */
#ifndef TESTS_LOCALISE_SMALL_PARTING_H
#define TESTS_LOCALISE_SMALL_PARTING_H

#include "localise/alignment.h"
#include "tests/synth/small_state.h"

static parting p;
static bool moved_on[MAX_NODES + 1];
static double slack[2];

static inline void begin(void) {
  begin_state();
  memset(moved_on, 0, sizeof moved_on);
  memset(slack, 0, sizeof slack);
  p = (parting){.s = &st, .changed = moved_on, .slack = slack};
  for (int side = 0; side < 2; side++) {
    p.run[side].value = calloc(MAX_NODES, sizeof *p.run[side].value);
    p.seen[side] = calloc(MAX_NODES, 1);
    p.sound[side] = calloc(MAX_NODES, 1);
    ck_assert(p.run[side].value && p.seen[side] && p.sound[side]);
    st.ranks.part[side] = calloc(MAX_NODES, sizeof *st.ranks.part[side]);
    ck_assert_ptr_nonnull(st.ranks.part[side]);
  }
}

static inline void end(void) {
  for (int side = 0; side < 2; side++) {
    free(p.run[side].value);
    free(p.by_size[side]);
    free(p.seen[side]);
    free(p.sound[side]);
  }
  end_state();
}

/* The node's e-node, equal to no other one, and its value in the run. */
static inline void place(int side, uint32_t i) {
  add_atom(side, i);
  p.run[side].value[i] = (st_value_list){.v = &graph_of(side)->value[i][0], .n = 1};
}
static inline void place_all(void) {
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < graph_of(side)->g.n_nodes; i++) place(side, i);
}
/* The node after the last one is an operator without a call, so that a read beyond the end
 * crashes. */
static inline void no_node_behind(void) {
  for (int side = 0; side < 2; side++)
    if (graph_of(side)->g.n_nodes < MAX_NODES)
      graph_of(side)->node[graph_of(side)->g.n_nodes] = (synth_node){.kind = SYNTH_OP};
}
static inline void unite(uint32_t l, uint32_t r) {
  ck_assert(eg_merge(st.g, st.map[LEFT][l], st.map[RIGHT][r], (eg_why){1, 0}, &err) == ISO_OK);
  ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
}

#endif
