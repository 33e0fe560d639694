/* Zeros of two signs are one constant unless something reads the sign: what divides by them does,
 * also behind steps that keep it; what adds them to an input does not. */
#include "synth/constants/constants.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { SIZE = 3 };

static void add_constant(int side, uint32_t i) {
  add_atom(side, i);
  rec *r = &st.rec[st.map[side][i].i];
  r->konst = r->leaf = true;
  r->n_out = 1;
  ck_assert((r->cval = calloc(st.n_kept, sizeof *r->cval)) != NULL);
  r->cval[0] = rule_tensor_ref(graph_of(side)->value[i][0]);
}

typedef enum use { NOTHING, DIVISOR, NEGATED, SUM, TIMES, DIVIDEND, USES } use;
static const bool tells[USES] = {[DIVISOR] = true, [NEGATED] = true, [TIMES] = true};

/* A table with a zero of this sign, and what one side makes of it. */
static void make_side(int side, double zero, use how) {
  graph *g = graph_of(side);
  rule_tensor *t = noise(1, SHAPE(SIZE), 0, 1);
  rule_tensor_set(t, 1, zero);
  const uint32_t x = weight(g, "c", t), y = input(g, noise(2, SHAPE(SIZE), 3, 1));
  uint32_t z = x;
  if (how == NEGATED) z = neg(g, x);
  if (how == SUM) z = add(g, x, y);
  if (how == TIMES) z = mul(g, x, y);
  if (how == DIVIDEND) z = op(g, "aten::div.Tensor", v(x), v(y), NULL);
  else if (how != NOTHING) z = op(g, "aten::div.Tensor", v(y), v(z), NULL);
  output(g, "y", z);
  add_constant(side, x);
  add_atom(side, y);
  for (uint32_t i = y + 1; i < g->g.n_nodes; i++) {
    ck_assert(st_add_term(&st, g->node[i].call, st.map[side], &st.map[side][i], &err) == ISO_OK);
    st.rec[st.map[side][i].i].node[side] = (int32_t)i;
  }
}

static bool told(void) { return st_zeros_told(&st, st.map[LEFT][0], st.map[RIGHT][0]); }

START_TEST(signs_of_zeros_are_told_where_something_divides_by_them) {
  for (int l = 0; l < USES; l++)
    for (int r = 0; r < USES; r++) {
      begin_state();
      make_side(LEFT, 0.0, (use)l);
      make_side(RIGHT, -0.0, (use)r);
      ck_assert_msg(told() == (tells[l] || tells[r]), "%d %d", l, r);
      end_state();
    }
}
END_TEST

/* Zeros of one sign are one constant whatever reads them. */
START_TEST(zeros_of_one_sign_are_one) {
  for (int how = 0; how < USES; how++)
    for (int k = 0; k < 2; k++) {
      begin_state();
      make_side(LEFT, k ? -0.0 : 0.0, (use)how);
      make_side(RIGHT, k ? -0.0 : 0.0, (use)how);
      ck_assert(!told());
      end_state();
    }
}
END_TEST

int main(void) {
  Suite *s = suite_create("signs");
  TCase *t = tcase_create("signs");
  tcase_add_test(t, signs_of_zeros_are_told_where_something_divides_by_them);
  tcase_add_test(t, zeros_of_one_sign_are_one);
  suite_add_tcase(s, t);
  return run_suite(s);
}
