/* Peers of programs of several ranks that are made of the program of one: a rank's copy of a step
 * is a peer of the other ranks' copies, and of nothing else. */
#include "synth/parts/parts.h"
#include "synth/search/search.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { SEEDS = 400, RANKS = 4, STEPS = 4, DECOYS = 2 };
/* How the ranks show: in what joins their results, or in their nodes' names. */
typedef enum way { MEET, CAT, SUM, OUTPUTS, NAMES, WAYS } way;

typedef struct program {
  uint32_t n, steps;
  uint32_t at[STEPS + 1][RANKS]; /* step 0: the inputs */
  const char *op[STEPS + 1];     /* of a step */
  uint32_t weight;               /* the same for all ranks */
  bool named;
} program;

static graph *side_graph;
static int side;

static void begin(uint64_t seed) {
  begin_state();
  side = (int)(seed % 2);
  side_graph = graph_of(side);
}

static void end(void) {
  for (int k = 0; k < 2; k++) {
    free(st.ranks.first_peers[k]);
    free(st.ranks.peers_at[k]);
  }
  free(st.ranks.peers);
  end_state();
}

static void find(void) { ck_assert_msg(st_find_peers(&st, &err) == ISO_OK, "%s", err.msg); }

static void name_rank(uint32_t i, uint32_t rank, uint32_t step) {
  side_graph->node[i].id = iso_arena_printf(&w.arena, "r%u_step%u", rank, step);
}

/* Step `s` of a rank: on the step before, now and then with the weight, or with itself. */
static uint32_t add_step(const program *p, uint32_t s, uint32_t rank, uint64_t kind) {
  const uint32_t x = p->at[s - 1][rank];
  if (kind == 0) return add(side_graph, x, p->weight);
  if (kind == 1) return mul(side_graph, p->weight, x);
  return kind == 2 ? neg(side_graph, x) : relu(side_graph, x);
}

static program draw(iso_rng *rng, bool named) {
  program p = {.n = 2 + (uint32_t)iso_rng_below(rng, RANKS - 1),
               .steps = 1 + (uint32_t)iso_rng_below(rng, STEPS)};
  uint64_t kind[STEPS + 1];
  rule_tensor *t = noise(1, SHAPE(2, 2), 0, 1);
  p.weight = weight(side_graph, "w", t);
  for (int i = 0; i < DECOYS; i++) neg(side_graph, p.weight);
  for (uint32_t s = 1; s <= p.steps; s++) kind[s] = iso_rng_below(rng, 4);
  for (uint32_t r = 0; r < p.n; r++) p.at[0][r] = input(side_graph, noise(2 + r, t->shape, 0, 1));
  /* One rank after the other, or step by step. */
  const bool by_rank = iso_rng_below(rng, 2);
  for (uint32_t k = 0; k < p.n * p.steps; k++) {
    const uint32_t r = by_rank ? k / p.steps : k % p.n, s = 1 + (by_rank ? k % p.steps : k / p.n);
    p.at[s][r] = add_step(&p, s, r, kind[s]);
  }
  for (uint32_t s = 0; s <= p.steps && named; s++)
    for (uint32_t r = 0; r < p.n; r++) name_rank(p.at[s][r], r, s);
  return p;
}

static const rule_term *list_of(const uint32_t *node, uint32_t n) {
  const rule_term *item[RANKS];
  for (uint32_t r = 0; r < n; r++) item[r] = v(node[r]);
  return rule_list(&w.arena, item, n);
}

/* Two rows. */
static uint32_t slice_from(graph *g, uint32_t x, int64_t from) {
  const rule_term *arg[5] = {v(x), num(0), num(from), num(from + 2), num(1)};
  return step_by(g, call_of("aten::slice.Tensor", arg));
}

static uint32_t slice_of(uint32_t x, int64_t from) { return slice_from(side_graph, x, from); }

static void meet(const program *p, way how) {
  const uint32_t *last = p->at[p->steps];
  if (how == MEET)
    op(side_graph, "dist::all_reduce", list_of(last, p->n), rule_string(&w.arena, "sum"), NULL);
  if (how == CAT) op(side_graph, "aten::cat", list_of(last, p->n), num(0), NULL);
  if (how == SUM) {
    uint32_t sum = last[0];
    for (uint32_t r = 1; r < p->n; r++) sum = add(side_graph, sum, last[r]);
  }
  if (how == OUTPUTS)
    for (uint32_t r = 0; r < 2; r++) {
      side_graph->out[side_graph->g.n_outputs++] = (synth_output){.node = last[r]};
      graph_of(!side)->out[r] = (synth_output){.node = 0};
      graph_of(!side)->g.n_outputs = 2;
    }
}

static const peers *peers_of_step(const program *p, uint32_t s) {
  return st_peers_of(&st, side, p->at[s], p->n);
}

/* The step of which the nodes are all ranks' copies, in the ranks' order. */
static bool is_a_step(const program *p, const peers *q) {
  for (uint32_t s = 0; s <= p->steps; s++)
    if (q->n == p->n && memcmp(q->node, p->at[s], p->n * sizeof *q->node) == 0) return true;
  return false;
}

START_TEST(copies_of_a_step_are_peers_and_nothing_else_is) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin(seed);
    iso_rng rng = iso_rng_new(seed, 41 + (uint64_t)_i);
    const program p = draw(&rng, _i == NAMES);
    if (_i == OUTPUTS && p.n != 2) {
      end();
      continue;
    }
    /* Sums on the way are summands, too: only results of another operator end them. */
    if (_i == SUM && side_graph->node[p.at[p.steps][0]].op &&
        strcmp(side_graph->node[p.at[p.steps][0]].op, "aten::mul.Tensor") != 0) {
      end();
      continue;
    }
    meet(&p, (way)_i);
    find();
    for (uint32_t s = 0; s <= p.steps; s++) {
      const peers *q = peers_of_step(&p, s);
      ck_assert_msg(q != NULL, "seed %d, step %u of %u", (int)seed, s, p.steps);
      ck_assert_int_eq(q->pieces, _i == CAT || _i == SUM);
      for (uint32_t r = 0; r < p.n; r++)
        ck_assert_ptr_eq(&st.ranks.peers[st.ranks.peers_at[side][p.at[s][r]]], q);
    }
    for (size_t i = 0; i < st.ranks.n_peers; i++)
      ck_assert_msg(is_a_step(&p, &st.ranks.peers[i]), "seed %d", (int)seed);
    ck_assert_uint_eq(st.ranks.peers_at[side][p.weight], UINT32_MAX);
    end();
  }
}
END_TEST

START_TEST(peers_stand_in_the_order_of_their_last_nodes) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin(seed);
    iso_rng rng = iso_rng_new(seed, 51);
    const program p = draw(&rng, false);
    meet(&p, MEET);
    find();
    for (size_t i = 0; i < st.ranks.n_peers; i++) {
      const peers *q = &st.ranks.peers[i];
      uint32_t last = 0;
      for (uint32_t r = 0; r < q->n; r++) last = q->node[r] > last ? q->node[r] : last;
      ck_assert_uint_eq(q->last, last);
      ck_assert(i == 0 || st.ranks.peers[i - 1].last <= last);
    }
    end();
  }
}
END_TEST

/* A rank that does something else: what is below that is followed no further. */
START_TEST(peers_end_where_a_rank_does_something_else) {
  begin(0);
  rule_tensor *t = noise(1, SHAPE(2), 0, 1);
  const uint32_t x[2] = {input(side_graph, t), input(side_graph, t)},
                 y[2] = {neg(side_graph, x[0]), relu(side_graph, x[1])},
                 z[2] = {relu(side_graph, y[0]), relu(side_graph, y[1])};
  op(side_graph, "dist::all_reduce", list_of(z, 2), rule_string(&w.arena, "sum"), NULL);
  find();
  ck_assert_ptr_nonnull(st_peers_of(&st, side, z, 2));
  ck_assert_ptr_nonnull(st_peers_of(&st, side, y, 2));
  ck_assert_ptr_null(st_peers_of(&st, side, x, 2));
  end();
}
END_TEST

/* A rank that copies a step as it is, or puts it behind what there was before: the step is a peer.
 * A rank that computes with it has none. */
START_TEST(what_a_rank_copies_is_a_peer) {
  for (int k = 0; k < 4; k++) {
    begin((uint64_t)k);
    rule_tensor *t = noise(1, SHAPE(2), 0, 1);
    const uint32_t x[2] = {input(side_graph, t), input(side_graph, t)},
                   y[2] = {neg(side_graph, x[0]), neg(side_graph, x[1])}, both[2] = {y[0], y[1]},
                   other = k == 0   ? op(side_graph, "aten::alias", v(y[1]), NULL, NULL)
                           : k == 1 ? op(side_graph, "aten::cat", list_of(both, 2), num(0), NULL)
                           : k == 2 ? add(side_graph, y[1], y[1])
                                    : op(side_graph, "aten::alias", v(y[0]), NULL, NULL),
                   z[2] = {relu(side_graph, y[0]), relu(side_graph, other)};
    op(side_graph, "dist::all_reduce", list_of(z, 2), rule_string(&w.arena, "sum"), NULL);
    find();
    ck_assert_ptr_nonnull(st_peers_of(&st, side, z, 2));
    ck_assert_int_eq(st_peers_of(&st, side, y, 2) != NULL, k < 2);
    ck_assert_int_eq(st_peers_of(&st, side, x, 2) != NULL, k < 2);
    end();
  }
}
END_TEST

/* Names that are of no rank, or not the same on both, name no peers; neither do tensors of other
 * kinds. */
START_TEST(ranks_are_named_and_hold_tensors_of_one_kind) {
  static const char *const names[][2] = {{"r0_x", "r1_x"}, {"r1_x", "r2_x"},  {"r0_x", "r2_x"},
                                         {"r0_x", "r1_y"}, {"r0x", "r1x"},    {"r0_x", "r1_x_"},
                                         {"r_x", "r1_x"},  {"r0_x", "r64_x"}, {"q0_x", "q1_x"}};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    begin(k);
    rule_tensor *t = noise(1, SHAPE(2), 0, 1);
    const uint32_t x[2] = {input(side_graph, t), input(side_graph, t)};
    for (int r = 0; r < 2; r++) side_graph->node[x[r]].id = names[k][r];
    find();
    ck_assert_msg((st_peers_of(&st, side, x, 2) != NULL) == (k < 3), "%s %s", names[k][0],
                  names[k][1]);
    end();
  }
  for (int k = 0; k < 5; k++) {
    begin(0);
    const uint32_t x[2] = {
        input(side_graph, noise(1, SHAPE(2), 0, 1)),
        input(side_graph, k == 1 ? noise(1, SHAPE(2, 1), 0, 1) : noise(1, SHAPE(3), 0, 1))};
    for (uint32_t r = 0; r < 2; r++) name_rank(x[r], r, 0);
    if (k == 2) side_graph->node[x[1]].dtype = RULE_F32;
    if (k == 3) st.map[side][x[0]].i = EG_NONE;
    if (k == 4) side_graph->node[x[1]].kind = SYNTH_PARAMETER;
    find();
    ck_assert_int_eq(st_peers_of(&st, side, x, 2) != NULL, k == 0);
    end();
  }
}
END_TEST

/* Ranks of two stages hold leaves of other names: a step that has one name on all of them is each
 * stage's own. Ranks that hold some leaf alone are of one stage. */
START_TEST(a_name_is_a_stages_own) {
  for (int stages = 1; stages <= 2; stages++) {
    begin(0);
    rule_tensor *t = noise(1, SHAPE(2), 0, 1);
    uint32_t y[4];
    for (uint32_t r = 0; r < 4; r++) {
      uint32_t x = 0;
      for (int k = 0; k < 3; k++) {
        const int other = stages == 2 ? 2 * (r > 1) : 0, alone = k == 2 && r == 3;
        x = input(side_graph, t);
        side_graph->node[x].id =
            iso_arena_printf(&w.arena, "r%u_leaf%d", r, k + 3 * other + (alone ? 20 : 0));
      }
      y[r] = neg(side_graph, x);
      side_graph->node[y[r]].id = iso_arena_printf(&w.arena, "r%u_neg", r);
    }
    find();
    ck_assert_int_eq(st_peers_of(&st, side, y, 4) != NULL, stages == 1);
    ck_assert_int_eq(st_peers_of(&st, side, y, 2) != NULL, stages == 2);
    ck_assert_int_eq(st_peers_of(&st, side, y + 2, 2) != NULL, stages == 2);
    end();
  }
}
END_TEST

/* Outputs beside one another are a tensor of each rank where the other graph gives one for both. */
START_TEST(outputs_are_of_ranks_where_they_have_one_counterpart) {
  for (int k = 0; k < 2; k++) {
    begin(0);
    rule_tensor *t = noise(1, SHAPE(2), 0, 1);
    const uint32_t x[2] = {input(side_graph, t), input(side_graph, t)};
    for (uint32_t r = 0; r < 2; r++) {
      output(side_graph, "y", x[r]);
      output(graph_of(!side), "y", k ? r : 0);
    }
    find();
    ck_assert_int_eq(st_peers_of(&st, side, x, 2) != NULL, k == 0);
    end();
  }
}
END_TEST

/* A concatenation of results of two operators joins no pieces. */
START_TEST(pieces_are_results_of_one_operator) {
  begin(1);
  const uint32_t x = input(side_graph, noise(1, SHAPE(2), 0, 1)), a = neg(side_graph, x),
                 b = relu(side_graph, x), y[2] = {a, b};
  op(side_graph, "aten::cat", list_of(y, 2), num(0), NULL);
  find();
  ck_assert_uint_eq(st.ranks.n_peers, 0);
  end();
}
END_TEST

/* Tensors that two ranks' pieces and a collective join are the ranks', not pieces of one. */
START_TEST(pieces_that_a_collective_takes_are_ranks) {
  begin(0);
  rule_tensor *t = noise(1, SHAPE(2), 0, 1);
  const uint32_t x[2] = {input(side_graph, t), input(side_graph, t)},
                 y[2] = {neg(side_graph, x[0]), neg(side_graph, x[1])};
  op(side_graph, "aten::cat", list_of(y, 2), num(0), NULL);
  op(side_graph, "dist::all_reduce", list_of(y, 2), rule_string(&w.arena, "sum"), NULL);
  find();
  ck_assert(!st_peers_of(&st, side, y, 2)->pieces && !st_peers_of(&st, side, x, 2)->pieces);
  ck_assert(st.ranks.collective[side] && !st.ranks.collective[!side]);
  end();
}
END_TEST

/* The side whose ranks give one another tensors is looked at last. */
START_TEST(the_whole_side_is_the_one_without_ranks) {
  for (int k = 0; k < 2; k++) {
    begin((uint64_t)k);
    rule_tensor *t = noise(1, SHAPE(2), 0, 1);
    const uint32_t x[2] = {input(side_graph, t), input(side_graph, t)};
    op(side_graph, "dist::all_reduce", list_of(x, 2), rule_string(&w.arena, "sum"), NULL);
    find();
    ck_assert_int_eq(st.ranks.whole_side, !side);
    end();
  }
}
END_TEST

/* Slices of one input are micro-batches; of two inputs they are not, nor is the input itself. */
START_TEST(a_batch_is_cut_where_pieces_are_parts_of_one_input) {
  for (int k = 0; k < 3; k++) {
    begin(0);
    rule_tensor *t = noise(1, SHAPE(4), 0, 1);
    const uint32_t a = input(side_graph, t), b = input(side_graph, t), from[2] = {a, k ? b : a};
    uint32_t y[2];
    for (int r = 0; r < 2; r++) {
      y[r] = k == 2 ? from[r] : slice_of(from[r], 2 * r);
      y[r] = neg(side_graph, y[r]);
    }
    op(side_graph, "aten::cat", list_of(y, 2), num(0), NULL);
    find();
    ck_assert_int_eq(st_n_batches(&st, side), k == 0 ? 2 : 0);
    ck_assert_int_eq(st_n_batches(&st, !side), 0);
    end();
  }
}
END_TEST

/* One side takes its batch in two micro-batches, the other on four ranks: groups of two ranks are
 * peers, in either way; no group is of one, nor are there groups where no batch is cut. */
START_TEST(ranks_are_grouped_as_the_other_side_has_batches) {
  for (int cut = 0; cut < 2; cut++) {
    begin(0);
    graph *other = graph_of(!side);
    rule_tensor *t = noise(1, SHAPE(4), 0, 1);
    const uint32_t a = input(other, t), b = input(other, t);
    const uint32_t part[2] = {neg(other, slice_from(other, a, 0)),
                              neg(other, slice_from(other, cut ? a : b, 2))};
    op(other, "aten::cat", list_of(part, 2), num(0), NULL);
    uint32_t x[4];
    for (int r = 0; r < 4; r++) x[r] = input(side_graph, t);
    op(side_graph, "dist::all_reduce", list_of(x, 4), rule_string(&w.arena, "sum"), NULL);
    find();
    const uint32_t apart[2] = {x[1], x[3]};
    ck_assert_int_eq(st_peers_of(&st, side, x + 2, 2) != NULL, cut);
    ck_assert_int_eq(st_peers_of(&st, side, apart, 2) != NULL, cut);
    ck_assert_ptr_null(st_peers_of(&st, side, x + 1, 2));
    ck_assert_ptr_null(st_peers_of(&st, side, x, 3));
    end();
  }
}
END_TEST

/* Two ranks add up for each of two pieces, that are then put together: what the ranks have of all
 * pieces are peers, and so is what that is made of. */
START_TEST(ranks_of_pieces_are_peers) {
  begin(0);
  rule_tensor *t = noise(1, SHAPE(4), 0, 1);
  uint32_t x[4], y[4], z[2];
  for (int k = 0; k < 4; k++) y[k] = neg(side_graph, x[k] = input(side_graph, t));
  for (uint32_t m = 0; m < 2; m++)
    z[m] = op(side_graph, "dist::all_reduce", list_of(y + 2 * (size_t)m, 2),
              rule_string(&w.arena, "sum"), NULL);
  op(side_graph, "aten::cat", list_of(z, 2), num(0), NULL);
  find();
  ck_assert(st_peers_of(&st, side, y, 4)->pieces && st_peers_of(&st, side, x, 4)->pieces);
  ck_assert(!st_peers_of(&st, side, y, 2)->pieces);
  end();
}
END_TEST

/* Two ranks, two micro-batches each: what a rank makes of both, what the ranks make of one, and all
 * four as pieces in the order of the batches. */
START_TEST(results_of_ranks_from_batches_are_a_grid) {
  for (int batches = 0; batches < 2; batches++) {
    begin(0);
    rule_tensor *t = noise(1, SHAPE(4), 0, 1);
    const uint32_t x[2] = {input(side_graph, t), input(side_graph, t)};
    const uint32_t by[2] = {weight(side_graph, "a", keep(make((rule_shape){0}))),
                            weight(side_graph, "b", keep(make((rule_shape){0})))};
    uint32_t y[4], z[2];
    for (uint32_t m = 0; m < 2; m++)
      for (uint32_t r = 0; r < 2; r++)
        y[2 * m + r] = mul(side_graph, slice_of(x[batches ? 0 : m], 2 * m), by[r]);
    for (uint32_t r = 0; r < 2; r++) {
      const uint32_t own[2] = {y[r], y[2 + r]};
      z[r] = op(side_graph, "aten::cat", list_of(own, 2), num(0), NULL);
    }
    op(side_graph, "dist::all_reduce", list_of(z, 2), rule_string(&w.arena, "sum"), NULL);
    find();
    const uint32_t first[2] = {y[0], y[2]};
    ck_assert(st_peers_of(&st, side, first, 2)->pieces);
    ck_assert(!st_peers_of(&st, side, y, 2)->pieces);
    ck_assert_int_eq(st_peers_of(&st, side, y, 4) != NULL, batches);
    ck_assert_int_eq(st_n_batches(&st, side), 2 * batches);
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("rank_sums");
  TCase *t = tcase_create("rank_sums");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, copies_of_a_step_are_peers_and_nothing_else_is, 0, WAYS);
  tcase_add_test(t, peers_stand_in_the_order_of_their_last_nodes);
  tcase_add_test(t, peers_end_where_a_rank_does_something_else);
  tcase_add_test(t, what_a_rank_copies_is_a_peer);
  tcase_add_test(t, ranks_are_named_and_hold_tensors_of_one_kind);
  tcase_add_test(t, a_name_is_a_stages_own);
  tcase_add_test(t, outputs_are_of_ranks_where_they_have_one_counterpart);
  tcase_add_test(t, ranks_are_grouped_as_the_other_side_has_batches);
  tcase_add_test(t, ranks_of_pieces_are_peers);
  tcase_add_test(t, results_of_ranks_from_batches_are_a_grid);
  tcase_add_test(t, pieces_are_results_of_one_operator);
  tcase_add_test(t, pieces_that_a_collective_takes_are_ranks);
  tcase_add_test(t, the_whole_side_is_the_one_without_ranks);
  tcase_add_test(t, a_batch_is_cut_where_pieces_are_parts_of_one_input);
  suite_add_tcase(s, t);
  return run_suite(s);
}
