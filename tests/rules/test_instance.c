/* A rule at values of its names: everything is a number, or there is no instance. */
#include <check.h>
#include <stdlib.h>

#include "rules/rules.h"
#include "tests/support/suite.h"

static const char text[] = "(rule r (var x f (N (* 2 K))) (attr s float)\n"
                           "  (lhs (aten::mul.Scalar (aten::slice.Tensor x 1 0 (* 2 K) 1) s))\n"
                           "  (rhs (aten::mul.Scalar x s)) (where (= (* 2 s) 1)))";

typedef struct trial {
  rule_set *set;
  iso_arena a;
  rule at;
  bool whole;
} trial;

static void try_at(trial *t, uint32_t n, double s) {
  static const char *const name[] = {"N", "K", "s"};
  iso_error err = {0};
  t->set = NULL;
  iso_arena_init(&t->a);
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "t", &t->set, &err) == ISO_OK, "%s", err.msg);
  const rule_term *value[] = {rule_int(&t->a, 3), rule_int(&t->a, 4), rule_float(&t->a, s)};
  const rule *r = rule_set_at(t->set, 0);
  const rule_assignment v = {n, name, value, 0};
  ck_assert(rule_at(r, &v, &t->a, &t->at, &t->whole, &err) == ISO_OK);
}

static void done(trial *t) {
  iso_arena_fini(&t->a);
  rule_set_free(t->set);
}

START_TEST(names_become_numbers) {
  trial t;
  try_at(&t, 3, 0.5);
  ck_assert(t.whole);
  ck_assert_uint_eq(t.at.n_attrs + t.at.n_where, 0);
  ck_assert_int_eq(t.at.var[0].dim[0]->u.i, 3);
  ck_assert_int_eq(t.at.var[0].dim[1]->u.i, 8);
  ck_assert_int_eq(t.at.lhs->child[0]->child[3]->u.i, 8);
  ck_assert(t.at.rhs->child[1]->u.f == 0.5);
  done(&t);
}
END_TEST

START_TEST(a_condition_that_does_not_hold_leaves_no_instance) {
  trial t;
  try_at(&t, 3, 0.25);
  ck_assert(!t.whole);
  done(&t);
  try_at(&t, 3, 0.5 + 1e-12); /* nearly is not as it is */
  ck_assert(!t.whole);
  done(&t);
}
END_TEST

START_TEST(a_name_without_a_value_leaves_no_instance) {
  trial t;
  try_at(&t, 2, 0.5);
  ck_assert(!t.whole);
  done(&t);
}
END_TEST

int main(void) {
  Suite *s = suite_create("instance");
  TCase *c = tcase_create("instance");
  tcase_add_test(c, names_become_numbers);
  tcase_add_test(c, a_condition_that_does_not_hold_leaves_no_instance);
  tcase_add_test(c, a_name_without_a_value_leaves_no_instance);
  suite_add_tcase(s, c);
  return run_suite(s);
}
