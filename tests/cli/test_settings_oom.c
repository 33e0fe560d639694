/* Settings and allocation failure at every n: an error comes back and nothing leaks. */
#include "tests/support/failalloc.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cli/config/config.h"
#include "tests/support/suite.h"

static const char every[] =
    "a = \"x\"\nlist = ['one', 'two']\n[t.u]\nb = 1\nc = 1.5\nd = [\n]\n[v]\ne = true\n";

/* Check's assertions allocate: they come after fail_disarm. */
START_TEST(without_memory) {
  bool failed = true;
  int n = 0;
  for (; failed; n++) {
    const long alive = fail_live;
    toml t;
    iso_error err = {0};
    fail_arm(n);
    const iso_code c = toml_parse(every, strlen(every), "f", &t, &err);
    failed = fail_disarm();
    toml_free(&t);
    const long left = fail_live - alive;
    ck_assert_int_eq(c, failed ? ISO_NOMEM : ISO_OK);
    ck_assert_int_eq(left, 0);
  }
  ck_assert_int_gt(n, 5);
}
END_TEST

START_TEST(applies_without_memory) {
  static const char *const want[] = {"isomer", "compare", "--ops", "a.so", "--ops",
                                     "b.so",   "--seed",  "1",     "l",    "r"};
  char *argv[] = {"isomer", "compare", "--seed", "1", "l", "--no-config", "r", NULL};
  bool failed = true;
  int n = 0;
  setenv("ISOMER_OPS", "a.so:b.so", 1);
  for (; failed; n++) {
    const long alive = fail_live;
    config_args a;
    iso_error err = {0};
    fail_arm(n);
    const iso_code c = config_apply(7, argv, &a, &err);
    failed = fail_disarm();
    bool same = a.argc == 10 && a.argv && !a.argv[10];
    for (int i = 0; i < 10 && same; i++) same = strcmp(a.argv[i], want[i]) == 0;
    config_free(&a);
    const long left = fail_live - alive;
    ck_assert_int_eq(c, failed ? ISO_NOMEM : ISO_OK);
    ck_assert(failed || same);
    ck_assert_int_eq(left, 0);
  }
  ck_assert_int_gt(n, 3);
}
END_TEST

int main(void) {
  Suite *s = suite_create("settings, memory");
  TCase *t = tcase_create("settings");
  tcase_add_test(t, without_memory);
  tcase_add_test(t, applies_without_memory);
  suite_add_tcase(s, t);
  return run_suite(s);
}
