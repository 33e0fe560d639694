/* Every definition of the prover against the operator itself (needs libtorch), in float64, on small random shapes. */
#include "tests/validate/prove_diff.h"

START_TEST(definitions_are_what_operators_do) {
  const call *k = &calls[_i];
  int good = 0;
  for (int seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new((uint64_t)seed, (uint64_t)_i);
    char why[300] = "";
    sample s;
    sample_take(&s, k, &rng);
    const outcome o = sample_compare(&s, why);
    ck_assert_msg(o != OTHER, "%s: %s", why, s.text);
    good += o == SAME;
    sample_free(&s);
  }
  ck_assert_msg(good >= LEAST_GOOD, "only %d samples of %s", good, k->text);
}
END_TEST

int main(void) {
  Suite *s = suite_create("prove_diff");
  TCase *t = tcase_create("prove_diff");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, definitions_are_what_operators_do, 0, N_CALLS);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  /* One process: starting libtorch for each call would take minutes. */
  srunner_set_fork_status(r, CK_NOFORK);
  iso_error err;
  if (rule_schemas_new(&schemas, &err) != ISO_OK || val_new(NULL, schemas, &engine, &err) != ISO_OK) {
    fprintf(stderr, "%s\n", err.msg);
    return 2;
  }
  srunner_run_all(r, CK_ENV);
  engine_teardown();
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
