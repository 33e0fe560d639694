/* Constants of two captures: equal to two units in the last place where tables are computed, equal
 * but for rounding where one is stored in few digits; and all that is further apart is refused. */
#include <check.h>
#include <float.h>
#include <stdio.h>

#include "egraph/base/rng.h"
#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

static const rule_term *real(double x) { return rule_float(&report.arena, x); }

enum { ELEMENTS = 12 };

/* Numbers with all the digits that their dtype has, of many magnitudes. */
static rule_tensor *table(iso_rng *rng, rule_dtype dtype) {
  rule_tensor *t = keep(make_as(dtype, SHAPE(ELEMENTS)));
  for (int64_t i = 0; i < ELEMENTS; i++)
    rule_tensor_set(t, i, iso_rng_normal(rng) * ldexp(1, (int)iso_rng_below(rng, 9) - 4));
  return t;
}

/* A copy in which element `at` is so many units in the last place away. */
static rule_tensor *moved(const rule_tensor *t, int64_t at_, int units) {
  rule_tensor *r = keep(make_as(t->dtype, t->shape));
  for (int64_t i = 0; i < t->numel; i++) {
    double x = rule_tensor_get(t, i);
    for (int n = 0; n < units && i == at_; n++)
      x = t->dtype == RULE_F64 ? nextafter(x, 2 * x) : (double)nextafterf((float)x, 2 * (float)x);
    rule_tensor_set(r, i, x);
  }
  return r;
}

/* ---- the same value ---- */

static bool same_value(cap_kind kind, rule_tensor *x, rule_tensor *y) {
  leaf(LEFT, kind, "a", x);
  leaf(RIGHT, CAP_BUFFER, "b", y);
  add_captures();
  begin();
  return accepted(chk_same_constants(&k, 0, 1, 0));
}

START_TEST(tables_are_one_to_two_units_in_the_last_place) {
  for (uint64_t seed = 0; seed < 200; seed++)
    for (int units = 0; units < 6; units++) {
      iso_rng rng = iso_rng_new(seed, 1);
      setup();
      const rule_tensor *x = table(&rng, seed % 2 ? RULE_F64 : RULE_F32);
      const bool fine = same_value(CAP_BUFFER, moved(x, 0, 0),
                                   moved(x, (int64_t)iso_rng_below(&rng, ELEMENTS), units));
      /* Between two and four units it turns on where a number lies between powers of two. */
      if (units <= 2) ck_assert_msg(fine, "seed %d, %d: %s", (int)seed, units, report.reason);
      if (units > 4) ck_assert_msg(!fine, "seed %d, %d units", (int)seed, units);
      if (fine) ck_assert_int_eq(k.used.assumption[0].kind, RULE_ASSUMES_VALUE);
      teardown();
    }
}
END_TEST

/* Tables of complex numbers are one bit for bit, in one dtype, and not to any unit. */
START_TEST(complex_tables_are_one_bit_for_bit) {
  for (uint64_t seed = 0; seed < 40; seed++)
    for (int other = 0; other < 3; other++) { /* 1: one part is off, 2: in another dtype */
      const rule_dtype dtype[] = {seed % 2 ? RULE_C64 : RULE_C128, seed % 2 ? RULE_C128 : RULE_C64};
      iso_rng rng = iso_rng_new(seed, 2);
      setup();
      rule_tensor *x = keep(make_as(dtype[0], SHAPE(ELEMENTS))),
                  *y = keep(make_as(dtype[other == 2], SHAPE(ELEMENTS)));
      for (int64_t i = 0; i < 2 * ELEMENTS; i++) {
        const float part = (float)iso_rng_normal(&rng);
        for (int s = 0; s < 2; s++) {
          const rule_tensor *t = s ? y : x;
          if (t->dtype == RULE_C64) ((float *)t->data)[i] = part;
          else ((double *)t->data)[i] = part;
        }
      }
      uint8_t *const low = y->data;
      if (other == 1) low[iso_rng_below(&rng, 2 * ELEMENTS) * rule_dtype_size(y->dtype) / 2] ^= 1;
      ck_assert_msg(same_value(CAP_BUFFER, x, y) == !other, "seed %d, %d: %s", (int)seed, other,
                    report.reason);
      teardown();
    }
}
END_TEST

static rule_tensor *filled(rule_dtype dtype, double x) {
  rule_tensor *t = keep(make_as(dtype, SHAPE(3)));
  for (int64_t i = 0; i < 3; i++) rule_tensor_set(t, i, x);
  return t;
}

static bool same_filled(cap_kind kind, rule_dtype a, double x, rule_dtype b, double y) {
  setup();
  rule_tensor *p = filled(a, x), *q = filled(b, y);
  const bool fine = same_value(kind, p, q);
  teardown();
  return fine;
}

START_TEST(one_number_everywhere_is_no_table) {
  const double next = nextafter(0.1, 1);
  ck_assert(same_filled(CAP_BUFFER, RULE_F64, 0.1, RULE_F64, 0.1));
  ck_assert(!same_filled(CAP_BUFFER, RULE_F64, 0.1, RULE_F64, next));
  ck_assert(same_filled(CAP_BUFFER, RULE_F64, 0.5, RULE_F32, 0.5));
  ck_assert(!same_filled(CAP_BUFFER, RULE_F64, 0.1, RULE_F32, 0.1));
  ck_assert(same_filled(CAP_BUFFER, RULE_I64, 7, RULE_I64, 7));
  ck_assert(!same_filled(CAP_BUFFER, RULE_I64, 7, RULE_I64, 8));
  ck_assert(!same_filled(CAP_BUFFER, RULE_I64, 7, RULE_I32, 7));
  ck_assert(!same_filled(CAP_BUFFER, RULE_I64, 7, RULE_F64, 7));
  ck_assert(!same_filled(CAP_BUFFER, RULE_F64, (double)INFINITY, RULE_F64, DBL_MAX));
  /* A parameter of floats has any value, and so has an input; one of integers is a constant. */
  ck_assert(!same_filled(CAP_PARAMETER, RULE_F64, 0.1, RULE_F64, 0.1));
  ck_assert(!same_filled(CAP_INPUT, RULE_F64, 0.1, RULE_F64, 0.1));
  ck_assert(same_filled(CAP_PARAMETER, RULE_I64, 7, RULE_I64, 7));
}
END_TEST

/* A captured call is a constant where all of its operands are; the certificate's own calls may not
 * round. */
START_TEST(own_calls_move_numbers_and_do_not_round) {
  for (int rounds = 0; rounds < 2; rounds++)
    for (int captured = 0; captured < 2; captured++) {
      iso_rng rng = iso_rng_new(1, 2);
      setup();
      rule_tensor *x = table(&rng, RULE_F64), *y = keep(make(SHAPE(ELEMENTS)));
      for (int64_t i = 0; i < ELEMENTS; i++)
        rule_tensor_set(y, i, (rounds ? 3 : -1) * rule_tensor_get(x, i));
      leaf(LEFT, CAP_BUFFER, "a", x);
      leaf(RIGHT, CAP_BUFFER, "b", y);
      const rule_term *call =
          rounds ? CALL("aten::mul.Tensor", v(0), real(3)) : CALL("aten::neg", v(0));
      uint32_t made = captured ? op(LEFT, call) : 0;
      add_captures();
      if (!captured) made = own(call);
      begin();
      const bool fine = accepted(chk_same_constants(&k, made, at(RIGHT, 0), 0));
      ck_assert_msg(fine == (captured || !rounds), "%d %d: %s", rounds, captured, report.reason);
      teardown();
    }
}
END_TEST

/* ---- but for rounding ---- */

static double rounded(double x, int digits) {
  int exponent;
  frexp(x, &exponent);
  const double unit = ldexp(1, exponent - digits);
  return nearbyint(x / unit) * unit;
}

/* The left stores, in a few digits, the product a * b that the right computes. */
static bool stored_taken(rule_dtype dtype, int digits, int units, iso_rng *rng) {
  setup();
  rule_tensor *a = table(rng, RULE_F64), *b = table(rng, RULE_F64),
              *t = keep(make_as(dtype, SHAPE(ELEMENTS)));
  const int64_t far = (int64_t)iso_rng_below(rng, ELEMENTS);
  for (int64_t i = 0; i < ELEMENTS; i++) {
    const double x = rounded(rule_tensor_get(a, i) * rule_tensor_get(b, i), digits);
    int exponent;
    frexp(x, &exponent);
    rule_tensor_set(t, i, x + (i == far ? units * ldexp(1, exponent - digits) : 0));
  }
  leaf(LEFT, CAP_BUFFER, "t", t);
  leaf(RIGHT, CAP_BUFFER, "a", a);
  leaf(RIGHT, CAP_BUFFER, "b", b);
  const uint32_t made = op(RIGHT, CALL("aten::mul.Tensor", v(0), v(1)));
  add_captures();
  begin();
  const bool fine = accepted(chk_rounded(&k, 0, at(RIGHT, made), 0));
  if (fine) ck_assert_int_eq(k.used.assumption[0].kind, RULE_ASSUMES_ROUNDING);
  teardown();
  return fine;
}

START_TEST(a_stored_table_is_what_it_was_computed_from) {
  static const struct {
    rule_dtype dtype;
    int digits;
  } as[] = {{RULE_F32, 24}, {RULE_F16, 11}, {RULE_BF16, 8}, {RULE_F64, 24}, {RULE_F64, 11}};
  for (uint64_t seed = 0; seed < 60; seed++)
    for (size_t n = 0; n < sizeof as / sizeof *as; n++)
      for (int units = -4; units <= 4; units += 4) {
        iso_rng rng = iso_rng_new(seed, 3);
        ck_assert_msg(stored_taken(as[n].dtype, as[n].digits, units, &rng) == (units == 0),
                      "seed %d, %s of %d digits, %d units: %s", (int)seed,
                      rule_dtype_name(as[n].dtype), as[n].digits, units, report.reason);
      }
}
END_TEST

/* The left stores large numbers that float32 rounded, less 4000, as the right computes it: the
 * differences may be off by hundreds of units. `wrong`: one that is off by this many, or all;
 * `twice`: in a layout that repeats each. */
static bool rest_taken(int wrong, bool twice, bool all, iso_rng *rng) {
  const int64_t n = twice ? 2 * ELEMENTS : ELEMENTS;
  setup();
  rule_tensor *a = keep(make_as(RULE_F32, SHAPE(n))), *b = keep(make_as(RULE_F32, SHAPE(n))),
              *t = keep(make_as(RULE_F32, SHAPE(n)));
  const int64_t far = (int64_t)iso_rng_below(rng, ELEMENTS);
  for (int64_t i = 0; i < n; i++) {
    const double large = i < ELEMENTS ? rounded(4001 + 30 * iso_rng_uniform(rng), 24)
                                      : rule_tensor_get(a, i - ELEMENTS),
                 x = large - 4000;
    int exponent;
    frexp(x, &exponent);
    rule_tensor_set(a, i, large);
    rule_tensor_set(b, i, -4000);
    rule_tensor_set(t, i, x + (all || i % ELEMENTS == far ? wrong * ldexp(1, exponent - 24) : 0));
  }
  leaf(LEFT, CAP_BUFFER, "t", t);
  leaf(RIGHT, CAP_BUFFER, "a", a);
  leaf(RIGHT, CAP_BUFFER, "b", b);
  const uint32_t made = op(RIGHT, CALL("aten::add.Tensor", v(0), v(1)));
  add_captures();
  begin();
  const bool fine = accepted(chk_rounded(&k, 0, at(RIGHT, made), 0));
  teardown();
  return fine;
}

START_TEST(one_wrong_element_is_not_excused_by_what_rounding_might_do) {
  for (uint64_t seed = 0; seed < 20; seed++)
    for (int twice = 0; twice < 2; twice++) {
      iso_rng rng = iso_rng_new(seed, 7);
      ck_assert_msg(rest_taken(0, twice, false, &rng), "seed %d: %s", (int)seed, report.reason);
      ck_assert_msg(rest_taken(20, twice, true, &rng), "seed %d: %s", (int)seed, report.reason);
      ck_assert_msg(!rest_taken(20, twice, false, &rng), "seed %d", (int)seed);
    }
}
END_TEST

/* Nothing is stored in few digits: there is nothing that rounding could explain. */
START_TEST(numbers_of_all_digits_are_compared_as_they_are) {
  for (uint64_t seed = 0; seed < 60; seed++)
    for (int power = -20; power <= -10; power += 5) {
      iso_rng rng = iso_rng_new(seed, 4);
      setup();
      const rule_tensor *x = table(&rng, RULE_F64);
      rule_tensor *y = moved(x, -1, 0);
      const int64_t i = (int64_t)iso_rng_below(&rng, ELEMENTS);
      const double at = rule_tensor_get(x, i);
      rule_tensor_set(y, i, at + fmax(fabs(at), 1) * pow(10, power));
      leaf(LEFT, CAP_BUFFER, "a", moved(x, -1, 0));
      leaf(RIGHT, CAP_BUFFER, "b", y);
      add_captures();
      begin();
      const bool fine = accepted(chk_rounded(&k, 0, 1, 0));
      ck_assert_msg(fine == (power < -14), "seed %d, 1e%d: %s", (int)seed, power, report.reason);
      teardown();
    }
}
END_TEST

/* 0 and -0 go through a product or a sum to a call that divides by them, is divided, or reads their
 * sign; calls of constants alone keep the sign of a sum. */
static bool zeros_joined(int end, int way, bool below) {
  const rule_shape three = SHAPE(3);
  setup();
  const uint32_t x = leaf(LEFT, CAP_INPUT, "x", keep(make(SHAPE(3)))),
                 z = leaf(LEFT, CAP_BUFFER, "z", filled(RULE_F32, 0));
  const rule_term *ways[] = {NULL, CALL("aten::mul.Tensor", v(z), num(3)),
                             CALL("aten::add.Tensor", v(z), v(x)),
                             CALL("aten::add.Tensor", v(z), v(z))};
  const uint32_t t = way ? shaped(LEFT, ways[way], RULE_F32, three) : z;
  const rule_term *ends[] = {CALL("aten::div.Tensor", v(x), v(t)),
                             CALL("aten::div.Tensor", v(t), v(x)),
                             CALL("aten::copysign.Tensor", v(x), v(t)),
                             CALL("aten::reciprocal", v(t)), CALL("aten::exp", v(t))};
  shaped(LEFT, ends[end], RULE_F32, three);
  leaf(RIGHT, CAP_BUFFER, "z", filled(RULE_F32, below ? -0.0 : 0.0));
  add_captures();
  begin();
  ck_assert(accepted(chk_same_constants(&k, z, (uint32_t)k.graph[LEFT]->n_nodes, 0)));
  const bool fine = accepted(chk_zeros(&k));
  teardown();
  return fine;
}

START_TEST(zeros_of_two_signs_are_one_where_nothing_tells_them_apart) {
  enum { DIVIDES, IS_DIVIDED, READS, INVERTS, NEITHER, N_ENDS, BY_SUM = 2, N_WAYS = 4 };
  for (int end = 0; end < N_ENDS; end++)
    for (int way = 0; way < N_WAYS; way++) {
      const bool told = way != BY_SUM && end != IS_DIVIDED && end != NEITHER;
      ck_assert_msg(zeros_joined(end, way, true) == !told, "end %d, way %d: %s", end, way,
                    report.reason);
      ck_assert(zeros_joined(end, way, false));
    }
}
END_TEST

/* Products of the certificate's own may not round. */
static bool own_product(double x, double y) {
  setup();
  const uint32_t a = leaf(LEFT, CAP_BUFFER, "a", filled(RULE_F32, x));
  leaf(RIGHT, CAP_BUFFER, "b", filled(RULE_F32, x));
  add_captures();
  const uint32_t t = own(CALL("aten::mul.Tensor", v(a), real(y)));
  begin();
  const chk_values *value;
  uint32_t on;
  const bool fine = accepted(chk_constant(&k, t, 0, &value, &on)) && value;
  teardown();
  return fine;
}

START_TEST(products_of_the_certificate_are_exact) {
  ck_assert(own_product(0, 3));
  ck_assert(own_product(1.5, 0.25));
  ck_assert(own_product(3, -7));
  ck_assert(!own_product(0.1, 0.1));
  ck_assert(!own_product(16777215, 1.0 / 3));
  ck_assert(!own_product(1e-30, 1e-30));
}
END_TEST

/* Beside 1e16, another element that moves by a thousandth is another one. */
START_TEST(large_elements_excuse_no_other) {
  for (int power = 4; power <= 300; power += 37)
    for (int apart = 0; apart < 2; apart++) {
      iso_rng rng = iso_rng_new((uint64_t)power, 6);
      setup();
      rule_tensor *x = table(&rng, RULE_F64);
      rule_tensor_set(x, 3, pow(10, power));
      rule_tensor *y = moved(x, -1, 0);
      rule_tensor_set(y, 5, rule_tensor_get(x, 5) + apart * 1e-3);
      leaf(LEFT, CAP_BUFFER, "a", x);
      leaf(RIGHT, CAP_BUFFER, "b", y);
      add_captures();
      begin();
      const bool fine = accepted(chk_rounded(&k, 0, 1, 0));
      ck_assert_msg(fine == !apart, "1e%d, %d: %s", power, apart, report.reason);
      teardown();
    }
}
END_TEST

/* x * (a number as a narrow dtype has it), and the certificate's x * (the number). */
START_TEST(a_literal_is_rounded_by_half_a_unit) {
  static const int digits[] = {8, 11, 24};
  for (uint64_t seed = 0; seed < 200; seed++)
    for (size_t n = 0; n < 3; n++)
      for (int units = 0; units < 2; units++) {
        iso_rng rng = iso_rng_new(seed, 5);
        setup();
        rule_tensor *x = noise(&rng, SHAPE(2));
        const double number = iso_rng_normal(&rng), narrow = rounded(number, digits[n]);
        int exponent;
        frexp(narrow, &exponent);
        const double unit = ldexp(1, exponent - digits[n]), to = number + 1.5 * units * unit;
        leaf(LEFT, CAP_INPUT, "x", x);
        op(LEFT, CALL("aten::mul.Tensor", v(0), real(narrow)));
        leaf(RIGHT, CAP_INPUT, "x", x);
        add_captures();
        const uint32_t b = own(CALL("aten::mul.Tensor", v(0), real(to)));
        begin();
        const bool fine = accepted(chk_rounded(&k, 1, b, 0));
        char text[40];
        snprintf(text, sizeof text, "%.6g", narrow);
        /* Somebody may have typed it, or it may be a number of fewer digits. */
        const bool other =
            strtod(text, NULL) == narrow || (n && rounded(narrow, digits[n - 1]) == narrow);
        if (!other)
          ck_assert_msg(fine == !units, "seed %d, %d digits, %d: %s", (int)seed, digits[n], units,
                        report.reason);
        teardown();
      }
}
END_TEST

int main(void) {
  Suite *s = suite_create("constants");
  TCase *t = tcase_create("constants");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, tables_are_one_to_two_units_in_the_last_place);
  tcase_add_test(t, complex_tables_are_one_bit_for_bit);
  tcase_add_test(t, one_number_everywhere_is_no_table);
  tcase_add_test(t, own_calls_move_numbers_and_do_not_round);
  tcase_add_test(t, a_stored_table_is_what_it_was_computed_from);
  tcase_add_test(t, one_wrong_element_is_not_excused_by_what_rounding_might_do);
  tcase_add_test(t, numbers_of_all_digits_are_compared_as_they_are);
  tcase_add_test(t, zeros_of_two_signs_are_one_where_nothing_tells_them_apart);
  tcase_add_test(t, products_of_the_certificate_are_exact);
  tcase_add_test(t, large_elements_excuse_no_other);
  tcase_add_test(t, a_literal_is_rounded_by_half_a_unit);
  suite_add_tcase(s, t);
  return run_suite(s);
}
