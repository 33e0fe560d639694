/* Rules with open sizes, from files: the true ones are proved, near misses ("no-...") never. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/validate.h"

static rule_set *load(const char *path) {
  rule_set *set = NULL;
  iso_error err = {ISO_OK, ""};
  ck_assert_msg(rule_set_load(path, &set, &err) == ISO_OK, "%s", err.msg);
  return set;
}

static rule_verdict prove(const rule *r) {
  rule_schemas *schemas = NULL;
  rule_verdict v = {.status = RULE_REFUTED};
  iso_error err = {ISO_OK, ""};
  ck_assert_int_eq(rule_schemas_new(&schemas, &err), ISO_OK);
  ck_assert_msg(val_prove(r, schemas, 5000000, &v, &err) == ISO_OK, "%s: %s", r->name, err.msg);
  rule_schemas_free(schemas);
  if (getenv("PROVE_VERBOSE")) fprintf(stderr, "%s: %s [%s] %s\n", r->name, rule_status_name(v.status), v.method, v.reason);
  return v;
}

/* Names that stand in the file to be proved one day. */
static const char *const files[] = {"layout", "elementwise", "reduce", "contract"};

START_TEST(true_rules_are_proved_and_near_misses_are_not) {
  char path[200];
  snprintf(path, sizeof path, "tests/validate/rules/%s.rules", files[_i]);
  rule_set *set = load(path);
  size_t n_true = 0, n_proved = 0;
  for (size_t i = 0; i < rule_set_count(set); i++) {
    const rule *r = rule_set_at(set, i);
    const rule_verdict v = prove(r);
    const bool proved = v.status == RULE_PROVED;
    if (strncmp(r->name, "no-", 3) == 0) {
      ck_assert_msg(!proved, "%s: %s is proved (%s)", path, r->name, v.method);
      ck_assert_msg(v.reason[0] != 0, "%s: %s: no reason", path, r->name);
      continue;
    }
    n_true++;
    n_proved += proved;
    if (!proved) fprintf(stderr, "%s: %s: %s\n", path, r->name, v.reason);
  }
  ck_assert_msg(10 * n_proved >= 9 * n_true, "%s: %zu of %zu true rules proved", path, n_proved, n_true);
  rule_set_free(set);
}
END_TEST

START_TEST(the_papers_rules_hold_for_all_sizes) {
  rule_set *set = load("rules/paper.rules");
  ck_assert_uint_ge(rule_set_count(set), 11);
  for (size_t i = 0; i < rule_set_count(set); i++) {
    const rule *r = rule_set_at(set, i);
    const rule_verdict v = prove(r);
    ck_assert_msg(v.status == RULE_PROVED, "%s: %s", r->name, v.reason);
    ck_assert_int_ge((int)v.scope, (int)RULE_THESE_RANKS);
  }
  rule_set_free(set);
}
END_TEST

int main(void) {
  Suite *s = suite_create("prove_rules");
  TCase *t = tcase_create("prove_rules");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, true_rules_are_proved_and_near_misses_are_not, 0, (int)(sizeof files / sizeof *files));
  tcase_add_test(t, the_papers_rules_hold_for_all_sizes);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
