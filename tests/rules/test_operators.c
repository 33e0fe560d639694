/* The table of operators: sorted, looked up by the dispatcher's names, and true to itself. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "rules/operators.h"

static const rule_operator *of(const char *op) { return rule_operator_of(op); }

START_TEST(names_are_sorted_and_found) {
  size_t n;
  const rule_operator *o = rule_operators(&n);
  for (size_t i = 0; i < n; i++) {
    char name[128];
    const bool plain = !strstr(o[i].name, "::") && !rule_is_getitem(o[i].name);
    snprintf(name, sizeof name, "%s%s", plain ? "aten::" : "", o[i].name);
    ck_assert_msg(i == 0 || strcmp(o[i - 1].name, o[i].name) < 0, "%s is out of order", name);
    ck_assert_msg(of(name) == &o[i], "%s is not found", name);
  }
  ck_assert_uint_gt(n, 450);
}
END_TEST

START_TEST(an_overload_without_a_line_is_its_operator) {
  ck_assert_str_eq(of("aten::gt.Scalar")->name, "gt");
  ck_assert_str_eq(of("aten::max.other")->name, "max");
  ck_assert_str_eq(of("aten::max.dim")->name, "max.dim");
  ck_assert_str_eq(of("_C::silu_and_mul.isomer")->name, "_C::silu_and_mul");
}
END_TEST

START_TEST(copies_and_special_functions_are_the_operators_they_are_named_after) {
  ck_assert_ptr_eq(of("aten::special_round"), of("aten::round"));
  ck_assert_ptr_eq(of("aten::view_copy"), of("aten::view"));
  ck_assert_ptr_eq(of("aten::select_copy.int"), of("aten::select.int"));
  ck_assert_ptr_ne(of("aten::lift_fresh_copy"), of("aten::lift_fresh"));
}
END_TEST

START_TEST(of_what_is_not_listed_nothing_is_known) {
  static const char *const names[] = {"mine::gt", "aten::gtx",   "gt",   "aten::getitem",  "aten::",
                                      "",         "aten::_copy", "a::b", "aten::special_", "::gt"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ck_assert_ptr_null(of(names[i])->name);
    ck_assert_int_eq(of(names[i])->choice, RULE_CHOICE_UNLISTED);
    ck_assert(!of(names[i])->exact && !of(names[i])->elementwise && of(names[i])->table == 0);
  }
}
END_TEST

/* Siblings name operators of the table, and know of one another. */
START_TEST(siblings_are_mutual) {
  size_t n;
  const rule_operator *o = rule_operators(&n);
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < RULE_MOST_SIBLINGS && o[i].sibling[k]; k++) {
      char name[128];
      bool back = false;
      snprintf(name, sizeof name, "aten::%s", o[i].sibling[k]);
      for (int j = 0; j < RULE_MOST_SIBLINGS && of(name)->sibling[j]; j++)
        back |= strcmp(of(name)->sibling[j], o[i].name) == 0;
      ck_assert_msg(back, "%s does not know its sibling %s", name, o[i].name);
    }
}
END_TEST

int main(void) {
  Suite *s = suite_create("operators");
  TCase *t = tcase_create("operators");
  tcase_add_test(t, names_are_sorted_and_found);
  tcase_add_test(t, an_overload_without_a_line_is_its_operator);
  tcase_add_test(t, copies_and_special_functions_are_the_operators_they_are_named_after);
  tcase_add_test(t, of_what_is_not_listed_nothing_is_known);
  tcase_add_test(t, siblings_are_mutual);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
