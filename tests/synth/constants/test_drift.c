/* Tables of few digits: roundings go up and down, a factor or a summand goes one way; and of dtypes
 * with many digits nothing is said. */
#include "synth/constants/rounding.h"
#include "tests/support/small_operators.h"
#include "tests/support/suite.h"

enum { SIZE = 200, SEEDS = 60 };

static const rule_dtype few[] = {RULE_BF16, RULE_F16};

/* Numbers of one or both signs, in several binades. */
static rule_tensor *table(iso_rng *rng, rule_dtype d, bool both) {
  rule_tensor *t = make_as(d, SHAPE(SIZE));
  for (int64_t i = 0; i < SIZE; i++) {
    const double x = exp(iso_rng_normal(rng));
    rule_tensor_set(t, i, both && iso_rng_below(rng, 2) ? -x : x);
  }
  return t;
}

static rx_drift drifts(const rule_tensor *stored, rule_tensor *made, rule_dtype in) {
  rx_drift how;
  iso_error err;
  ck_assert(rx_drifts(stored, made, in, &how, &err) == ISO_OK);
  rule_tensor_unref(made);
  return how;
}

/* x times a factor, and more, each a unit up or down now and then, as roundings go. */
static rule_tensor *changed(iso_rng *rng, const rule_tensor *t, double factor, double more) {
  rule_tensor *u = make_as(t->dtype, t->shape);
  for (int64_t i = 0; i < SIZE; i++) {
    const double x = rule_tensor_get(t, i), unit = pr_ulp(x, t->dtype);
    const uint64_t way = iso_rng_below(rng, 8);
    rule_tensor_set(u, i, x * factor + more + (way == 0 ? unit : way == 1 ? -unit : 0));
  }
  return u;
}

START_TEST(roundings_stay_and_factors_drift) {
  int stay = 0, drift = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    const rule_dtype d = few[seed % 2];
    rule_tensor *t = table(&rng, d, _i);
    stay += drifts(t, changed(&rng, t, 1, 0), d) == RX_STAYS;
    const double unit = rule_dtype_unit(d, 1);
    drift += drifts(t, changed(&rng, t, 1 + 2 * unit, 0), d) == RX_DRIFTS_FAR;
    drift += drifts(t, changed(&rng, t, 1 - 2 * unit, 0), d) == RX_DRIFTS_FAR;
    drift += drifts(t, changed(&rng, t, 1, 4 * unit), d) >= RX_DRIFTS;
    ck_assert(drifts(t, changed(&rng, t, 1 + 2 * unit, 0), RULE_F32) == RX_STAYS);
    rule_tensor_unref(t);
  }
  /* Of 60, about one is as unlikely as two directions at 2.75 deviations are. */
  ck_assert_int_ge(stay, SEEDS - 4);
  ck_assert_int_eq(drift, 3 * SEEDS);
}
END_TEST

/* The same table repeated says no more than once: a few roundings that happen to go one way. */
START_TEST(what_is_repeated_counts_once) {
  rule_tensor *t = make_as(RULE_BF16, SHAPE(SIZE)), *u = make_as(RULE_BF16, SHAPE(SIZE));
  for (int64_t i = 0; i < SIZE; i++) {
    const double x = 1 + (double)(i % 10) / 16, unit = pr_ulp(x, RULE_BF16);
    rule_tensor_set(t, i, x);
    rule_tensor_set(u, i, x + (i % 10 < 2 ? unit : 0));
  }
  ck_assert(drifts(t, u, RULE_BF16) == RX_STAYS);
  rule_tensor_unref(t);
}
END_TEST

int main(void) {
  Suite *s = suite_create("drift");
  TCase *t = tcase_create("drift");
  tcase_add_loop_test(t, roundings_stay_and_factors_drift, 0, 2);
  tcase_add_test(t, what_is_repeated_counts_once);
  suite_add_tcase(s, t);
  return run_suite(s);
}
