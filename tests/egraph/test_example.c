/* The example of egraph.h runs, and stands there word for word. */
int example_main(void);
#define main example_main
#include "example.c"
#include "tests/support/suite.h"
#undef main

#include <check.h>
#include <string.h>

START_TEST(example_succeeds) { ck_assert_int_eq(example_main(), 0); }
END_TEST

/* Each line of the example, behind the comment's margin. Tests run in the root of the repository.
 */
START_TEST(example_is_in_header) {
  FILE *h = fopen("egraph/egraph.h", "r"), *e = fopen("tests/egraph/example.c", "r");
  ck_assert_ptr_nonnull(h);
  ck_assert_ptr_nonnull(e);
  char want[512], have[512], line[512];
  do ck_assert_ptr_nonnull(fgets(have, sizeof have, h));
  while (!strstr(have, "Example (tests/egraph/example.c)"));
  ck_assert_ptr_nonnull(fgets(have, sizeof have, h));
  for (int k = 1; fgets(line, sizeof line, e); k++) {
    ck_assert_ptr_nonnull(fgets(have, sizeof have, h));
    snprintf(want, sizeof want, line[0] == '\n' ? " *%s" : " *   %s", line);
    ck_assert_msg(!strcmp(want, have), "line %d of the example", k);
  }
  ck_assert_ptr_nonnull(fgets(have, sizeof have, h));
  ck_assert_str_eq(have, " */\n");
  fclose(h);
  fclose(e);
}
END_TEST

int main(void) {
  Suite *s = suite_create("egraph example");
  TCase *t = tcase_create("example");
  tcase_add_test(t, example_succeeds);
  tcase_add_test(t, example_is_in_header);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
