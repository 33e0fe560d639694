/* Steps of ranks, made by hand: tuples of nodes, what they read, and what is known of them. */
#ifndef TESTS_LINT_PLACEMENT_TUPLES_H
#define TESTS_LINT_PLACEMENT_TUPLES_H

#include "tests/lint/placement/ranks.h"

enum { MOST_TUPLES = 8, MOST_READ = 3 };

static cap_graph graph;
static cap_node node[MOST_TUPLES * PLC_RANKS];
static cap_output output[MOST_TUPLES * PLC_RANKS];
static uint32_t at[MOST_TUPLES][PLC_RANKS], args[MOST_TUPLES][MOST_READ];
static plc_tuple tuple[MOST_TUPLES], *tuples[MOST_TUPLES];
static rule_tensor *value[PLC_DRAWS][MOST_TUPLES * PLC_RANKS], *wholes[MOST_TUPLES][PLC_DRAWS];
static plc_place place[MOST_TUPLES];
static uint64_t ranks_of[MOST_TUPLES * PLC_RANKS];
static iso_arena terms;

static inline void set_shape(uint32_t k, rule_shape s) {
  for (uint32_t r = 0; r < ranks.mesh.n; r++) output[at[k][r]].shape = s;
}

/* A step of an operator on tuples, and further arguments. */
static inline void reads(uint32_t k, const char *op, const uint32_t *of, uint32_t n,
                         const rule_term *const *more, uint32_t n_more) {
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    const rule_term *child[MOST_READ + 4];
    for (uint32_t i = 0; i < n; i++) child[i] = rule_var(&terms, at[of[i]][r]);
    for (uint32_t i = 0; i < n_more; i++) child[n + i] = more[i];
    node[at[k][r]].op = op;
    node[at[k][r]].call = rule_op(&terms, op, child, n + n_more);
  }
  for (uint32_t i = 0; i < n; i++) args[k][i] = of[i];
  tuple[k].n_args = n;
}

/* A collective of all ranks on a tuple. */
static inline void meets(uint32_t k, const char *op, uint32_t of, const rule_term *const *more,
                         uint32_t n_more) {
  const rule_term *each[PLC_RANKS], *child[4];
  for (uint32_t r = 0; r < ranks.mesh.n; r++) each[r] = rule_var(&terms, at[of][r]);
  child[0] = rule_list(&terms, each, ranks.mesh.n);
  for (uint32_t i = 0; i < n_more; i++) child[1 + i] = more[i];
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    node[at[k][r]].op = op;
    node[at[k][r]].call = rule_op(&terms, op, child, 1 + n_more);
  }
  args[k][0] = of;
  tuple[k].n_args = 1;
  tuple[k].collective = true;
  tuple[k].axes = 1;
}

/* `n` tuples that all ranks have, of 2 by 3 numbers; the first is an input. Each rank has nodes of
 * its own, and each draw has another whole. */
static inline void begin_tuples(const char *mesh, uint32_t n) {
  begin(mesh);
  iso_arena_init(&terms);
  graph = (cap_graph){.node = node};
  for (uint32_t k = 0; k < n; k++) {
    for (uint32_t r = 0; r < ranks.mesh.n; r++) {
      const uint32_t i = at[k][r] = k * ranks.mesh.n + r;
      output[i] = (cap_output){SHAPE(2, 3), RULE_F64};
      node[i] = (cap_node){
          .kind = k ? CAP_OP : CAP_INPUT, .id = "n", .n_outputs = 1, .output = &output[i]};
      ranks_of[i] = UINT64_C(1) << r;
      for (uint32_t d = 0; d < PLC_DRAWS; d++) value[d][i] = NULL;
    }
    for (uint32_t d = 0; d < PLC_DRAWS; d++) {
      wholes[k][d] = make(SHAPE(2, 3));
      rule_tensor_set(wholes[k][d], 0, d + 1);
    }
    place[k] = plc_replica();
    tuple[k] = (plc_tuple){.node = at[k],
                           .id = k,
                           .n_out = 1,
                           .leaf = k == 0,
                           .state = PLC_PLACED,
                           .place = &place[k],
                           .arg = args[k],
                           .stands_for = PLC_NONE,
                           .whole = wholes[k]};
    tuples[k] = &tuple[k];
    reads(k, "aten::neg", NULL, 0, NULL, 0);
  }
  for (uint32_t d = 0; d < PLC_DRAWS; d++) ranks.value[d] = value[d];
  ranks.g = &graph;
  ranks.ranks_of = ranks_of;
  ranks.tuple = tuples;
  ranks.n_tuples = n;
}

static inline void end_tuples(void) {
  iso_arena_fini(&terms);
  end();
}

#endif
