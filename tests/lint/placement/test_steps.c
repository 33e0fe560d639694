/* Nodes of several ranks are put together to the steps that they were made of: in whatever order
 * they stand, whatever a rank has beside, and where ranks of a group meet. */
#include "tests/lint/placement/ranks.h"
#include "tests/support/suite.h"

enum { SEEDS = 300, LEAVES = 3, STEPS = 10, MOST_RANKS = 8, MOST_NODES = 256 };

typedef enum kind { LEAF, ONE, TWO, MEETS } kind;

typedef struct step {
  kind kind;
  const char *op;
  uint32_t of[2]; /* steps */
  uint32_t axes;  /* along which ranks meet, by bits */
  uint32_t node[MOST_RANKS];
} step;

static cap_graph graph;
static cap_node nodes[MOST_NODES];
static cap_output outputs[MOST_NODES];
static uint64_t ranks_of[MOST_NODES];
static uint32_t step_of[MOST_NODES], extra[MOST_RANKS];
static step steps[STEPS];
static iso_rng rng;

static void begin_program(uint64_t seed) {
  rng = iso_rng_new(seed, 1);
  begin_at_random(&rng);
  graph = (cap_graph){.node = nodes};
  ranks.g = &graph;
  ranks.ranks_of = ranks_of;
  ranks.step_of = step_of;
  for (int i = 0; i < MOST_NODES; i++) step_of[i] = PLC_NONE;
  for (int k = 0; k < STEPS; k++)
    for (int r = 0; r < MOST_RANKS; r++) steps[k].node[r] = PLC_NONE;
  for (int r = 0; r < MOST_RANKS; r++) extra[r] = PLC_NONE;
}

static void end_program(void) {
  free(ranks.tuple);
  end();
}

static uint32_t add_node(cap_node n) {
  const uint32_t i = (uint32_t)graph.n_nodes++;
  ck_assert_uint_lt(i, MOST_NODES);
  outputs[i] = (cap_output){SHAPE(2, 3), RULE_F64};
  n.n_outputs = 1;
  n.output = &outputs[i];
  nodes[i] = n;
  return i;
}

static const rule_term *var_of(uint32_t s, uint32_t r) {
  return rule_var(&report, steps[s].node[r]);
}

/* The ranks that meet `r` along these axes are those whose places differ there alone. */
static bool meets(uint32_t q, uint32_t r, uint32_t axes) {
  bool yes = true;
  for (uint32_t a = 0; a < ranks.mesh.n_axes; a++)
    yes &= axes >> a & 1 || plc_along(&ranks.mesh, q, a) == plc_along(&ranks.mesh, r, a);
  return yes;
}

static void draw_steps(void) {
  static const char *const one[] = {"aten::neg", "aten::relu", "aten::exp"},
                           *const two[] = {"aten::add.Tensor", "aten::mul.Tensor"};
  for (uint32_t k = 0; k < STEPS; k++) {
    step *s = &steps[k];
    s->kind = k < LEAVES ? LEAF : (kind)(ONE + iso_rng_below(&rng, 3));
    for (int i = 0; i < 2 && k; i++) s->of[i] = (uint32_t)iso_rng_below(&rng, k);
    s->op = s->kind == ONE ? one[iso_rng_below(&rng, 3)] : two[iso_rng_below(&rng, 2)];
    if (s->kind != MEETS) continue;
    /* What all ranks have alike says of no group. */
    while (steps[s->of[0]].kind == MEETS) s->of[0] = (uint32_t)iso_rng_below(&rng, k);
    s->op = "dist::all_reduce";
    s->axes = 1 + (uint32_t)iso_rng_below(&rng, (UINT64_C(1) << ranks.mesh.n_axes) - 1);
  }
}

/* A rank's node of a step; of a collective, that of its group. `named`: the id tells the step. */
static void emit(uint32_t k, uint32_t r, bool named) {
  step *s = &steps[k];
  const uint32_t said = named ? k : (uint32_t)graph.n_nodes;
  cap_node n = {.kind = CAP_OP, .op = s->op};
  if (s->kind == MEETS) {
    const rule_term *list[MOST_RANKS];
    uint32_t m = 0;
    for (uint32_t q = 0; q < ranks.mesh.n; q++)
      if (meets(q, r, s->axes)) list[m++] = var_of(s->of[0], q);
    const rule_term *const arg[] = {rule_list(&report, list, m), rule_string(&report, "sum")};
    n.id = iso_arena_printf(&report, "all%u", (unsigned)graph.n_nodes);
    n.call = rule_op(&report, s->op, arg, 2);
    const uint32_t i = add_node(n);
    for (uint32_t q = 0; q < ranks.mesh.n; q++)
      if (meets(q, r, s->axes)) s->node[q] = i;
    return;
  }
  n.id = iso_arena_printf(&report, "r%u_%s%u", r, s->kind == LEAF ? "leaf" : "step", said);
  if (s->kind == LEAF) {
    n.kind = CAP_PARAMETER;
    n.op = "parameter";
    n.name = iso_arena_printf(&report, "rank%u.w%u", r, k);
  } else {
    const rule_term *const arg[] = {var_of(s->of[0], r), var_of(s->of[1], r)};
    n.call = rule_op(&report, s->op, arg, s->kind == ONE ? 1 : 2);
  }
  s->node[r] = add_node(n);
}

/* An operator that no other rank has, and that nothing reads. */
static void emit_extra(uint32_t r, uint32_t before) {
  static const char *const own[] = {"aten::sin",  "aten::cos",  "aten::tan",  "aten::sinh",
                                    "aten::cosh", "aten::tanh", "aten::asin", "aten::acos"};
  const rule_term *const arg[] = {var_of(before, r)};
  extra[r] = add_node((cap_node){.kind = CAP_OP,
                                 .op = own[r],
                                 .id = iso_arena_printf(&report, "r%u_extra", r),
                                 .call = rule_op(&report, own[r], arg, 1)});
}

/* Step after step, or as far as a rank gets before it meets the others. */
static void emit_all(bool named, bool extras) {
  uint32_t next[MOST_RANKS] = {0}, left = STEPS * ranks.mesh.n;
  while (left) {
    const uint32_t r = (uint32_t)iso_rng_below(&rng, ranks.mesh.n), n = next[r];
    if (n == STEPS) continue;
    const uint32_t k = n < LEAVES ? (n + r) % LEAVES : n; /* leaves stand in any order */
    bool ready = true, there = steps[k].node[r] != PLC_NONE;
    for (uint32_t q = 0; q < ranks.mesh.n; q++)
      ready &= steps[k].kind != MEETS || !meets(q, r, steps[k].axes) || next[q] >= k;
    if (!ready) continue;
    if (!there) emit(k, r, named);
    if (extras && k >= LEAVES && extra[r] == PLC_NONE && iso_rng_below(&rng, 3) == 0)
      emit_extra(r, k);
    next[r]++;
    left--;
  }
}

static void are_the_steps(uint64_t seed) {
  uint32_t others = 0;
  plc_find_steps(&ranks);
  ck_assert_msg(!plc_failed(&ranks), "%s", err.msg);
  for (uint32_t k = 0; k < STEPS; k++) {
    ck_assert_uint_lt(step_of[steps[k].node[0]], ranks.n_tuples);
    const plc_tuple *t = ranks.tuple[step_of[steps[k].node[0]]];
    for (uint32_t r = 0; r < ranks.mesh.n; r++)
      ck_assert_msg(t->node[r] == steps[k].node[r], "seed %d, step %u (%s) of rank %u", (int)seed,
                    k, steps[k].op, r);
    ck_assert_int_eq(t->leaf, steps[k].kind == LEAF);
    ck_assert_int_eq(t->collective, steps[k].kind == MEETS);
    ck_assert_uint_eq(t->axes, steps[k].kind == MEETS ? steps[k].axes : 0);
    ck_assert(!t->mixed);
  }
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    if (extra[r] == PLC_NONE) continue;
    const plc_tuple *t = ranks.tuple[step_of[extra[r]]];
    for (uint32_t q = 0; q < ranks.mesh.n; q++)
      ck_assert_uint_eq(t->node[q], q == r ? extra[r] : PLC_NONE);
    others++;
  }
  ck_assert_uint_eq(ranks.n_tuples, STEPS + others);
}

/* By their names in half of the programs, and by their operators and operands in the others. */
START_TEST(nodes_of_one_step_are_one_tuple) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_program(seed);
    draw_steps();
    emit_all(seed % 2, _i);
    are_the_steps(seed);
    end_program();
  }
}
END_TEST

/* Leaves come first; then steps in the order of the first rank. */
START_TEST(steps_stand_in_the_first_ranks_order) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_program(seed);
    draw_steps();
    emit_all(true, false);
    plc_find_steps(&ranks);
    for (size_t i = 0; i < ranks.n_tuples; i++) {
      ck_assert_uint_eq(ranks.tuple[i]->id, i);
      ck_assert_int_eq(ranks.tuple[i]->leaf, i < LEAVES);
    }
    for (uint32_t k = LEAVES; k < STEPS; k++)
      for (uint32_t i = 0; i < 2; i++)
        if (steps[k].kind == TWO || i == 0)
          ck_assert_uint_lt(step_of[steps[steps[k].of[i]].node[0]], step_of[steps[k].node[0]]);
    end_program();
  }
}
END_TEST

/* Ranks that have it from other steps: one tuple of its own, made once. */
START_TEST(nodes_of_several_steps_are_a_mixed_tuple) {
  begin_program(0);
  draw_steps();
  emit_all(true, false);
  plc_find_steps(&ranks);
  uint32_t node[MOST_RANKS], n_rank = ranks.mesh.n;
  for (uint32_t r = 0; r < n_rank; r++) node[r] = steps[r ? 0 : 1].node[r];
  const size_t before = ranks.n_tuples;
  const uint32_t id = plc_intern(&ranks, node);
  ck_assert_uint_eq(id, before);
  ck_assert(ranks.tuple[id]->mixed);
  ck_assert_uint_eq(plc_intern(&ranks, node), id);
  node[0] = PLC_NONE; /* some ranks' nodes of one step are that step's */
  ck_assert_uint_eq(plc_intern(&ranks, node), step_of[steps[0].node[0]]);
  ck_assert_uint_eq(plc_intern(&ranks, steps[1].node), step_of[steps[1].node[0]]);
  for (uint32_t r = 0; r < n_rank; r++) node[r] = PLC_NONE;
  ck_assert_uint_eq(plc_intern(&ranks, node), PLC_NONE);
  ck_assert_uint_eq(ranks.n_tuples, before + 1);
  end_program();
}
END_TEST

START_TEST(names_tell_ranks_where_they_have_the_form) {
  static const struct {
    const char *text, *name;
    uint32_t rank;
  } leaves[] = {{"rank0.w", "w", 0},  {"rank63.a.b", "a.b", 63}, {"rank64.w", NULL, 0},
                {"rank1w", NULL, 0},  {"rank.w", NULL, 0},       {"rank1.", NULL, 0},
                {"ranks1.w", NULL, 0}};
  static const struct {
    const char *id;
    bool fits;
    uint32_t rank;
  } ids[] = {{"r0_x", true, 0}, {"r63_", true, 63}, {"r64_x", false, 0},
             {"r1x", false, 0}, {"r_x", false, 0},  {"q1_x", false, 0}};
  uint32_t rank;
  for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
    const char *name = plc_leaf_name(leaves[i].text, &rank);
    ck_assert_int_eq(name != NULL, leaves[i].name != NULL);
    if (name) ck_assert_str_eq(name, leaves[i].name);
    if (name) ck_assert_uint_eq(rank, leaves[i].rank);
  }
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
    const cap_node n = {.id = ids[i].id};
    ck_assert_int_eq(plc_node_rank(&n, &rank), ids[i].fits);
    if (ids[i].fits) ck_assert_uint_eq(rank, ids[i].rank);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("steps");
  TCase *t = tcase_create("steps");
  tcase_add_loop_test(t, nodes_of_one_step_are_one_tuple, 0, 2);
  tcase_add_test(t, steps_stand_in_the_first_ranks_order);
  tcase_add_test(t, nodes_of_several_steps_are_a_mixed_tuple);
  tcase_add_test(t, names_tell_ranks_where_they_have_the_form);
  suite_add_tcase(s, t);
  return run_suite(s);
}
