/* Units, digits and tables that are one but for rounding; a wrong element among right ones; other
 * formulas of a progression. */
#include <float.h>

#include "check/rounding/again.h"
#include "egraph/base/rng.h"
#include "tests/support/small_operators.h"
#include "tests/support/suite.h"

enum { SEEDS = 20000, ROWS = 4, COLUMNS = 6, ALL = ROWS * COLUMNS };

/* ---- numbers ---- */

/* A float of any size, those below the normal ones, too. */
static float any_float(iso_rng *rng) {
  const uint64_t bits = iso_rng_below(rng, UINT64_C(1) << 32);
  const uint32_t low = (uint32_t)bits;
  float x;
  memcpy(&x, &low, sizeof x);
  return isfinite(x) ? x : 1;
}

START_TEST(a_unit_leads_to_the_next_number) {
  iso_rng rng = iso_rng_new(1, 1);
  for (int i = 0; i < SEEDS; i++) {
    const float x = any_float(&rng);
    const double y = ldexp(iso_rng_normal(&rng), (int)iso_rng_below(&rng, 2000) - 1050);
    ck_assert(ag_unit((double)x, 24) == (double)nextafterf(fabsf(x), INFINITY) - (double)fabsf(x));
    if (fabs(y) < DBL_MAX / 2) ck_assert(ag_unit(y, 53) == nextafter(fabs(y), INFINITY) - fabs(y));
  }
  ck_assert(ag_unit(1, 11) == 0x1p-10 && ag_unit(1, 8) == 0x1p-7);
  ck_assert(ag_unit(0x1p-14, 11) == 0x1p-24 && ag_unit(0x1p-20, 11) == 0x1p-24);
}
END_TEST

START_TEST(numbers_with_so_many_digits_are_those_of_the_dtype) {
  iso_rng rng = iso_rng_new(1, 2);
  for (int i = 0; i < SEEDS; i++) {
    const int digits = 1 + (int)iso_rng_below(&rng, 30);
    const double whole = (double)(iso_rng_below(&rng, UINT64_C(1) << digits) | 1);
    const double x = ldexp(whole, (int)iso_rng_below(&rng, 100) - 50);
    int most;
    frexp(whole, &most); /* odd: it needs that many */
    for (int d = 1; d < 32; d++) ck_assert_int_eq(ag_has_digits(i % 2 ? -x : x, d), d >= most);
  }
}
END_TEST

START_TEST(a_number_that_somebody_wrote_has_few_decimal_digits) {
  static const double written[] = {0.1, 1e-5, 10000, 0.044715, 3.14159, 0, -2.5, 1e30},
                      made[] = {(double)0.1f, 1.0 / 3,    0.7978845608,
                                0.7978846,    3.14159265, 1e-5 + 1e-13};
  for (size_t i = 0; i < sizeof written / sizeof *written; i++)
    ck_assert(!ag_many_digits(written[i]));
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) ck_assert(ag_many_digits(made[i]));
}
END_TEST

/* ---- tables ---- */

/* Numbers between 1 and 2, whose unit is 2^-23, and how far noise moves each: so many units. */
static rule_tensor *stored, *made;
static double spread[ALL];
static chk_state state;

static void begin(double units) {
  iso_rng rng = iso_rng_new(1, 3);
  stored = make(SHAPE(ROWS, COLUMNS));
  made = make(SHAPE(ROWS, COLUMNS));
  for (int64_t i = 0; i < ALL; i++) {
    const double x = (double)(float)(1.01 + 0.9 * iso_rng_uniform(&rng));
    rule_tensor_set(stored, i, x);
    rule_tensor_set(made, i, x);
    spread[i] = units * 0x1p-23;
  }
}

static void end(void) {
  rule_tensor_unref(stored);
  rule_tensor_unref(made);
}

static void off(int64_t i, double units) {
  rule_tensor_set(made, i, rule_tensor_get(stored, i) + units * 0x1p-23);
}

static ag_fit fit(void) {
  ag_fit f;
  ck_assert(ag_compare(&state, stored, made, spread, 24, &f) == ISO_OK);
  return f;
}

START_TEST(elements_agree_as_far_as_noise_moves_them) {
  for (int64_t i = 0; i < ALL; i++)
    for (int sign = -1; sign <= 1; sign += 2) {
      begin(10);
      off(i, sign * 14.9);
      ck_assert(ag_agree(stored, made, spread, 1.5, 1e-14));
      off(i, sign * 15.1);
      ck_assert(!ag_agree(stored, made, spread, 1.5, 1e-14));
      /* A larger number beside it excuses nothing. */
      rule_tensor_set(stored, (i + 1) % ALL, 1e6);
      rule_tensor_set(made, (i + 1) % ALL, 1e6);
      ck_assert(!ag_agree(stored, made, spread, 1.5, 1e-14));
      spread[i] = 0;
      off(i, 1e-9 * 0x1p23);
      ck_assert(!ag_agree(stored, made, spread, 1.5, 1e-14));
      off(i, 1);
      spread[i] = INFINITY;
      ck_assert(!ag_agree(stored, made, spread, 1.5, 1e-14));
      end();
    }
}
END_TEST

START_TEST(a_table_that_is_as_it_was_made_is_clean) {
  begin(100);
  ck_assert_int_eq(fit(), AG_CLEAN);
  for (int64_t i = 0; i < ALL; i++)
    off(i, i % 2 ? 2.9 : -2.9); /* no more than a library's function */
  ck_assert_int_eq(fit(), AG_CLEAN);
  end();
}
END_TEST

/* Units of bfloat16, in `units[i]` of them. */
static bool is_scaled(const double *units) {
  bool yes;
  begin(0);
  for (int64_t i = 0; i < ALL; i++) {
    rule_tensor_set(stored, i, 1 + 0x1p-7 * (double)(3 * i)); /* no two are of the same digits */
    rule_tensor_set(made, i, rule_tensor_get(stored, i) + 0x1p-7 * units[i]);
  }
  ck_assert(ag_is_scaled(&state, stored, made, 8, &yes) == ISO_OK);
  end();
  return yes;
}

START_TEST(elements_that_are_off_one_way_are_scaled_and_those_up_and_down_are_not) {
  for (uint64_t seed = 0; seed < 200; seed++) {
    iso_rng rng = iso_rng_new(seed, 8);
    double one_way[ALL], both[ALL], none[ALL] = {0};
    size_t n_off = 0;
    for (int i = 0; i < ALL; i++) {
      one_way[i] = iso_rng_below(&rng, 2) ? 1 : 0.2;
      n_off += one_way[i] == 1;
    }
    for (int i = 0; i < ALL; i++) both[i] = i % 2 ? 1 : -1;
    ck_assert_msg(is_scaled(one_way) == (n_off >= 4), "seed %d", (int)seed);
    ck_assert(!is_scaled(both));
    for (int i = 0; i < ALL; i++) one_way[i] = -one_way[i];
    ck_assert(is_scaled(one_way) == (n_off >= 4));
    none[iso_rng_below(&rng, ALL)] = 1;
    ck_assert(!is_scaled(none));
  }
}
END_TEST

START_TEST(one_element_off_is_alone) {
  for (int64_t i = 0; i < ALL; i++) {
    begin(100);
    off(i, i % 2 ? 50 : -50);
    ck_assert_int_eq(fit(), AG_ALONE);
    end();
  }
}
END_TEST

START_TEST(an_element_is_apart_beyond_what_noise_does) {
  begin(100);
  for (int64_t i = 0; i < ALL; i++) off(i, 160);
  ck_assert_int_eq(fit(), AG_APART);
  end();
}
END_TEST

START_TEST(elements_off_together_are_in_company) {
  for (int how = 0; how < 3; how++) {
    begin(100);
    for (int64_t i = 0; i < ALL; i++) {
      const bool row = i / COLUMNS == 1, column = i % COLUMNS == 2;
      if (how == 0 || (how == 1 && row) || (how == 2 && column)) off(i, 40);
    }
    ck_assert_int_eq(fit(), AG_TOGETHER);
    end();
  }
}
END_TEST

/* Of few that noise moves, in different lines: all of them. */
START_TEST(elements_off_wherever_they_may_be_are_in_company) {
  for (int n = 1; n <= ROWS; n++) {
    begin(0);
    for (int64_t i = 0; i < ROWS; i++) {
      spread[i * COLUMNS + i] = 100 * 0x1p-23;
      if (i < n) off(i * COLUMNS + i, 40);
    }
    ck_assert_int_eq(fit(), n > 1 ? AG_TOGETHER : AG_ALONE);
    end();
  }
}
END_TEST

/* Noise of a few units explains as much, and asks for no company. */
START_TEST(what_noise_hardly_moves_is_held_by_that_alone) {
  begin(5);
  off(3, 7);
  ck_assert_int_eq(fit(), AG_CLEAN);
  off(3, 8);
  ck_assert_int_eq(fit(), AG_APART);
  end();
}
END_TEST

/* Two in one line are company, unless it is one number that stands there twice. */
START_TEST(a_repeated_element_is_no_company_to_itself) {
  for (int twice = 0; twice < 2; twice++) {
    begin(100);
    if (twice) rule_tensor_set(stored, 1, rule_tensor_get(stored, 0));
    off(0, 50);
    off(1, 50);
    ck_assert_int_eq(fit(), twice ? AG_ALONE : AG_TOGETHER);
    end();
  }
}
END_TEST

START_TEST(one_number_alone_is_held_by_its_noise) {
  begin(100);
  for (int64_t i = 0; i < ALL; i++) {
    rule_tensor_set(stored, i, 1.5);
    off(i, 50);
  }
  ck_assert_int_eq(fit(), AG_CLEAN);
  for (int64_t i = 0; i < ALL; i++) off(i, 200);
  ck_assert_int_eq(fit(), AG_APART);
  end();
}
END_TEST

/* ---- formulas ---- */

static float naive(unsigned formula, double base, int d, int i) {
  const float exponent = (float)(2.0 * i / d);
  switch (formula) {
  case 1: return (float)(1 / (double)(float)pow(base, (double)exponent));
  case 2: return (float)pow(base, -(double)exponent);
  case 3: return (float)exp((double)(float)(-(double)exponent * (double)(float)log(base)));
  default: return (float)exp((double)(float)(2.0 * i * (double)(float)(-log(base) / d)));
  }
}

START_TEST(frequencies_are_those_of_the_formula) {
  static const double bases[] = {10000, 500000, 100, 12345.5};
  for (unsigned formula = 1; formula < CHK_FORMULAS; formula++)
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
      for (int d = 8; d <= 128; d *= 2) {
        rule_tensor *t = make(SHAPE(1, d / 2));
        for (int64_t i = 0; i < d / 2; i++)
          rule_tensor_set(t, i, pow(bases[b], -2.0 * (double)i / d));
        chk_by_formula(formula, t);
        for (int64_t i = 0; i < d / 2; i++)
          ck_assert_msg(fabs(rule_tensor_get(t, i) - (double)naive(formula, bases[b], d, (int)i)) <=
                            (b == 3 ? ag_unit(rule_tensor_get(t, i), 24) : 0),
                        "formula %u, base %g, %d of %d", formula, bases[b], (int)i, d);
        rule_tensor_unref(t);
      }
}
END_TEST

START_TEST(powers_are_each_the_one_before_times_the_ratio) {
  rule_tensor *t = make(SHAPE(12));
  for (int64_t i = 0; i < 12; i++) rule_tensor_set(t, i, 0.3 * pow(1.7, (double)i));
  chk_by_formula(CHK_FORMULAS, t);
  float x = 0.3f;
  for (int64_t i = 0; i < 12; i++, x *= 1.7f)
    ck_assert(fabs(rule_tensor_get(t, i) - (double)x) <= 12 * ag_unit((double)x, 24));
  ck_assert(rule_tensor_get(t, 5) == (double)(float)rule_tensor_get(t, 5));
  rule_tensor_unref(t);
}
END_TEST

/* Another number in it, other dimensions, or too few numbers; frequencies fall from 1 on. */
START_TEST(what_is_no_progression_stays) {
  for (int k = 0; k < 6; k++) {
    rule_tensor *t = k == 1 ? make(SHAPE(2, 4)) : k == 2 ? make(SHAPE(2)) : make(SHAPE(8));
    for (int64_t i = 0; i < t->numel; i++)
      rule_tensor_set(t, i, (k == 3 ? 2 : 1) * pow(k == 4 ? 10 : 0.1, (double)i / 8));
    if (k == 0) rule_tensor_set(t, 3, rule_tensor_get(t, 3) * (1 + 1e-9));
    if (k == 5) rule_tensor_set(t, 0, -1);
    rule_tensor *was = reshaped(t, t->shape);
    for (unsigned f = 1; f < CHK_FORMULAS; f++) chk_by_formula(f, t);
    ck_assert(rule_tensor_same(t, was));
    rule_tensor_unref(t);
    rule_tensor_unref(was);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("company");
  TCase *t = tcase_create("company");
  tcase_add_test(t, a_unit_leads_to_the_next_number);
  tcase_add_test(t, numbers_with_so_many_digits_are_those_of_the_dtype);
  tcase_add_test(t, a_number_that_somebody_wrote_has_few_decimal_digits);
  tcase_add_test(t, elements_agree_as_far_as_noise_moves_them);
  tcase_add_test(t, a_table_that_is_as_it_was_made_is_clean);
  tcase_add_test(t, elements_that_are_off_one_way_are_scaled_and_those_up_and_down_are_not);
  tcase_add_test(t, one_element_off_is_alone);
  tcase_add_test(t, an_element_is_apart_beyond_what_noise_does);
  tcase_add_test(t, elements_off_together_are_in_company);
  tcase_add_test(t, elements_off_wherever_they_may_be_are_in_company);
  tcase_add_test(t, what_noise_hardly_moves_is_held_by_that_alone);
  tcase_add_test(t, a_repeated_element_is_no_company_to_itself);
  tcase_add_test(t, one_number_alone_is_held_by_its_noise);
  tcase_add_test(t, frequencies_are_those_of_the_formula);
  tcase_add_test(t, powers_are_each_the_one_before_times_the_ratio);
  tcase_add_test(t, what_is_no_progression_stays);
  suite_add_tcase(s, t);
  return run_suite(s);
}
