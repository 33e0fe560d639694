/* Claims about integers from bounds and facts: an expression that is said to be at least 0 is so
 * at every point that meets the facts, which are few enough to be tried; and most that are so are
 * told. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "egraph/base/rng.h"
#include "validate/expr/expr.h"
#include "validate/tensor/tensor.h"
#include "validate/validate.h"
#include "tests/support/suite.h"

enum { VARS = 3, FACTS = 3, ROUNDS = 20000, MOST = 6 };

typedef struct line { /* k[0] x + k[1] y + k[2] z + constant, at least 0 */
  int64_t k[VARS], constant;
} line;

static int64_t small(iso_rng *g, int64_t most) {
  return (int64_t)(iso_rng_uniform(g) * (double)(2 * most + 1)) - most;
}

static line draw(iso_rng *g) {
  line l = {.constant = small(g, 7)};
  for (int i = 0; i < VARS; i++) l.k[i] = small(g, 4);
  return l;
}

static int64_t value(const line *l, const int64_t *at) {
  int64_t v = l->constant;
  for (int i = 0; i < VARS; i++) v += l->k[i] * at[i];
  return v;
}

static sx written(sc *c, const line *l, const sx *x) {
  sx s = sx_int(c, l->constant);
  for (int i = 0; i < VARS; i++) s = sx_add(c, s, sx_mul(c, sx_int(c, l->k[i]), x[i]));
  return s;
}

/* Whether the line is at least 0 wherever the facts are; `some`: they are somewhere. */
static bool holds(const line *l, const line *fact, size_t n, const int64_t *high, bool *some) {
  int64_t at[VARS];
  *some = false;
  for (at[0] = 0; at[0] < high[0]; at[0]++)
    for (at[1] = 0; at[1] < high[1]; at[1]++)
      for (at[2] = 0; at[2] < high[2]; at[2]++) {
        bool met = true;
        for (size_t i = 0; i < n && met; i++) met = value(&fact[i], at) >= 0;
        *some |= met;
        if (met && value(l, at) < 0) return false;
      }
  return true;
}

typedef struct tally {
  size_t held, told;
} tally;

static void ask(const rule *r, rule_schemas *schemas, iso_rng *g, tally *t) {
  const val_options o = {.z3_rlimit = 1000};
  sc *c = calloc(1, sizeof *c);
  ck_assert(c && sc_init(c, r, schemas, &o));
  int64_t high[VARS];
  sx x[VARS];
  line fact[FACTS], l = draw(g);
  const size_t n = (size_t)(iso_rng_uniform(g) * (FACTS + 1));
  for (int i = 0; i < VARS; i++) {
    high[i] = 2 + (int64_t)(iso_rng_uniform(g) * (MOST - 1));
    x[i] = sc_index(c, sx_int(c, high[i]));
  }
  for (size_t i = 0; i < n; i++) {
    fact[i] = draw(g);
    c->here.fact[c->here.n_facts++] = written(c, &fact[i], x);
  }
  bool some;
  const bool is = holds(&l, fact, n, high, &some), said = sx_ge0(c, written(c, &l, x));
  ck_assert_msg(!said || is, "%ld x + %ld y + %ld z + %ld with %zu facts", (long)l.k[0],
                (long)l.k[1], (long)l.k[2], (long)l.constant, n);
  t->held += is && some;
  t->told += is && some && said;
  sc_fini(c);
  free(c);
}

START_TEST(what_is_said_to_be_at_least_0_is) {
  rule_set *set = NULL;
  rule_schemas *schemas = NULL;
  iso_error err = {ISO_OK, ""};
  tally t = {0, 0};
  ck_assert_int_eq(rule_set_load("tests/validate/rules/layout.rules", &set, &err), ISO_OK);
  ck_assert_int_eq(rule_schemas_new(&schemas, &err), ISO_OK);
  iso_rng g = iso_rng_new(1, 0);
  for (int i = 0; i < ROUNDS; i++) ask(rule_set_at(set, 0), schemas, &g, &t);
  printf("told of %zu of %zu\n", t.told, t.held);
  ck_assert_uint_ge(100 * t.told, 95 * t.held);
  rule_schemas_free(schemas);
  rule_set_free(set);
}
END_TEST

int main(void) {
  Suite *s = suite_create("bound");
  TCase *t = tcase_create("bound");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, what_is_said_to_be_at_least_0_is);
  suite_add_tcase(s, t);
  return run_suite(s);
}
