/* Expressions that are said to differ do so at some point that the hypotheses admit; of those that
 * differ everywhere most are told. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "egraph/base/rng.h"
#include "validate/prove/equal_int.h"
#include "validate/tensor/tensor.h"
#include "validate/validate.h"
#include "tests/support/suite.h"

enum { VARS = 3, FACTS = 2, ROUNDS = 5000, HIGH = 5 };

typedef struct line { /* k[0] x + k[1] y + k[2] z + constant */
  int64_t k[VARS], constant;
} line;

static rule_set *set;
static rule_schemas *schemas;
static const val_options options = {.z3_rlimit = 1000};

static void set_up(void) {
  iso_error err = {ISO_OK, ""};
  static const char text[] = "(rule r (var x f (4)) (var i i (4)) (lhs x) (rhs x))";
  ck_assert(!rule_set_parse(text, SIZE_MAX, "test", &set, &err));
  ck_assert(!rule_schemas_new(&schemas, &err));
}

static void tear_down(void) { rule_schemas_free(schemas), rule_set_free(set); }

static sc *begun(void) {
  sc *c = calloc(1, sizeof *c);
  ck_assert(c && sc_init(c, rule_set_at(set, 0), schemas, &options));
  return c;
}

static void ended(sc *c) { sc_fini(c), free(c); }

static int64_t small(iso_rng *g, int64_t most) {
  return (int64_t)(iso_rng_uniform(g) * (double)(2 * most + 1)) - most;
}

static line draw(iso_rng *g) {
  line l = {.constant = small(g, 4)};
  for (int i = 0; i < VARS; i++) l.k[i] = small(g, 2);
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

/* At how many of the points that the facts admit the lines differ; `admitted`: of how many. */
static int differences(const line *a, const line *b, const line *fact, size_t n, int *admitted) {
  int64_t at[VARS];
  int some = *admitted = 0;
  for (at[0] = 0; at[0] < HIGH; at[0]++)
    for (at[1] = 0; at[1] < HIGH; at[1]++)
      for (at[2] = 0; at[2] < HIGH; at[2]++) {
        bool met = true;
        for (size_t i = 0; i < n && met; i++) met = value(&fact[i], at) >= 0;
        *admitted += met;
        some += met && value(a, at) != value(b, at);
      }
  return some;
}

START_TEST(of_integers_what_is_said_to_differ_does) {
  iso_rng g = iso_rng_new(3, 0);
  int everywhere = 0, told = 0;
  for (int round = 0; round < ROUNDS; round++) {
    sc *c = begun();
    sx x[VARS];
    line fact[FACTS], a = draw(&g), b = iso_rng_uniform(&g) < 0.3 ? a : draw(&g);
    const size_t n = (size_t)(iso_rng_uniform(&g) * (FACTS + 1));
    for (int i = 0; i < VARS; i++) x[i] = sc_index(c, sx_int(c, HIGH));
    for (size_t i = 0; i < n; i++) {
      fact[i] = draw(&g);
      c->here.fact[c->here.n_facts++] = written(c, &fact[i], x);
    }
    int admitted;
    const int differ = differences(&a, &b, fact, n, &admitted);
    const bool said = sc_differs(c, written(c, &a, x), written(c, &b, x));
    ck_assert_msg(!said || differ > 0, "round %d", round);
    everywhere += differ > 0 && differ == admitted && admitted > 30;
    told += said && differ > 0 && differ == admitted && admitted > 30;
    ended(c);
  }
  printf("told of %d of %d\n", told, everywhere);
  ck_assert_int_gt(everywhere, 300);
  ck_assert_int_ge(100 * told, 95 * everywhere);
}
END_TEST

static sx element(sc *c, int64_t at) {
  const sx idx = sx_int(c, at);
  return sx_leaf(c, 0, &idx, 1);
}

START_TEST(elements_are_drawn_where_the_hypotheses_admit_it) {
  sc *c = begun();
  const sx u = element(c, 0), v = element(c, 1), size = sx_fn(c, F_ABS, u);
  ck_assert(sc_differs(c, sx_exp(c, u), sx_exp(c, v)));
  ck_assert(sc_differs(c, sx_exp(c, c->one), sx_exp(c, sx_max(c, u, v))));
  ck_assert(!sc_differs(c, sx_exp(c, u), sx_exp(c, u)));
  ck_assert(sc_differs(c, size, u) != sc_differs(c, size, sx_neg(c, u))); /* by u's sign */
  const sx below = sx_top_guard(c, sx_lt(c, u, c->zero)), same = sx_top_guard(c, sx_eq(c, u, v));
  ck_assert(below && same && sc_assume(c, below, true));
  ck_assert(sc_differs(c, size, u) && !sc_differs(c, size, sx_neg(c, u)));
  ck_assert(sc_assume(c, same, true) && !sc_differs(c, sx_exp(c, u), sx_exp(c, v)));
  ended(c);
}
END_TEST

/* Of integer elements not all bounds are known, and what is no number shows nothing. */
START_TEST(nothing_is_said_of_what_is_not_known) {
  sc *c = begun();
  const sx idx = c->zero, k = sx_leaf(c, 1, &idx, 1), u = element(c, 0);
  ck_assert(!sc_differs(c, k, sx_add(c, k, c->one)));
  ck_assert(!sc_differs(c, c->neginf, u));
  const sx root = sx_sqrt(c, sx_sub(c, c->minus_one, sx_mul(c, u, u)));
  ck_assert(!sc_differs(c, root, sx_add(c, root, c->one)));
  ended(c);
}
END_TEST

int main(void) {
  Suite *s = suite_create("apart");
  TCase *t = tcase_create("apart");
  tcase_set_timeout(t, 60);
  tcase_add_unchecked_fixture(t, set_up, tear_down);
  tcase_add_test(t, of_integers_what_is_said_to_differ_does);
  tcase_add_test(t, elements_are_drawn_where_the_hypotheses_admit_it);
  tcase_add_test(t, nothing_is_said_of_what_is_not_known);
  suite_add_tcase(s, t);
  return run_suite(s);
}
