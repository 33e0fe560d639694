/* The end of a test program's main. */
#ifndef TESTS_SUPPORT_SUITE_H
#define TESTS_SUPPORT_SUITE_H

#include <check.h>

static inline int run_suite_as(Suite *s, enum fork_status how) {
  SRunner *r = srunner_create(s);
  if (how == CK_NOFORK) srunner_set_fork_status(r, how);
  srunner_run_all(r, CK_ENV);
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed ? 1 : 0;
}

/* Runs the suite, and frees it. Returns: the exit status. */
static inline int run_suite(Suite *s) { return run_suite_as(s, CK_FORK_GETENV); }
/* The same in this process alone, where a test has to see the effects of the one before. */
static inline int run_suite_here(Suite *s) { return run_suite_as(s, CK_NOFORK); }

#endif
