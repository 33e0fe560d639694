/* The hints for two places that differ, and the steps of a region that are right all the same: each
 * with a truth known by construction. */
#include "tests/localise/small_parting.h"
#include "tests/support/suite.h"

/* ---- values ---- */

enum made { SIGN, FACTOR, OFFSET, POWER, ORDER, OTHER, MADES };

/* `a` made into another tensor in one way; in `by` the number. */
static rule_tensor *made_of(const rule_tensor *a, enum made how, iso_rng *rng, double *by) {
  rule_tensor *b = keep(reshaped(a, a->shape));
  *by = how == SIGN     ? -1
        : how == OFFSET ? (double)iso_rng_below(rng, 40) / 8 - 2.5 + 0.0625
        : how == POWER  ? 0.5 + (double)iso_rng_below(rng, 4) * 0.75
                        : 1.5 + (double)iso_rng_below(rng, 9) / 4;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i);
    rule_tensor_set(b, i,
                    how == SIGN     ? -x
                    : how == FACTOR ? *by * x
                    : how == OFFSET ? x + *by
                    : how == POWER  ? pow(x, *by)
                    : how == ORDER  ? rule_tensor_get(a, a->numel - 1 - i)
                                    : iso_rng_normal(rng));
  }
  return b;
}

START_TEST(one_number_that_explains_two_values_is_said) {
  for (uint64_t seed = 0; seed < 600; seed++) {
    const enum made how = (enum made)(seed % MADES);
    iso_rng rng = iso_rng_new(seed, 6);
    double by;
    char want[100] = "";
    begin();
    rule_tensor *a = positive(seed, SHAPE(3, 4), 1), *b = made_of(a, how, &rng, &by);
    if (how == SIGN) snprintf(want, sizeof want, "the right has the other sign");
    if (how == FACTOR) snprintf(want, sizeof want, "the right is %.9g times the left", by);
    if (how == OFFSET)
      snprintf(want, sizeof want, "the right is the left %c %.9g", by < 0 ? '-' : '+', fabs(by));
    if (how == POWER)
      snprintf(want, sizeof want,
               "the right is the left to the power %.6g, as frequencies of another base are", by);
    if (how == ORDER)
      snprintf(want, sizeof want, "the right has the elements of the left in another order");
    const char *hint = lo_value_hint(&p, a, b);
    if (how == OTHER) ck_assert_ptr_null(hint);
    else ck_assert_msg(hint && !strcmp(hint, want), "seed %d: %s, not %s", (int)seed, hint, want);
    /* One element that is otherwise, and no number explains it. */
    const int64_t i = (int64_t)(seed % 12);
    rule_tensor_set(b, i, rule_tensor_get(b, i) * 1.5 + 0.25);
    ck_assert_ptr_null(lo_value_hint(&p, a, b));
    end();
  }
}
END_TEST

START_TEST(nothing_is_said_of_what_cannot_be_compared) {
  static const double odd[] = {NAN, INFINITY, -INFINITY, 1e30};
  begin();
  rule_tensor *a = positive(1, SHAPE(3, 4), 1), *b = keep(reshaped(a, SHAPE(3, 1, 4)));
  for (int64_t i = 0; i < 12; i++) rule_tensor_set(b, i, 2 * rule_tensor_get(a, i));
  ck_assert_str_eq(lo_value_hint(&p, a, b), "the right is 2 times the left");
  ck_assert_ptr_null(lo_value_hint(&p, a, keep(reshaped(b, SHAPE(12)))));
  ck_assert_ptr_null(lo_value_hint(&p, a, keep(make(SHAPE(3, 3)))));
  ck_assert(!lo_value_hint(&p, NULL, b) && !lo_value_hint(&p, a, NULL));
  rule_tensor *one = constant(SHAPE(1), 2), *whole = keep(make_as(RULE_I64, SHAPE(2)));
  ck_assert(!lo_value_hint(&p, one, one) && !lo_value_hint(&p, whole, whole));
  ck_assert_ptr_null(lo_value_hint(&p, a, constant(SHAPE(3, 4), 0)));
  for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
    rule_tensor *bad = keep(reshaped(b, a->shape));
    rule_tensor_set(bad, 5, odd[k]);
    ck_assert(!lo_value_hint(&p, a, bad) && !lo_value_hint(&p, bad, a));
  }
  end();
}
END_TEST

/* ---- operators ---- */

/* Both sides read the same two tensors; then a call on each. Returns: the hint for these. */
static const char *hint_of(const char *left, const char *right, const rule_term *const arg[2][3]) {
  static synth_divergence d;
  for (int side = 0; side < 2; side++)
    d = (synth_divergence){.left = 2, .right = 2},
    op(graph_of(side), side ? right : left, arg[side][0], arg[side][1], arg[side][2]);
  place_all();
  return lo_hint(&p, &d, lo_value(&p, LEFT, 2), lo_value(&p, RIGHT, 2));
}

static void two_leaves(bool exchanged) {
  begin();
  rule_tensor *t[] = {positive(1, SHAPE(4, 3), 1), positive(2, SHAPE(4, 3), 1)};
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < 2; i++)
      weight(graph_of(side), i ? "b" : "a", t[side && exchanged ? 1 - i : i]);
}

START_TEST(an_attribute_two_arguments_or_an_operator_is_said) {
  two_leaves(false);
  const rule_term *times[2][3] = {{v(0), v(1), num(1)}, {v(0), v(1), num(3)}};
  ck_assert_str_eq(hint_of("aten::add.Tensor", "aten::add.Tensor", times),
                   "alpha is 1 on the left and 3 on the right");
  ck_assert_int_eq(lo_attribute_apart(&p, &w.l.node[2], &w.r.node[2]), 2);
  ck_assert_int_eq(lo_attribute_apart(&p, &w.l.node[2], &w.l.node[2]), -1);
  ck_assert_int_eq(lo_attribute_apart(&p, &w.l.node[2], &w.r.node[1]), -1);
  end();
  two_leaves(true); /* over other tensors it is no attribute alone */
  const rule_term *more[2][3] = {{v(0), v(1), num(1)}, {v(0), v(1), num(3)}};
  hint_of("aten::add.Tensor", "aten::add.Tensor", more);
  ck_assert_int_eq(lo_attribute_apart(&p, &w.l.node[2], &w.r.node[2]), -1);
  p.gap = true; /* where no rule joined them, values are not looked at */
  ck_assert_int_eq(lo_attribute_apart(&p, &w.l.node[2], &w.r.node[2]), 2);
  end();
  two_leaves(false);
  const rule_term *turned[2][3] = {{v(0), v(1)}, {v(1), v(0)}};
  ck_assert_str_eq(hint_of("aten::div.Tensor", "aten::div.Tensor", turned),
                   "self and other are exchanged");
  end();
  two_leaves(true);
  const rule_term *same[2][3] = {{v(0), v(1)}, {v(1), v(0)}};
  const char *none = hint_of("aten::div.Tensor", "aten::div.Tensor", same);
  ck_assert(!none || !strstr(none, "exchanged"));
  end();
  two_leaves(false);
  const rule_term *plus[2][3] = {{v(0), v(1), num(1)}, {v(0), v(1)}};
  ck_assert_str_eq(hint_of("aten::add.Tensor", "aten::div.Tensor", plus),
                   "aten::add.Tensor on the left, aten::div.Tensor on the right");
  end();
}
END_TEST

/* A dimension counted from the front is the same one where a tensor has one more before it. */
START_TEST(a_dimension_counted_from_the_end_is_no_other_attribute) {
  for (int ones = 0; ones < 2; ones++)
    for (int64_t a = 0; a < 3; a++)
      for (int64_t b = 0; b < 3 + ones; b++) {
        begin();
        rule_tensor *t = positive(1, SHAPE(4, 3), 1);
        input(&w.l, t);
        input(&w.r, ones ? keep(reshaped(t, SHAPE(1, 4, 3))) : t);
        op(&w.l, "aten::unsqueeze", v(0), num(a), NULL);
        op(&w.r, "aten::unsqueeze", v(0), num(b), NULL);
        place_all();
        ck_assert_int_eq(lo_attribute_apart(&p, &w.l.node[1], &w.r.node[1]),
                         a == b || b == a + ones ? -1 : 1);
        end();
      }
}
END_TEST

START_TEST(a_leaf_without_a_counterpart_is_said_with_its_first_reader) {
  for (int side = 0; side < 2; side++)
    for (int wrong = 0; wrong < 2; wrong++) {
      synth_divergence d = {.left = 0, .right = 0};
      begin();
      graph *g = graph_of(side), *h = graph_of(!side);
      const uint32_t x = weight(g, "table", positive(1, SHAPE(3), 1));
      neg(g, neg(g, x));
      relu(h, input(h, positive(2, SHAPE(3), 1)));
      place_all();
      st.map[side][1].i = EG_NONE; /* what no output needs is no reader */
      neg(g, x);
      place(side, 3);
      *(side ? &d.left : &d.right) = 1;
      if (wrong) st.ranks.part[side][0] = PART_WRONG;
      ck_assert_int_eq(lo_consumer(&st, side, x), 3);
      ck_assert_int_eq(lo_consumer(&st, side, 3), 3);
      const char *hint = lo_hint(&p, &d, NULL, NULL), *id = g->node[3].id, *want;
      if (wrong)
        want = iso_arena_printf(
            &w.arena, "table is not the part that its rank should hold; first used by \"%s\"", id);
      else
        want = iso_arena_printf(&w.arena,
                                "no leaf of the %s has the values of table; first used by \"%s\"",
                                side ? "left" : "right", id);
      ck_assert_str_eq(hint, want);
      end();
    }
}
END_TEST

START_TEST(a_cast_that_drops_the_imaginary_part_is_said) {
  for (int side = 0; side < 2; side++)
    for (int both = 0; both < 2; both++) {
      synth_divergence d = {.left = 1, .right = 1};
      begin();
      for (int at = 0; at < 2; at++) {
        graph *g = graph_of(at);
        const rule_term *arg = v(input(g, positive(1, SHAPE(3), 1)));
        const uint32_t y = neg(g, 0);
        if (at == side || both) {
          g->node[0].dtype = RULE_C64;
          g->node[y].op = "aten::_to_copy";
          g->node[y].call = rule_op(&w.arena, "aten::_to_copy", &arg, 1);
        }
      }
      place_all();
      const char *hint = lo_hint(&p, &d, NULL, NULL);
      if (both) ck_assert_ptr_null(hint);
      else
        ck_assert_str_eq(hint, side ? "on the right the cast leaves the imaginary part out"
                                    : "on the left the cast leaves the imaginary part out");
      end();
    }
}
END_TEST

/* ---- leaves with one another's values ---- */

/* Parameters a, b, c of both sides; each left one is joined with the right one at `with`. */
START_TEST(leaves_with_one_anothers_values_are_named) {
  static const uint32_t order[][3] = {{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {2, 1, 0}, {1, 2, 0}};
  static const char *const name[] = {"a", "b", "c"};
  for (size_t k = 0; k < sizeof order / sizeof *order; k++)
    for (int near = 0; near < 2; near++) {
      synth_divergence d = {.left = -1, .right = -1};
      begin();
      for (int side = 0; side < 2; side++) {
        graph *g = graph_of(side);
        for (uint64_t i = 0; i < 3; i++) weight(g, name[i], positive(i, SHAPE(3), 1));
        mul(g, add(g, add(g, 0, 1), 2), 0);
        neg(g, input(g, positive(9, SHAPE(3), 1)));
      }
      place_all();
      for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < 3; i++) st.rec[st.map[side][i].i].leaf = true;
      for (uint32_t i = 0; i < 3; i++) unite(i, order[k][i]);
      const int64_t root[] = {near ? 5 : 7, near ? 5 : 7};
      const bool found = lo_exchanged_leaves(&p, root, &d);
      ck_assert_int_eq(found, near && k > 0 && k < 4);
      if (found) {
        uint32_t first = 0;
        while (order[k][first] == first) first++;
        ck_assert_str_eq(d.hint, iso_arena_printf(&w.arena, "the values of %s and %s are exchanged",
                                                  name[first], name[order[k][first]]));
        ck_assert(d.left == first && d.right == first);
      }
      end();
    }
}
END_TEST

/* ---- remembered changes ---- */

START_TEST(a_change_is_remembered_once_and_no_more_than_eight_are) {
  begin();
  const rule_term *one = num(1), *two = num(2), *again = num(1);
  const lo_change c[] = {{LEFT, "aten::add", 2, one, two},  {RIGHT, "aten::add", 2, one, two},
                         {LEFT, "aten::mul", 2, one, two},  {LEFT, "aten::add", 1, one, two},
                         {LEFT, "aten::add", 2, two, one},  {LEFT, "aten::add", 2, two, two},
                         {LEFT, "aten::add", 2, one, NULL}, {LEFT, "aten::neg", 0, one, two},
                         {LEFT, "aten::abs", 0, one, two},  {LEFT, NULL, 0, one, two}};
  const lo_change same = {LEFT, "aten::add", 2, again, two};
  lo_remember(&p, &c[9]);
  ck_assert_uint_eq(p.n_changes, 0);
  for (size_t i = 0; i < 9; i++) {
    lo_remember(&p, &c[i]);
    lo_remember(&p, &same);
    lo_remember(&p, &c[i]);
    ck_assert_uint_eq(p.n_changes, i < 8 ? i + 1 : 8);
    if (i < 8) ck_assert_str_eq(p.change[i].op, c[i].op);
  }
  end();
}
END_TEST

START_TEST(how_far_two_values_are_apart_is_measured) {
  for (int gap = 0; gap < 2; gap++) {
    synth_divergence d = {0};
    const int64_t at[] = {0, 0};
    begin();
    rule_tensor *x = positive(1, SHAPE(4, 3), 1), *y = keep(reshaped(x, x->shape));
    rule_tensor_set(y, 7, rule_tensor_get(x, 7) + 0.5);
    input(&w.l, x);
    input(&w.r, y);
    place_all();
    p.gap = gap;
    ck_assert(lo_measure(&p, at, &d, &err) == ISO_OK);
    ck_assert_double_eq_tol(d.max_abs, 0.5, 1e-12);
    ck_assert(d.index == 7 && d.max_rel > 0 && rule_shape_eq(&d.shape, &x->shape));
    ck_assert((d.picture == NULL) == (gap == 1) && d.at[LEFT] == 0 && d.at[RIGHT] == 0);
    end();
  }
}
END_TEST

/* ---- steps that are right all the same ---- */

/* x is in the region; so are steps over it, one of which another one outside of it reads. */
START_TEST(what_is_read_rightly_from_outside_is_sound) {
  for (int side = 0; side < 2; side++)
    for (int how = 0; how < 6; how++) {
      bool any = true;
      begin();
      graph *g = graph_of(side);
      const uint32_t x = input(g, positive(1, SHAPE(4, 3), 1)), y = neg(g, x), z = neg(g, y),
                     out = how == 1   ? op(g, "aten::transpose.int", v(z), num(0), num(1))
                           : how == 2 ? op(g, "aten::unsqueeze", v(z), num(0), NULL)
                                      : add(g, z, x);
      for (uint32_t i = 0; i <= out; i++) place(side, i);
      for (uint32_t i = 0; i < out; i++) p.seen[side][i] = i == z ? 2 : 1;
      if (how == 1) g->node[out].op = "aten::slice.Tensor"; /* a part may be right by itself */
      if (how == 3) p.seen[side][out] = 1;
      if (how == 4) g->node[out].dtype = RULE_BOOL;
      if (how == 5) st.map[side][out].i = EG_NONE;
      ck_assert(lo_find_sound(&p, side, &any, &err) == ISO_OK);
      const bool right = how == 0 || how == 2;
      ck_assert_msg(any == right && p.sound[side][z] == right, "%d", how);
      ck_assert(!p.sound[side][x] && !p.sound[side][y] && !p.sound[side][out]);
      end();
    }
}
END_TEST

int main(void) {
  Suite *s = suite_create("hints");
  TCase *t = tcase_create("hints");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, one_number_that_explains_two_values_is_said);
  tcase_add_test(t, nothing_is_said_of_what_cannot_be_compared);
  tcase_add_test(t, an_attribute_two_arguments_or_an_operator_is_said);
  tcase_add_test(t, a_dimension_counted_from_the_end_is_no_other_attribute);
  tcase_add_test(t, a_leaf_without_a_counterpart_is_said_with_its_first_reader);
  tcase_add_test(t, a_cast_that_drops_the_imaginary_part_is_said);
  tcase_add_test(t, leaves_with_one_anothers_values_are_named);
  tcase_add_test(t, a_change_is_remembered_once_and_no_more_than_eight_are);
  tcase_add_test(t, how_far_two_values_are_apart_is_measured);
  tcase_add_test(t, what_is_read_rightly_from_outside_is_sound);
  suite_add_tcase(s, t);
  return run_suite(s);
}
