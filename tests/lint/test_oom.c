/* Allocation failure at every n: reading and checking inputs of each kind. Each time ISO_NOMEM
 * comes back with one line, and nothing leaks. */
#define FAIL_ONLY_OURS
#include "tests/support/failalloc.h"

#include <check.h>
#include <string.h>

#include "lint/lint.h"
#include "tests/support/suite.h"

static const char *const inputs[] = {
    "tests/fuzz/corpus/lint/mesh.json",     "tests/fuzz/corpus/lint/hang.json",
    "tests/fuzz/corpus/lint/overlap.csv",   "tests/fuzz/corpus/lint/compute.csv",
    "tests/fuzz/corpus/lint/exchange.json", "tests/fuzz/corpus/lint/experts.json",
    "tests/fuzz/corpus/lint/dump-0.json",   "tests/fuzz/corpus/lint/dump-1.pickle",
};

static iso_code run(const char *path, iso_error *err) {
  lint_options o = lint_options_default();
  o.timeline = true;
  lint_report *r = NULL;
  const iso_code c = lint_run(&path, 1, &o, &r, err);
  lint_free(r);
  return c;
}

START_TEST(every_allocation) {
  const char *path = inputs[_i];
  iso_error err = {0};
  ck_assert_msg(run(path, &err) == ISO_OK, "%s", err.msg);
  long n = 0;
  for (bool failed = true; failed; n++) {
    const long live = fail_live;
    err = (iso_error){0};
    fail_arm(n);
    const iso_code c = run(path, &err);
    failed = fail_disarm();
    const long leaked = fail_live - live; /* before the assertions, which allocate */
    ck_assert_msg(c == (failed ? ISO_NOMEM : ISO_OK), "%s: allocation %ld: code %d: %s", path, n,
                  (int)c, err.msg);
    ck_assert_msg(!failed || (err.msg[0] && !strchr(err.msg, '\n')), "%s: allocation %ld: \"%s\"",
                  path, n, err.msg);
    ck_assert_msg(leaked == 0, "%s: %ld blocks leak with allocation %ld", path, leaked, n);
  }
  ck_assert_int_gt(n, 20);
}
END_TEST

int main(void) {
  Suite *s = suite_create("lint out of memory");
  TCase *t = tcase_create("oom");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, every_allocation, 0, (int)(sizeof inputs / sizeof *inputs));
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
