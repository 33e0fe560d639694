/* Rationals of any size: each operation is GMP's own, on either side of 128 bits; one number has
 * one id; and a lack of memory at any place is told, without a crash or a leak. */
#define FAIL_ONLY_OURS
#include "tests/support/failalloc.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "egraph/base/rng.h"
#include "validate/expr/rational.h"
#include "validate/validate.h"
#include "tests/support/suite.h"

enum { ROUNDS = 400, STEPS = 24 };

/* The number `a`, by its decimals and its exponent. */
static void exact(const pv_rationals *c, uint32_t a, mpq_t out) {
  char *n, *d;
  ck_assert(pv_q_decimals(c, a, &n, &d));
  mpz_set_str(mpq_numref(out), n, 10);
  mpz_set_str(mpq_denref(out), d, 10);
  const int32_t e = pv_q_exponent(c, a);
  mpz_mul_2exp(mpq_numref(out), mpq_numref(out), e > 0 ? (mp_bitcnt_t)e : 0);
  mpz_mul_2exp(mpq_denref(out), mpq_denref(out), e < 0 ? (mp_bitcnt_t)-e : 0);
  mpq_canonicalize(out);
  if (pv_q_sign(c, a) < 0) mpq_neg(out, out);
  free(n);
  free(d);
}

static void same(const pv_rationals *c, uint32_t a, mpq_t want) {
  mpq_t q;
  mpq_init(q);
  exact(c, a, q);
  ck_assert(mpq_equal(q, want));
  ck_assert_int_eq(pv_q_sign(c, a), mpq_sgn(want));
  const double v = mpq_get_d(want), w = pv_q_value(c, a);
  if (v > -1e300 && v < 1e300 && (v > 1e-290 || v < -1e-290))
    ck_assert(w / v > 1 - 1e-14 && w / v < 1 + 1e-14);
  mpq_clear(q);
}

/* The inverse operations, which must lead back to the same id. */
static void undo(pv_rationals *c, uint32_t a, uint32_t b, uint32_t sum, uint32_t product) {
  ck_assert_uint_eq(pv_q_add(c, sum, pv_q_mul(c, b, PV_MINUS_Q)), a);
  if (b != PV_ZERO_Q) ck_assert_uint_eq(pv_q_mul(c, product, pv_q_pow(c, b, -1)), a);
  ck_assert_uint_eq(pv_q_add(c, b, a), sum);
  ck_assert_uint_eq(pv_q_mul(c, b, a), product);
}

START_TEST(operations_are_exact_at_every_size) {
  iso_rng rng = iso_rng_new((uint64_t)_i + 1, 0);
  pv_rationals c;
  ck_assert(pv_q_init(&c));
  mpq_t a, b, r;
  mpq_inits(a, b, r, NULL);
  uint32_t x = pv_q_int(&c, (int64_t)iso_rng_below(&rng, 1000) + 1);
  for (int step = 0; step < STEPS; step++) {
    uint32_t y = pv_q_int(&c, (int64_t)iso_rng_below(&rng, 1u << 30) - (1 << 29));
    if (iso_rng_below(&rng, 2)) y = pv_q_double(&c, iso_rng_uniform(&rng) - 0.5);
    if (y != PV_ZERO_Q && iso_rng_below(&rng, 3) == 0) y = pv_q_pow(&c, y, -1);
    exact(&c, x, a);
    exact(&c, y, b);
    const uint32_t sum = pv_q_add(&c, x, y), product = pv_q_mul(&c, x, y);
    mpq_add(r, a, b);
    same(&c, sum, r);
    mpq_mul(r, a, b);
    same(&c, product, r);
    undo(&c, x, y, sum, product);
    ck_assert(!c.failed);
    x = product == PV_ZERO_Q || iso_rng_below(&rng, 2) ? sum : product;
    if (x == PV_ZERO_Q) x = PV_ONE_Q;
  }
  mpq_clears(a, b, r, NULL);
  pv_q_fini(&c);
}
END_TEST

/* 128 bits are crossed there and back by powers, and a number that is too long fails. */
START_TEST(powers_and_bounds) {
  pv_rationals c;
  ck_assert(pv_q_init(&c));
  const uint32_t three = pv_q_int(&c, 3);
  for (int k = 1; k < 400; k++) {
    pv_q small;
    const uint32_t p = pv_q_pow(&c, three, k);
    ck_assert_int_eq(pv_q_small(&c, p, &small), k <= 80); /* 3^80 < 2^127 < 3^81 */
    ck_assert_uint_eq(pv_q_mul(&c, p, pv_q_pow(&c, three, 1 - k)), three);
  }
  ck_assert(!c.failed);
  (void)pv_q_pow(&c, three, 1000000);
  ck_assert(c.failed && !c.no_memory);
  pv_q_fini(&c);
}
END_TEST

/* Whether it came to an end; `told`: or else said that there was no memory. */
static bool work(bool *told) {
  pv_rationals c;
  bool ok = pv_q_init(&c);
  uint32_t x = ok ? pv_q_double(&c, 1.1e39) : 0;
  for (int i = 0; ok && i < 6; i++) x = pv_q_add(&c, pv_q_mul(&c, x, x), pv_q_int(&c, i + 3));
  ok = ok && !c.failed;
  *told = c.no_memory;
  pv_q_fini(&c);
  return ok;
}

START_TEST(no_memory_is_told) {
  bool done = false, told;
  ck_assert(work(&told));
  for (long n = 0; !done; n++)
    for (int always = 0; always < 2; always++) {
      const long live = fail_live;
      fail_always = always;
      fail_arm(n);
      const bool ok = work(&told);
      fail_disarm();
      fail_always = false;
      ck_assert(ok || told);
      ck_assert_int_eq(fail_live, live);
      done = always && ok;
    }
}
END_TEST

/* (x a) b ... = (x ... b) a for any order, in doubles of all sizes; with one of them moved by one
 * unit in the last place it is false. */
static bool proved(const double *k, size_t n, const size_t *order, size_t moved) {
  char text[4000], *p = text;
  p += sprintf(p, "(rule r (var x f (N))");
  for (int side = 0; side < 2; side++) {
    p += sprintf(p, side ? " (rhs " : " (lhs ");
    for (size_t i = 0; i < n; i++) p += sprintf(p, "(aten::mul.Scalar ");
    p += sprintf(p, "(aten::exp x)");
    for (size_t i = 0; i < n; i++) {
      const double v = k[side ? order[i] : i];
      p += sprintf(p, " %.17e)", side && i == moved ? v * (1 + 3e-16) : v);
    }
    p += sprintf(p, ")");
  }
  sprintf(p, ")");
  rule_set *set = NULL;
  rule_schemas *schemas = NULL;
  rule_verdict v = {.status = RULE_UNKNOWN};
  iso_error err = {ISO_OK, ""};
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s", err.msg);
  ck_assert_int_eq(rule_schemas_new(&schemas, &err), ISO_OK);
  ck_assert_int_eq(
      val_prove(rule_set_at(set, 0), schemas, &(val_options){.z3_rlimit = 500000}, &v, &err),
      ISO_OK);
  rule_schemas_free(schemas);
  rule_set_free(set);
  return v.status == RULE_PROVED;
}

START_TEST(scales_of_any_size_commute_and_near_ones_do_not) {
  iso_rng rng = iso_rng_new((uint64_t)_i + 77, 0);
  double k[6];
  size_t order[6];
  const size_t n = 3 + iso_rng_below(&rng, 4);
  for (size_t i = 0; i < n; i++) {
    k[i] = ldexp(1 + iso_rng_uniform(&rng), (int)iso_rng_below(&rng, 400) - 200);
    order[i] = i;
  }
  for (size_t i = n - 1; i > 0; i--) {
    const size_t j = iso_rng_below(&rng, (uint32_t)i + 1), t = order[i];
    order[i] = order[j];
    order[j] = t;
  }
  ck_assert(proved(k, n, order, SIZE_MAX));
  ck_assert(!proved(k, n, order, iso_rng_below(&rng, (uint32_t)n)));
}
END_TEST

int main(void) {
  Suite *s = suite_create("rational");
  TCase *t = tcase_create("rational");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, operations_are_exact_at_every_size, 0, ROUNDS);
  tcase_add_test(t, powers_and_bounds);
  tcase_add_test(t, no_memory_is_told);
  tcase_add_loop_test(t, scales_of_any_size_commute_and_near_ones_do_not, 0, 100);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
