/* Outputs differ where they are further apart than disturbed roundings move them: not by an order
 * of summands, not by what cancels, not by the sign of a computed zero. */
#include "synth/refute/refute_int.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { SEEDS = 40, SIZE = 6, SUMMANDS = 5 };

static uint32_t right_of[1];
static st_margin margin = {1e-9, 100, true};

static void begin(void) {
  begin_state();
  st.right_of = right_of;
}

/* All nodes are live. */
static void enter_graphs(void) {
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < graph_of(side)->g.n_nodes; i++) {
      const synth_node *n = &graph_of(side)->node[i];
      eg_node *e = &st.map[side][i];
      if (n->kind == SYNTH_OP) {
        ck_assert(st_add_term(&st, n->call, st.map[side], e, &err) == ISO_OK);
      } else {
        add_atom(side, i);
        st.rec[e->i].leaf = true;
      }
      if (st.rec[e->i].node[side] < 0) st.rec[e->i].node[side] = (int32_t)i;
    }
}

/* Whether the one output differs on the leaves' captured values. */
static bool differs(void) {
  rule_tensor **leaf[2];
  st_run run[2] = {0};
  st_difference d = {0};
  enter_graphs();
  for (int side = 0; side < 2; side++) {
    ck_assert((leaf[side] = calloc(MAX_NODES, sizeof *leaf[side])) != NULL);
    for (uint32_t i = 0; i < graph_of(side)->g.n_nodes; i++)
      if (graph_of(side)->node[i].kind != SYNTH_OP) leaf[side][i] = graph_of(side)->value[i][0];
  }
  ck_assert_msg(st_run_both(&st, leaf, false, run, &err) == ISO_OK, "%s", err.msg);
  ck_assert_msg(st_differs(&st, leaf, run, margin, 0, &d, &err) == ISO_OK, "%s", err.msg);
  for (int side = 0; side < 2; side++) {
    st_run_free(&run[side]);
    free(leaf[side]);
  }
  return d.found;
}

/* The same numbers in an order of their own. */
static uint32_t sum(graph *g, iso_rng *rng, rule_tensor *const *t, double factor) {
  uint32_t order[SUMMANDS], x = 0;
  for (uint32_t i = 0; i < SUMMANDS; i++) {
    const uint32_t k = (uint32_t)iso_rng_below(rng, i + 1);
    order[i] = order[k];
    order[k] = i;
  }
  for (uint32_t i = 0; i < SUMMANDS; i++) {
    const uint32_t y = input(g, t[order[i]]);
    x = i ? add(g, x, y) : y;
  }
  return op(g, "aten::mul.Tensor", v(x), rule_float(&w.arena, factor), NULL);
}

START_TEST(an_order_of_summands_is_no_difference_and_a_factor_is) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    rule_tensor *t[SUMMANDS];
    begin();
    for (int i = 0; i < SUMMANDS; i++) t[i] = noise(seed * 31 + i, SHAPE(SIZE), 0, 1);
    output(&w.l, "y", sum(&w.l, &rng, t, 3));
    output(&w.r, "y", sum(&w.r, &rng, t, _i ? 3 * (1 + 1e-6) : 3));
    ck_assert_msg(differs() == _i, "seed %d", (int)seed);
    end_state();
  }
}
END_TEST

/* x + 1e9 - 1e9 is x, but for the digits that the sum has lost; twice x is something else. */
START_TEST(digits_that_a_sum_has_lost_are_no_difference) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin();
    rule_tensor *t = noise(seed, SHAPE(SIZE), 0, 1);
    const uint32_t x = input(&w.l, t), y = input(&w.r, t);
    const uint32_t far = op(&w.l, "aten::add.Tensor", v(x), rule_float(&w.arena, 1e9), NULL);
    output(&w.l, "y", op(&w.l, "aten::add.Tensor", v(far), rule_float(&w.arena, -1e9), NULL));
    output(&w.r, "y", _i ? add(&w.r, y, y) : op(&w.r, "aten::alias", v(y), NULL, NULL));
    ck_assert_msg(differs() == _i, "seed %d", (int)seed);
    end_state();
  }
}
END_TEST

/* A number on one side and none on the other is a difference where that counts. */
START_TEST(no_number_is_a_difference_where_it_counts) {
  for (int k = 0; k < 3; k++) {
    begin();
    margin.nonfinite = k != 1;
    rule_tensor *t = noise(3, SHAPE(SIZE), 0, 1);
    rule_tensor_set(t, 2, k == 2 ? 1 : 0);
    const uint32_t x = input(&w.l, t), y = input(&w.r, t),
                   q = op(&w.l, "aten::div.Tensor", v(x), v(x), NULL); /* 0/0 */
    output(&w.l, "y", q);
    output(&w.r, "y",
           op(&w.r, "aten::nan_to_num", v(op(&w.r, "aten::div.Tensor", v(y), v(y), NULL)), num(7),
              NULL));
    ck_assert_msg(differs() == (k == 0), "%d", k);
    margin.nonfinite = true;
    end_state();
  }
}
END_TEST

/* 1 / (x - x) is infinite of the sign of a zero that real numbers do not have; 1 / 0 and -1 / 0 of
 * a given zero are two. */
START_TEST(the_sign_of_a_computed_zero_is_no_difference) {
  for (int k = 0; k < 2; k++) {
    begin();
    rule_tensor *t = noise(3, SHAPE(SIZE), 0, 1), *zero = constant(SHAPE(SIZE), 0);
    for (int side = 0; side < 2; side++) {
      graph *g = graph_of(side);
      uint32_t z = input(g, k ? zero : t);
      if (!k) z = add(g, z, neg(g, z));
      if (side && !k) z = neg(g, z);
      const uint32_t one = ones(g, SIZE), q = op(g, "aten::div.Tensor", v(one), v(z), NULL);
      output(g, "y", side && k ? neg(g, q) : q);
    }
    ck_assert_int_eq(differs(), k);
    end_state();
  }
}
END_TEST

/* Where the oracle knows that both are the same real numbers, they are no difference, however far
 * they are apart; where it knows that they are not, or knows nothing, they are. */
START_TEST(the_same_real_numbers_are_no_difference) {
  static const struct {
    rule_numbers said;
    bool differs;
  } cases[] = {{RULE_NUMBERS_UNKNOWN, true},
               {RULE_NUMBERS_SAME, false},
               {RULE_NUMBERS_LOST, false},
               {RULE_NUMBERS_JUMP, false},
               {RULE_NUMBERS_APART, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin();
    oracle.same_numbers = small_numbers;
    w.oracle.numbers = cases[i].said;
    rule_tensor *t = noise(3, SHAPE(SIZE), 0, 1);
    const uint32_t x = input(&w.l, t), y = input(&w.r, t);
    output(&w.l, "y", add(&w.l, x, x));
    output(&w.r, "y", neg(&w.r, y));
    ck_assert_msg(differs() == cases[i].differs, "%d", (int)i);
    end_state();
  }
}
END_TEST

/* Numbers beside a large one of their row are held against that. */
START_TEST(a_difference_is_relative_to_its_row) {
  for (int k = 0; k < 4; k++) {
    begin();
    rule_tensor *t = noise(3, SHAPE(2, 3), 0, 1), *u = keep(reshaped(t, t->shape));
    rule_tensor_set(t, 1, 1e6), rule_tensor_set(u, 1, 1e6);
    rule_tensor_set(u, k < 2 ? 0 : 5, rule_tensor_get(t, k < 2 ? 0 : 5) + (k % 2 ? 1e-2 : 1e-5));
    output(&w.l, "y", op(&w.l, "aten::alias", v(input(&w.l, t)), NULL, NULL));
    output(&w.r, "y", op(&w.r, "aten::alias", v(input(&w.r, u)), NULL, NULL));
    ck_assert_msg(differs() == (k != 0), "%d", k); /* 1e-9 of 1e6 are 1e-3 */
    end_state();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("rounding");
  TCase *t = tcase_create("rounding");
  tcase_add_loop_test(t, an_order_of_summands_is_no_difference_and_a_factor_is, 0, 2);
  tcase_add_loop_test(t, digits_that_a_sum_has_lost_are_no_difference, 0, 2);
  tcase_add_test(t, no_number_is_a_difference_where_it_counts);
  tcase_add_test(t, the_sign_of_a_computed_zero_is_no_difference);
  tcase_add_test(t, the_same_real_numbers_are_no_difference);
  tcase_add_test(t, a_difference_is_relative_to_its_row);
  suite_add_tcase(s, t);
  return run_suite(s);
}
