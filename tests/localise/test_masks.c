/* Masks that hide other places: the number that they are computed from is named where that alone
 * mends the outputs, and how many places they are. A side that works in parts leaves no step out.
 */
#include "tests/support/masked_operators.h"
#include "tests/support/suite.h"
#include "tests/synth/small_graphs.h"

enum { SIZE = 5 };

static uint32_t masked_step(graph *g, const char *name, const rule_term *a, const rule_term *b,
                            const rule_term *c) {
  uint32_t i;
  synth_node *n = new_node(g, &i);
  rule_tensor *bind[MAX_NODES] = {NULL};
  for (uint32_t k = 0; k < i; k++) bind[k] = g->value[k][0];
  n->kind = SYNTH_OP;
  n->call = call_of(name, (const rule_term *const[5]){a, b, c});
  n->op = n->call->u.s;
  ck_assert_msg((g->value[i][0] = run_masked(n->call, bind)) != NULL, "%s cannot run", n->op);
  keep(g->value[i][0]);
  n->shape = g->value[i][0]->shape;
  n->dtype = g->value[i][0]->dtype;
  return i;
}

typedef struct masked {
  uint32_t behind, before, fill; /* the two numbers, and where the scores are masked */
} masked;

/* The softmax of scores, hidden `behind` places behind their own and `before` before it. */
static masked window(graph *g, int64_t behind, int64_t before) {
  masked m;
  const uint32_t x = input(g, w.tensor[0]);
  const uint32_t j = masked_step(g, "aten::arange", num(SIZE), NULL, NULL),
                 i = masked_step(g, "aten::unsqueeze", v(j), num(1), NULL);
  m.behind = masked_step(g, "aten::sub.Tensor", v(j), num(behind), NULL);
  m.before = masked_step(g, "aten::sub.Tensor", v(i), num(before), NULL);
  const uint32_t later = masked_step(g, "aten::lt.Tensor", v(i), v(m.behind), NULL),
                 earlier = masked_step(g, "aten::lt.Tensor", v(j), v(m.before), NULL),
                 hidden = masked_step(g, "aten::logical_or", v(later), v(earlier), NULL);
  m.fill =
      masked_step(g, "aten::masked_fill.Scalar", v(x), v(hidden), rule_float(&w.arena, -INFINITY));
  output(g, "y", masked_step(g, "aten::softmax.int", v(m.fill), num(1), NULL));
  return m;
}

static void compare_masked(void) {
  const rule_oracle oracle = {.ctx = &w.oracle,
                              .call = masked_call,
                              .compare = masked_compare,
                              .decide = small_decide,
                              .same_numbers = small_numbers};
  iso_error err = {0};
  synth_result_free(w.res);
  w.res = NULL;
  const iso_code c =
      synth_compare(&w.l.g, &w.r.g, NULL, &oracle, w.schemas, &w.options, &w.res, &err);
  ck_assert_msg(c == ISO_OK, "%s", err.msg);
  ck_assert_int_eq(w.res->verdict, SYNTH_DIFFERENT);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
}

START_TEST(the_number_of_another_mask_is_named) {
  noise(1, SHAPE(SIZE, SIZE), 0, 1);
  (void)window(&w.l, 0, 1);
  const masked m = window(&w.r, 0, 2);
  compare_masked();
  ck_assert_int_eq(w.res->divergence[0].right, m.before);
  ck_assert_str_eq(w.res->divergence[0].hint,
                   "on the right other is 2, and would have to be 1; the right's mask shows 3 "
                   "places that the left's hides");
}
END_TEST

/* No change of one number mends two that are wrong. */
START_TEST(of_two_numbers_the_places_are_counted) {
  noise(1, SHAPE(SIZE, SIZE), 0, 1);
  const masked l = window(&w.l, 0, 1), r = window(&w.r, 2, 2);
  compare_masked();
  ck_assert_int_eq(w.res->divergence[0].left, l.fill);
  ck_assert_int_eq(w.res->divergence[0].right, r.fill);
  ck_assert_ptr_null(strstr(w.res->divergence[0].hint, "would have to be"));
  ck_assert_ptr_nonnull(strstr(w.res->divergence[0].hint, "the right's mask shows"));
}
END_TEST

static uint32_t part_of(graph *g, uint32_t x, int64_t from, int64_t to) {
  return step_by(g, call_of("aten::slice.Tensor",
                            (const rule_term *const[5]){v(x), num(0), num(from), num(to), num(1)}));
}

/* relu of a sum, in two parts on the right, of which one is multiplied by 2 behind that. */
START_TEST(a_side_that_works_in_parts_leaves_nothing_out) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b);
  output(&w.l, "y", neg(&w.l, relu(&w.l, add(&w.l, a, lb))));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b),
                 two = weight(&w.r, "2", constant(SHAPE(1), 2));
  uint32_t part[2];
  for (int k = 0; k < 2; k++)
    part[k] = neg(&w.r, relu(&w.r, add(&w.r, part_of(&w.r, c, 2 * k, 2 * k + 2), rb)));
  part[1] = mul(&w.r, part[1], two);
  const rule_term *both[] = {v(part[0]), v(part[1])};
  output(&w.r, "y", op(&w.r, "aten::cat", rule_list(&w.arena, both, 2), num(0), NULL));
  compare_masked();
  ck_assert_str_eq(w.res->divergence[0].hint,
                   "on the right it is multiplied by \"2\", and on the left it is not");
  ck_assert_int_eq(w.res->divergence[0].right, part[1]);
}
END_TEST

int main(void) {
  Suite *s = suite_create("masks");
  TCase *t = tcase_create("masks");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, the_number_of_another_mask_is_named);
  tcase_add_test(t, of_two_numbers_the_places_are_counted);
  tcase_add_test(t, a_side_that_works_in_parts_leaves_nothing_out);
  suite_add_tcase(s, t);
  return run_suite(s);
}
