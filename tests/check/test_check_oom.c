/* Allocation failure while a certificate is read and its form is checked: an error comes back, and
 * nothing leaks. */
#define FAIL_ONLY_OURS
#include "tests/support/failalloc.h"

#include <check.h>

#include "check/check.h"
#include "tests/support/suite.h"

START_TEST(without_memory) {
  static const chk_options o = {.trust_rules = true};
  rule_schemas *schemas = NULL;
  cap_graph *graph[2] = {NULL, NULL};
  ck_assert_int_eq(rule_schemas_new(&schemas, NULL), ISO_OK);
  ck_assert_int_eq(cap_load("models/gpt2-2l/hf-sdpa", schemas, &graph[0], NULL), ISO_OK);
  ck_assert_int_eq(cap_load("models/gpt2-2l/vllm", schemas, &graph[1], NULL), ISO_OK);
  chk_report first; /* what is read once stays */
  ck_assert_int_eq(chk_check("tests/fuzz/corpus/certificate/gpt2", graph[0], graph[1], schemas,
                             NULL, &o, &first, NULL),
                   ISO_OK);
  bool failed = true;
  long tried = 0;
  for (long n = 0; failed; n += 1 + n / 24, tried++) {
    const long alive = fail_live;
    chk_report r;
    iso_error err = {0};
    fail_arm(n);
    const iso_code c = chk_check("tests/fuzz/corpus/certificate/gpt2", graph[0], graph[1], schemas,
                                 NULL, &o, &r, &err);
    failed = fail_disarm();
    const bool same = !c && r.outcome == first.outcome;
    chk_report_free(&r);
    const long left = fail_live - alive;
    ck_assert_msg(failed ? c == ISO_NOMEM : same, "allocation %ld: %d %s", n, (int)c, err.msg);
    ck_assert_msg(left == 0, "allocation %ld: %ld blocks are left", n, left);
  }
  ck_assert_int_gt(tried, 50);
  chk_report_free(&first);
  cap_free(graph[0]);
  cap_free(graph[1]);
  rule_schemas_free(schemas);
}
END_TEST

int main(void) {
  Suite *s = suite_create("check, memory");
  TCase *t = tcase_create("check");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, without_memory);
  suite_add_tcase(s, t);
  return run_suite(s);
}
