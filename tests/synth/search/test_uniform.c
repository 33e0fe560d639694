/* Which tensors are asked to be a fill: those that are one number everywhere, on every draw, that
 * their dtype has. */
#include <float.h>

#include "synth/search/search.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { DRAWS = 2, SIZE = 3 };

/* A step of the left graph whose value is `x` everywhere. */
static eg_node step_of(double x, rule_dtype dtype, int64_t size) {
  graph *g = graph_of(LEFT);
  rule_tensor *t = keep(make_as(dtype, SHAPE(size)));
  for (int64_t i = 0; i < size; i++) rule_tensor_set(t, i, x);
  const uint32_t from = input(g, t), i = neg(g, from);
  const eg_node e = add_leaf(t);
  st.map[LEFT][from] = st.map[LEFT][i] = e;
  g->node[i].dtype = dtype;
  st.rec[e.i].leaf = st.rec[e.i].atom = false;
  st.rec[e.i].node[LEFT] = (int32_t)i;
  return e;
}

static void begin(void) {
  begin_terms();
  st.n_draws = DRAWS;
  st.search.apart = true; /* no rule is looked for, it is only counted that one was asked for */
}

static bool asks(eg_node e) {
  const size_t before = result.n_candidates;
  ck_assert_msg(st_join_fill(&st, e, &err) == ISO_OK, "%s", err.msg);
  return result.n_candidates > before;
}

START_TEST(one_number_everywhere_is_asked_for) {
  begin();
  const eg_node e = step_of(0.25, RULE_F64, SIZE);
  ck_assert(asks(e));
  /* The fill of its shape and number is there now, with values equal to its own. */
  bool there = false;
  for (uint32_t i = 0; i < st.n_rec; i++)
    there |= i != e.i && st.rec[i].tensor && st.rec[i].valued &&
             strcmp(eg_symbol_name(st.g, eg_node_symbol(st.g, (eg_node){i})), "aten::full") == 0 &&
             rule_shape_eq(&st.rec[i].shape, &st.rec[e.i].shape) &&
             st_values_equal(&st, e, (eg_node){i});
  ck_assert(there);
  end_state();
}
END_TEST

START_TEST(an_element_that_differs_on_some_draw_is_enough_to_leave_it) {
  for (size_t d = 0; d < DRAWS; d++)
    for (int64_t i = 0; i <= SIZE; i++) {
      begin();
      const eg_node e = step_of(1, RULE_F64, SIZE);
      rule_tensor *other = constant(SHAPE(SIZE), 1);
      if (i < SIZE) rule_tensor_set(other, i, 1 + DBL_EPSILON);
      rule_tensor_unref(st.rec[e.i].val[d]);
      st.rec[e.i].val[d] = rule_tensor_ref(other);
      ck_assert_int_eq(asks(e), i == SIZE);
      end_state();
    }
}
END_TEST

/* One number everywhere on each draw, and not the same. */
START_TEST(a_number_of_each_draw_is_none) {
  begin();
  const eg_node e = step_of(1, RULE_F64, SIZE);
  rule_tensor_unref(st.rec[e.i].val[1]);
  st.rec[e.i].val[1] = rule_tensor_ref(constant(SHAPE(SIZE), 2));
  ck_assert(!asks(e));
  end_state();
}
END_TEST

/* A step that was captured in this dtype. */
static bool asks_in(rule_dtype dtype, double x) {
  begin();
  const eg_node e = step_of(x, RULE_F64, SIZE);
  graph_of(LEFT)->node[st.rec[e.i].node[LEFT]].dtype = dtype;
  const bool yes = asks(e);
  end_state();
  return yes;
}

START_TEST(a_dtype_has_numbers_up_to_its_largest) {
  static const struct {
    rule_dtype dtype;
    double largest;
  } has[] = {{RULE_F64, DBL_MAX}, {RULE_F32, FLT_MAX}, {RULE_F16, 65504}, {RULE_BF16, 0x1.fep127}};
  for (size_t k = 0; k < sizeof has / sizeof *has; k++)
    for (int sign = -1; sign <= 1; sign += 2) {
      const rule_dtype d = has[k].dtype;
      const double next = nextafter(has[k].largest, INFINITY);
      ck_assert(asks_in(d, sign * has[k].largest));
      ck_assert_int_eq(asks_in(d, sign * next),
                       isinf(next) != 0); /* infinity is a number of each */
      ck_assert(asks_in(d, sign * (double)INFINITY));
    }
}
END_TEST

/* A number alone, integers, and tensors that are no steps on numbers of the inputs. */
START_TEST(other_tensors_are_left) {
  for (int k = 0; k < 7; k++) {
    begin();
    const eg_node e = step_of(0, k == 1 ? RULE_I64 : RULE_F64, k == 0 ? 1 : SIZE);
    rec *r = &st.rec[e.i];
    if (k == 2) r->konst = true;
    if (k == 3) r->leaf = true;
    if (k == 4) r->param = true;
    if (k == 5) r->cancels = true;
    ck_assert_int_eq(asks(e), k == 6);
    end_state();
  }
}
END_TEST

/* One of neither graph, a constant, too. */
START_TEST(a_made_tensor_is_asked_for_by_its_values_alone) {
  for (int k = 0; k < 3; k++) {
    begin();
    const eg_node e = add_leaf(constant(SHAPE(SIZE), 3));
    if (k == 1) rule_tensor_set(st.rec[e.i].val[0], SIZE - 1, 4);
    if (k == 2) st.rec[e.i].konst = true;
    ck_assert(st_join_fill_made(&st, e, &err) == ISO_OK);
    ck_assert_uint_eq(result.n_candidates, k != 1);
    end_state();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("uniform");
  TCase *t = tcase_create("uniform");
  tcase_add_test(t, one_number_everywhere_is_asked_for);
  tcase_add_test(t, an_element_that_differs_on_some_draw_is_enough_to_leave_it);
  tcase_add_test(t, a_number_of_each_draw_is_none);
  tcase_add_test(t, a_dtype_has_numbers_up_to_its_largest);
  tcase_add_test(t, other_tensors_are_left);
  tcase_add_test(t, a_made_tensor_is_asked_for_by_its_values_alone);
  suite_add_tcase(s, t);
  return run_suite(s);
}
