/* Does the differential test notice a wrong definition (needs libtorch)? Each place where a definition combines expressions is made wrong in
 * turn (mutate.h), and some sample must then differ from libtorch, or too few be left that have a value. */
#include <stdlib.h>

#include "tests/validate/prove_diff.h"

enum { MAX_SITES = 9000, LEAST_CAUGHT = 85 /* of 100; of the rest most mean the same: conditions where libtorch refuses too, shifts of a softmax */ };

bool mutant_here(int site, const char *file, int line, const char *what);

static int wrong = -1; /* the site that is wrong now */
static struct {
  const char *file, *what;
  int line;
} place[MAX_SITES];
static bool passed[MAX_SITES];               /* by the call that runs now */
static bool passes[N_CALLS][MAX_SITES];      /* by which calls each is passed */
static sample samples[N_CALLS][SEEDS];

bool mutant_here(int site, const char *file, int line, const char *what) {
  if (site < 0 || site >= MAX_SITES) abort();
  passed[site] = true;
  place[site].file = file;
  place[site].line = line;
  place[site].what = what;
  return site == wrong;
}

static bool call_notices(int k) {
  int good = 0;
  char why[300];
  for (int s = 0; s < SEEDS; s++) {
    const outcome o = sample_compare(&samples[k][s], why);
    if (o == OTHER) return true;
    good += o == SAME;
  }
  return good < LEAST_GOOD;
}

START_TEST(wrong_definitions_are_noticed) {
  int n = 0, caught = 0;
  for (int k = 0; k < N_CALLS; k++) {
    memset(passed, 0, sizeof passed);
    for (int s = 0; s < SEEDS; s++) {
      iso_rng rng = iso_rng_new((uint64_t)s, (uint64_t)k);
      sample_take(&samples[k][s], &calls[k], &rng);
    }
    ck_assert_msg(!call_notices(k), "%s", calls[k].text); /* nothing is wrong yet */
    memcpy(passes[k], passed, sizeof passed);
  }
  for (wrong = 0; wrong < MAX_SITES; wrong++) {
    bool noticed = false;
    if (!place[wrong].file) continue;
    for (int k = 0; k < N_CALLS && !noticed; k++) noticed = passes[k][wrong] && call_notices(k);
    n++;
    caught += noticed;
    if (!noticed) fprintf(stderr, "%s:%d: %s can be wrong\n", place[wrong].file, place[wrong].line, place[wrong].what);
  }
  wrong = -1;
  for (int k = 0; k < N_CALLS; k++)
    for (int s = 0; s < SEEDS; s++) sample_free(&samples[k][s]);
  printf("%d of %d mutants are caught\n", caught, n);
  ck_assert_msg(n > 300 && 100 * caught >= LEAST_CAUGHT * n, "%d of %d mutants are caught", caught, n);
}
END_TEST

int main(void) {
  Suite *s = suite_create("prove_mutants");
  TCase *t = tcase_create("prove_mutants");
  tcase_set_timeout(t, 600);
  tcase_add_test(t, wrong_definitions_are_noticed);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
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
