/* Where two graphs part: the operator at fault is named, once for each change, with its attribute
 * and a picture of the difference. */
#include "tests/synth/small_graphs.h"
#include "tests/support/suite.h"

START_TEST(another_operator_is_named) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b);
  const uint32_t l = add(&w.l, neg(&w.l, a), lb);
  output(&w.l, "y", neg(&w.l, relu(&w.l, l)));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b);
  const uint32_t r = mul(&w.r, neg(&w.r, c), rb);
  output(&w.r, "y", neg(&w.r, relu(&w.r, r)));
  expect(SYNTH_DIFFERENT);
  ck_assert(!w.res->redrawn);
  ck_assert_int_eq(w.res->divergence[0].left, l);
  ck_assert_int_eq(w.res->divergence[0].right, r);
  ck_assert(w.res->divergence[0].max_abs > 0);
}
END_TEST

START_TEST(another_attribute_is_named) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b);
  output(&w.l, "y", relu(&w.l, add(&w.l, a, lb)));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b);
  output(&w.r, "y", relu(&w.r, op(&w.r, "aten::add.Tensor", v(c), v(rb), num(2))));
  expect(SYNTH_DIFFERENT);
  ck_assert_int_eq(w.res->divergence[0].left, 2);
  ck_assert_int_eq(w.res->divergence[0].right, 2);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_str_eq(w.res->divergence[0].hint, "alpha is 1 on the left and 2 on the right");
}
END_TEST

START_TEST(one_change_in_two_places_is_named_once) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1),
              *e = noise(3, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b), le = weight(&w.l, "e", e);
  const uint32_t first = relu(&w.l, add(&w.l, a, lb)), second = relu(&w.l, add(&w.l, a, le));
  output(&w.l, "y", mul(&w.l, first, second));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b), re = weight(&w.r, "e", e);
  const uint32_t one = add(&w.r, c, rb);
  output(&w.r, "y", mul(&w.r, one, add(&w.r, c, re)));
  expect(SYNTH_DIFFERENT);
  ck_assert_uint_eq(w.res->n_divergences, 1);
  ck_assert_int_eq(w.res->divergence[0].left, first);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_str_eq(
      w.res->divergence[0].hint,
      iso_arena_printf(
          &w.arena, "on the left relu is applied, and on the right it is not; the same at \"%s\"",
          w.l.node[second].id));
}
END_TEST

/* relu(x * w), with what `more` makes of it on the left; the hint names what that does. */
static void lacks(uint32_t (*more)(graph *g, uint32_t x, uint32_t h), const char *hint) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *f = noise(2, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lh = relu(&w.l, mul(&w.l, a, weight(&w.l, "w", f)));
  output(&w.l, "y", relu(&w.l, more(&w.l, a, lh)));
  const uint32_t c = input(&w.r, x), rh = relu(&w.r, mul(&w.r, c, weight(&w.r, "w", f)));
  output(&w.r, "y", relu(&w.r, rh));
  expect(SYNTH_DIFFERENT);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_str_eq(w.res->divergence[0].hint, hint);
}

static uint32_t plus_input(graph *g, uint32_t x, uint32_t h) { return add(g, h, x); }
static uint32_t scaled(graph *g, uint32_t x, uint32_t h) { return mul(g, h, x); }
static uint32_t negated(graph *g, uint32_t x, uint32_t h) {
  (void)x;
  return neg(g, h);
}

START_TEST(what_one_side_does_besides_is_named) {
  lacks(plus_input, "on the left the residual \"x\" is added, and on the right it is not");
}
END_TEST
START_TEST(a_factor_besides_is_named) {
  lacks(scaled, "on the left it is multiplied by \"x\", and on the right it is not");
}
END_TEST
START_TEST(an_operator_besides_is_named) {
  lacks(negated, "on the left neg is applied, and on the right it is not");
}
END_TEST

START_TEST(where_tensors_differ_is_pictured) {
  rule_tensor *x = noise(1, SHAPE(2, 60, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  rule_tensor_set(b, 1, 0);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b), l = add(&w.l, a, lb);
  output(&w.l, "y", relu(&w.l, l));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b),
                 r = op(&w.r, "aten::add.Tensor", v(c), v(rb), num(2));
  output(&w.r, "y", relu(&w.r, r));
  expect(SYNTH_DIFFERENT);
  stands(0, l, SYNTH_ALONE);
  stands(1, r, SYNTH_ALONE);
  stands(1, r + 1, SYNTH_ALONE);
  const synth_divergence *d = &w.res->divergence[0];
  ck_assert_int_eq(d->at[0], l);
  ck_assert_int_eq(d->at[1], r);
  const synth_picture *p = d->picture;
  ck_assert_ptr_nonnull(p);
  /* 120 rows of 3 in 40 cells of 3 rows each; alpha is 2 instead of 1, so that they differ by b. */
  ck_assert_int_eq(p->n_rows, 120);
  ck_assert_int_eq(p->row_step, 3);
  ck_assert_uint_eq(p->rows, 40);
  ck_assert_uint_eq(p->columns, 3);
  ck_assert(!w.res->redrawn);
  for (uint32_t i = 0; i < p->rows * p->columns; i++)
    ck_assert_double_eq_tol((double)p->cell[i], fabs(rule_tensor_get(b, i % 3)), 1e-6);
  ck_assert_int_eq(p->n_differ, 240);
  ck_assert_double_eq_tol(fabs(p->left - p->right), d->max_abs, 1e-12);
  ck_assert_int_ne(p->index % 3, 1);
}
END_TEST

int main(void) {
  Suite *s = suite_create("divergence");
  TCase *t = tcase_create("divergence");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, another_operator_is_named);
  tcase_add_test(t, another_attribute_is_named);
  tcase_add_test(t, one_change_in_two_places_is_named_once);
  tcase_add_test(t, what_one_side_does_besides_is_named);
  tcase_add_test(t, a_factor_besides_is_named);
  tcase_add_test(t, an_operator_besides_is_named);
  tcase_add_test(t, where_tensors_differ_is_pictured);
  suite_add_tcase(s, t);
  return run_suite(s);
}
