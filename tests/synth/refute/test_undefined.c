/* Where graphs may be undefined, which operators see it, and the numbers to look at: held against
 * what the graphs compute on those numbers. */
#include "synth/refute/refute_int.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { SIZE = 4 };

static uint32_t right_of[1];
static st_poles p;

static void begin(void) {
  begin_state();
  st.right_of = right_of;
}

static void find_poles(void) {
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < graph_of(side)->g.n_nodes; i++) {
      const synth_node *n = &graph_of(side)->node[i];
      eg_node *e = &st.map[side][i];
      if (n->kind == SYNTH_OP)
        ck_assert(st_add_term(&st, n->call, st.map[side], e, &err) == ISO_OK);
      else add_atom(side, i);
    }
  ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
  ck_assert_msg(st_poles_of(&st, &p, &err) == ISO_OK, "%s", err.msg);
}

static void end(void) {
  st_poles_free(&p);
  end_state();
}

static uint32_t data(graph *g) { return input(g, noise(1, SHAPE(SIZE), 0, 1)); }

static uint32_t with(graph *g, const char *name, uint32_t x, double c) {
  return op(g, name, v(x), rule_float(&w.arena, c), NULL);
}

static bool has_pole(double x) {
  for (size_t i = 0; i < p.n; i++)
    if (fabs(p.value[i] - x) < 1e-9) return true;
  return false;
}

/* One over a polynomial of x that is 0 at `pole`. */
static uint32_t quotient(graph *g, int kind, double *pole) {
  const uint32_t x = data(g);
  *pole = kind == 0 ? 0 : kind == 1 ? 3 : kind == 2 ? -2.5 : 2;
  const uint32_t d = kind == 0   ? x
                     : kind == 1 ? with(g, "aten::add.Tensor", x, -3)
                     : kind == 2 ? with(g, "aten::add.Tensor", x, 2.5)
                                 : with(g, "aten::add.Tensor", mul(g, x, x), -4);
  return op(g, "aten::div.Tensor", v(ones(g, SIZE)), v(d), NULL);
}

START_TEST(a_divisors_zero_is_a_number_to_look_at) {
  for (int kind = 0; kind < 4; kind++) {
    double pole;
    begin();
    for (int side = 0; side < 2; side++)
      output(graph_of(side), "y", quotient(graph_of(side), kind, &pole));
    find_poles();
    ck_assert_msg(has_pole(pole), "%d: %g", kind, pole);
    ck_assert(has_pole(0) && has_pole(1) && has_pole(-1));
    const uint32_t y = w.l.out[0].node;
    ck_assert(p.divides[LEFT][y] && p.divides[RIGHT][y]);
    ck_assert(p.undefined && !p.apart && !p.watched);
    end();
  }
}
END_TEST

/* A divisor that is 1 more than a square is never 0. */
START_TEST(a_divisor_that_cannot_be_zero_is_none) {
  begin();
  for (int side = 0; side < 2; side++) {
    graph *g = graph_of(side);
    const uint32_t x = data(g), d = with(g, "aten::add.Tensor", relu(g, x), 1);
    output(g, "y", op(g, "aten::div.Tensor", v(x), v(d), NULL));
  }
  find_poles();
  ck_assert(!p.divides[LEFT][w.l.out[0].node] && !p.undefined && !p.watched);
  end();
}
END_TEST

/* An operator that replaces what is no number sees it; what it reads is watched, and the leaves
 * that feed it. */
START_TEST(what_sees_undefined_numbers_is_watched) {
  for (int k = 0; k < 2; k++) {
    begin();
    uint32_t q = 0, other = 0;
    for (int side = 0; side < 2; side++) {
      graph *g = graph_of(side);
      const uint32_t x = data(g), beside = input(g, noise(2, SHAPE(SIZE), 0, 1));
      const uint32_t d = op(g, "aten::div.Tensor", v(x), v(x), NULL);
      const uint32_t seen = k ? neg(g, d) : op(g, "aten::nan_to_num", v(d), num(7), NULL);
      output(g, "y", add(g, seen, beside));
      if (side == LEFT) q = d, other = beside;
    }
    find_poles();
    ck_assert_int_eq(p.watched, !k);
    ck_assert_int_eq(p.watch[LEFT][q], !k);
    ck_assert_int_eq(p.origin[LEFT][q], true);
    ck_assert_int_eq(p.undefined, k);
    if (!k) {
      const eg_class fed = eg_class_of(st.g, st.map[LEFT][0]),
                     apart = eg_class_of(st.g, st.map[LEFT][other]);
      ck_assert(p.feeds[fed.i] && !p.feeds[apart.i]);
      /* Beside it, leaves have numbers that can be told apart on every other draw. */
      bool plain = false;
      for (size_t d = 0; d < p.n_draws; d++) {
        ck_assert(!st_poles_plain(&p, d, fed.i));
        plain |= st_poles_plain(&p, d, apart.i);
      }
      ck_assert(plain);
    }
    end();
  }
}
END_TEST

/* One side replaces it, the other does not: outputs are undefined on one side alone. */
START_TEST(outputs_that_are_undefined_on_one_side_are_told) {
  begin();
  for (int side = 0; side < 2; side++) {
    graph *g = graph_of(side);
    const uint32_t x = data(g), q = op(g, "aten::div.Tensor", v(x), v(x), NULL);
    output(g, "y", side ? q : op(g, "aten::nan_to_num", v(q), num(7), NULL));
  }
  find_poles();
  ck_assert(p.apart && p.undefined && p.watched);
  end();
}
END_TEST

/* First one pole everywhere, then rows of all kinds; all within what the leaf may hold. */
START_TEST(draws_are_poles_within_a_leafs_range) {
  begin();
  double pole;
  for (int side = 0; side < 2; side++)
    output(graph_of(side), "y", quotient(graph_of(side), 1, &pole));
  find_poles();
  rule_tensor *t = keep(make(SHAPE(5, 3)));
  const st_within any = {-INFINITY, INFINITY}, some = {1, 4};
  iso_rng rng = iso_rng_new(1, 1);
  for (size_t k = 0; k < p.n_one; k++) {
    st_poles_fill(&p, k, false, &rng, any, t);
    for (int64_t i = 0; i < t->numel; i++)
      ck_assert_double_eq(rule_tensor_get(t, i), p.value[k % p.n]);
  }
  bool seen[3] = {false};
  for (size_t k = p.n_one; k < p.n_draws; k++) {
    st_poles_fill(&p, k, false, &rng, some, t);
    for (int64_t i = 0; i < t->numel; i++) {
      const double x = rule_tensor_get(t, i);
      ck_assert(x == 1 || x == 2 || x == 3);
      seen[(int)x - 1] = true;
    }
  }
  ck_assert(seen[0] && seen[1] && seen[2]);
  /* Plain ones are no poles. */
  st_poles_fill(&p, p.n_one, true, &rng, any, t);
  for (int64_t i = 0; i < t->numel; i++) ck_assert(!has_pole(rule_tensor_get(t, i)));
  end();
}
END_TEST

/* A node that was watched is reached where a run gave it an infinity. */
START_TEST(a_pole_that_a_run_reached_is_noted) {
  for (int k = 0; k < 2; k++) {
    begin();
    rule_tensor **leaf[2];
    st_run run[2] = {0};
    for (int side = 0; side < 2; side++) {
      graph *g = graph_of(side);
      rule_tensor *t = noise(1, SHAPE(SIZE), 0, 1);
      if (k) rule_tensor_set(t, 2, 0);
      const uint32_t x = input(g, t);
      const uint32_t q = op(g, "aten::div.Tensor", v(x), v(x), NULL);
      output(g, "y", op(g, "aten::nan_to_num", v(q), num(7), NULL));
      ck_assert((leaf[side] = calloc(MAX_NODES, sizeof *leaf[side])) != NULL);
      leaf[side][x] = t;
    }
    find_poles();
    ck_assert_msg(st_run_both(&st, leaf, true, run, &err) == ISO_OK, "%s", err.msg);
    /* Where all inputs are one number, and there are no others, outputs agree by themselves. */
    st_poles_note(&p, p.n_one - 1, true, run);
    ck_assert_int_eq(p.reached, k);
    ck_assert_int_eq(p.none[LEFT][1], 0);
    const size_t mixed = p.n_one | 1; /* in each second draw, others are plain */
    st_poles_note(&p, mixed, true, run);
    ck_assert_int_eq(p.none[LEFT][1], k);
    ck_assert_int_eq(p.parted[LEFT][1], 0);
    st_poles_note(&p, mixed, false, run);
    ck_assert_int_eq(p.parted[LEFT][1], k);
    for (int side = 0; side < 2; side++) {
      st_run_free(&run[side]);
      free(leaf[side]);
    }
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("undefined");
  TCase *t = tcase_create("undefined");
  tcase_add_test(t, a_divisors_zero_is_a_number_to_look_at);
  tcase_add_test(t, a_divisor_that_cannot_be_zero_is_none);
  tcase_add_test(t, what_sees_undefined_numbers_is_watched);
  tcase_add_test(t, outputs_that_are_undefined_on_one_side_are_told);
  tcase_add_test(t, draws_are_poles_within_a_leafs_range);
  tcase_add_test(t, a_pole_that_a_run_reached_is_noted);
  suite_add_tcase(s, t);
  return run_suite(s);
}
