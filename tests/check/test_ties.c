/* Places of equal numbers: two programs that find them in other orders are one, and programs that
 * differ in any other place are not, however many numbers are equal. */
#include <check.h>

#include "egraph/base/rng.h"
#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

enum { NUMBERS = 12 };

/* A tensor of numbers of which many are equal. */
static rule_tensor *few_numbers(iso_rng *rng, uint64_t kinds) {
  rule_tensor *t = keep(make(SHAPE(NUMBERS)));
  for (int64_t i = 0; i < NUMBERS; i++)
    rule_tensor_set(t, i, (double)iso_rng_below(rng, kinds) - 1);
  return t;
}

static uint32_t order(int s, uint32_t x, bool descending) {
  return op(s, CALL("aten::argsort", v(x), num(0), rule_bool(&report.arena, descending)));
}

static iso_code claim_equal(uint32_t l, uint32_t r) {
  result(LEFT, "y", l);
  result(RIGHT, "y", r);
  add_captures();
  add_step(CHK_LEAF, at(RIGHT, 0), 0);
  begin();
  unite(at(RIGHT, 0), 0);
  add_output("y", "y", l, at(RIGHT, r));
  iso_code c = chk_run(&k);
  if (!c && !chk_settled(&k)) c = chk_redrawn(&k);
  return c;
}

/* The places of x upwards, against those of -x downwards; `other`: against those of -x * x, which
 * has another order where x has numbers below 0. */
START_TEST(places_of_equal_numbers_are_left_open) {
  size_t n_open = 0;
  for (uint64_t seed = 0; seed < 60; seed++)
    for (int other = 0; other < 2; other++) {
      setup();
      iso_rng rng = iso_rng_new(seed, 3);
      rule_tensor *x = few_numbers(&rng, 3 + seed % 9);
      for (int s = 0; s < 2; s++) leaf(s, CAP_INPUT, "x", x);
      uint32_t of = op(RIGHT, CALL("aten::neg", v(0)));
      if (other) of = op(RIGHT, CALL("aten::mul.Tensor", v(of), v(0)));
      const uint32_t l = order(LEFT, 0, false), r = order(RIGHT, of, true);
      rule_tensor *p = run_op(side[LEFT].node[l].call, &x),
                  *neg = run_op(side[RIGHT].node[1].call, &x), *q = places_in_order(neg, true);
      n_open += !other && !small_compare(NULL, p, q, 0).equal;
      const bool fine = accepted(claim_equal(l, r));
      ck_assert_msg(fine == !other, "seed %d, %d: %s", (int)seed, other, report.reason);
      rule_tensor_unref(p);
      rule_tensor_unref(q);
      rule_tensor_unref(neg);
      teardown();
    }
  ck_assert_msg(n_open > 40, "only %zu pairs have an open order", n_open);
}
END_TEST

/* A sum of places that an order decides, and of a number that is off, differs in every place. */
START_TEST(what_no_order_decides_is_refused) {
  for (uint64_t seed = 0; seed < 30; seed++) {
    setup();
    iso_rng rng = iso_rng_new(seed, 4);
    rule_tensor *x = few_numbers(&rng, 4);
    rule_tensor_set(x, 0, 7); /* alone */
    for (int s = 0; s < 2; s++) leaf(s, CAP_INPUT, "x", x);
    const uint32_t l = order(LEFT, 0, false), of = op(RIGHT, CALL("aten::neg", v(0))),
                   r = order(RIGHT, of, true);
    const uint32_t lt = op(LEFT, CALL("aten::mul.Tensor", v(l), num(3))),
                   rt = op(RIGHT, CALL("aten::mul.Tensor", v(r), num(4)));
    ck_assert_msg(!accepted(claim_equal(lt, rt)), "seed %d", (int)seed);
    teardown();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("ties");
  TCase *t = tcase_create("ties");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, places_of_equal_numbers_are_left_open);
  tcase_add_test(t, what_no_order_decides_is_refused);
  suite_add_tcase(s, t);
  return run_suite(s);
}
