/* Calls that surely give numbers, and calls that see that something is none. */
#include <check.h>
#include <stdlib.h>

#include "rules/domain.h"
#include "rules/rules.h"
#include "tests/support/suite.h"

static iso_arena a;

static void setup(void) { iso_arena_init(&a); }
static void teardown(void) { iso_arena_fini(&a); }

static const rule_term *call(const char *op, const rule_term *x, const rule_term *y) {
  const rule_term *child[2] = {x, y};
  return rule_op(&a, op, child, y ? 2 : 1);
}

static bool undefined(const rule_term *t) { return rule_fact_of(t, NULL).undefined; }
static bool seen(const rule_term *t) { return rule_fact_of(t, NULL).seen; }

/* An element chosen among positive numbers is positive; its place may be 0. */
START_TEST(places) {
  const rule_term *x = rule_var(&a, 0), *zero = rule_int(&a, 0), *one = rule_int(&a, 1);
  const char *const of[] = {"aten::topk", "aten::max.dim", "aten::sort"};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
    const rule_term *above = call(of[i], call("aten::exp", x, NULL), one),
                    *any = call(of[i], x, one);
    ck_assert(!undefined(call("aten::div.Tensor", x, call("getitem", above, zero))));
    ck_assert(undefined(call("aten::div.Tensor", x, call("getitem", above, one))));
    ck_assert(undefined(call("aten::div.Tensor", x, call("getitem", any, zero))));
    ck_assert(!undefined(call("aten::sqrt", call("getitem", any, one), NULL)));
    ck_assert(undefined(call("aten::sqrt", call("getitem", any, zero), NULL)));
  }
}
END_TEST

START_TEST(poles) {
  const rule_term *x = rule_var(&a, 0), *y = rule_var(&a, 1), *one = rule_float(&a, 1);
  ck_assert(!undefined(x));
  ck_assert(undefined(call("aten::div.Tensor", x, y)));
  ck_assert(!undefined(call("aten::div.Scalar", x, one)));
  ck_assert(undefined(call("aten::div.Scalar", x, rule_float(&a, 0))));
  ck_assert(undefined(call("aten::sqrt", x, NULL)));
  ck_assert(!undefined(call("aten::sqrt", call("aten::mul.Tensor", x, x), NULL)));
  ck_assert(undefined(call("aten::rsqrt", call("aten::square", x, NULL), NULL)));
  const rule_term *above = call("aten::add.Scalar", call("aten::square", x, NULL), one);
  ck_assert(!undefined(call("aten::rsqrt", above, NULL)));
  ck_assert(!undefined(call("aten::div.Tensor", x, call("aten::exp", y, NULL))));
  ck_assert(!undefined(call("aten::log", call("aten::sigmoid", y, NULL), NULL)));
  /* Minus infinity where an input says, and where constants do: a row of it alone is undefined. */
  const rule_term *fill[3] = {x, y, rule_float(&a, -1.0 / 0.0)};
  const rule_term *filled = rule_op(&a, "aten::masked_fill.Scalar", fill, 3);
  ck_assert(undefined(filled));
  const rule_fact given[2] = {{0}, {.constant = true}};
  ck_assert(!rule_fact_of(filled, given).undefined && rule_fact_of(filled, given).masked);
  ck_assert(!rule_fact_of(call("aten::softmax.int", filled, one), given).undefined);
  ck_assert(rule_fact_of(call("aten::mul.Tensor", filled, x), given).undefined);
  /* A size that is written as none at all is the same on all inputs, too. */
  const rule_term *ones = call("aten::new_ones", y, rule_list(&a, NULL, 0));
  const rule_term *by[3] = {x, ones, rule_float(&a, -1.0 / 0.0)};
  ck_assert(rule_fact_of(rule_op(&a, "aten::masked_fill.Scalar", by, 3), given).masked);
}
END_TEST

/* Masked scores with a column that nothing masks: each row keeps a number, its largest one is a
 * number, and the other elements of the rows are masked as before. Along another dimension, beside
 * a column that is masked or has no elements, nothing shows it. */
START_TEST(kept) {
  const rule_term *scores = rule_var(&a, 0), *where = rule_var(&a, 1), *sink = rule_var(&a, 2);
  const rule_term *last = rule_int(&a, -1), *first = rule_int(&a, 0);
  const rule_term *fill[3] = {scores, where, rule_float(&a, -1.0 / 0.0)};
  const rule_term *filled = rule_op(&a, "aten::masked_fill.Scalar", fill, 3);
  const rule_term *parts[2] = {filled, sink}, *masked[2] = {filled, filled};
  const rule_term *joined = call("aten::cat", rule_list(&a, parts, 2), last);
  const rule_term *most = call("getitem", call("aten::max.dim", joined, last), first);
  const rule_term *left = call("aten::sub.Tensor", joined, most);
  const rule_fact given[3] = {{.some = true}, {.constant = true}, {.some = true}};
  ck_assert(!rule_fact_of(most, given).undefined && !rule_fact_of(most, given).masked);
  ck_assert(!rule_fact_of(left, given).undefined && rule_fact_of(left, given).masked);
  ck_assert(!rule_fact_of(call("aten::softmax.int", left, last), given).undefined);
  ck_assert(rule_fact_of(call("aten::sub.Tensor", most, joined), given).undefined);
  ck_assert(rule_fact_of(call("aten::sub.Tensor", joined, joined), given).undefined);
  const rule_term *others[] = {
      call("aten::max.dim", joined, first), call("aten::max.dim", filled, last),
      call("aten::min.dim", joined, last),
      call("aten::max.dim", call("aten::neg", joined, NULL), last),
      call("aten::max.dim", call("aten::cat", rule_list(&a, masked, 2), last), last)};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    const rule_fact f = rule_fact_of(others[i], given);
    ck_assert(f.undefined || f.masked);
    const rule_term *value = call("getitem", others[i], first);
    ck_assert(rule_fact_of(call("aten::sub.Tensor", joined, value), given).undefined);
  }
  const rule_fact unknown[3] = {{0}, {.constant = true}, {0}};
  ck_assert(rule_fact_of(call("aten::max.dim", joined, last), unknown).masked);
  const rule_fact none[3] = {{.some = true}, {.constant = true}, {.some = true, .undefined = true}};
  ck_assert(rule_fact_of(call("aten::max.dim", joined, last), none).undefined);
  const rule_shape empty = {.rank = 2, .dim = {3, 0}}, some = {.rank = 2, .dim = {3, 1}};
  ck_assert(!rule_fact_in_shape(given[2], &empty).some && rule_fact_in_shape(none[0], &some).some);
}
END_TEST

/* What comparing picks of masked numbers, and what places that constants give pick: minus infinity
 * where these decide it. Where numbers decide, and of sums and exponentials, nothing is known. */
START_TEST(picked) {
  const rule_term *x = rule_var(&a, 0), *where = rule_var(&a, 1), *by = rule_var(&a, 2);
  const rule_term *last = rule_int(&a, -1), *low = rule_float(&a, -2.0);
  const rule_term *fill[3] = {x, where, rule_float(&a, -1.0 / 0.0)};
  const rule_term *filled = rule_op(&a, "aten::masked_fill.Scalar", fill, 3);
  const rule_fact given[3] = {{.some = true}, {.constant = true}, {.some = true}};
  const rule_term *const of[3] = {filled, last, by}, *const at[3] = {filled, last, where};
  const rule_term *masked[] = {
      call("aten::amax", filled, last),       call("aten::amin", filled, last),
      call("aten::maximum", filled, x),       call("aten::unfold", filled, last),
      call("aten::flip", filled, last),       call("aten::sort", filled, last),
      call("aten::max_pool1d", filled, last), rule_op(&a, "aten::gather", at, 3)};
  const rule_term *none[] = {rule_op(&a, "aten::gather", of, 3), call("aten::exp", filled, NULL),
                             call("aten::sum.dim_IntList", filled, last),
                             call("aten::neg", filled, NULL)};
  for (size_t i = 0; i < sizeof masked / sizeof *masked; i++) {
    const rule_fact f = rule_fact_of(masked[i], given);
    ck_assert_msg(f.masked && !f.undefined, "%s", masked[i]->u.s);
  }
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    ck_assert_msg(rule_fact_of(none[i], given).undefined, "%s", none[i]->u.s);
  const rule_fact relu = rule_fact_of(call("aten::relu", filled, NULL), given),
                  clamped = rule_fact_of(call("aten::clamp_min", filled, low), given);
  ck_assert(!relu.masked && !relu.undefined && !clamped.masked && !clamped.undefined);
}
END_TEST

START_TEST(observers) {
  const rule_term *x = rule_var(&a, 0), *y = rule_var(&a, 1);
  const rule_term *q = call("aten::div.Tensor", x, y);
  ck_assert(!seen(q));
  ck_assert(!seen(call("aten::isnan", x, NULL)));
  ck_assert(seen(call("aten::isnan", q, NULL)));
  ck_assert(!undefined(call("aten::nan_to_num", q, NULL)));
  ck_assert(seen(call("aten::gt.Tensor", q, x)));
  ck_assert(undefined(call("aten::relu", q, NULL)));
  ck_assert(!seen(call("aten::relu", q, NULL)));
  ck_assert(rule_looks_at_undefined(call("aten::exp", call("aten::isinf", x, NULL), NULL)));
  ck_assert(!rule_looks_at_undefined(call("aten::exp", x, NULL)));
  ck_assert(seen(call("aten::pow.Tensor_Scalar", q, rule_float(&a, 0))));
  ck_assert(seen(call("aten::pow.Tensor_Scalar", q, rule_float(&a, -2))));
  ck_assert(!seen(call("aten::pow.Tensor_Scalar", q, rule_float(&a, 0.5))));
  ck_assert(!rule_looks_at_undefined(call("aten::pow.Tensor_Scalar", x, rule_int(&a, 2))));
  ck_assert(rule_looks_at_undefined(call("aten::pow.Tensor_Tensor", x, y)));
  ck_assert_int_eq(rule_undefined_of("aten::special_log1p"), RULE_UNDEFINED_MAKES);
  ck_assert_int_eq(rule_undefined_of("mine::op"), RULE_UNDEFINED_PASSES);
}
END_TEST

/* The parts of a tensor have its bounds; of other operators' results nothing is known. */
START_TEST(parts) {
  const rule_term *above = call("aten::exp", rule_var(&a, 0), NULL), *one = rule_int(&a, 1);
  const rule_term *cut = call("getitem", call("aten::split.Tensor", above, one), one);
  const rule_term *norm = call("getitem", call("aten::native_layer_norm", above, one), one);
  ck_assert(!undefined(call("aten::log", cut, NULL)));
  ck_assert(undefined(call("aten::log", norm, NULL)));
  cut = call("getitem", call("aten::split.Tensor", rule_var(&a, 0), one), one);
  ck_assert(undefined(call("aten::log", cut, NULL)));
}
END_TEST

/* The mean of a loss over its classes' weights is a number where no class is the ignored one. */
START_TEST(losses) {
  const rule_term *x = rule_var(&a, 0), *target = rule_var(&a, 1), *none = rule_none(&a);
  const rule_term *one = rule_int(&a, 1);
  const rule_domain any = rule_domain_all("who"), from = {.low = 0, .high = 9},
                    above = {.low = 0.5, .high = 9};
  const rule_fact weighed[] = {{0}, rule_fact_of_domain(&from), rule_fact_of_domain(&above)};
  const rule_fact open[] = {{0}, rule_fact_of_domain(&any), rule_fact_of_domain(&from)};
  const struct {
    const rule_term *weight;
    int64_t ignored;
    const rule_fact *of;
    bool good;
  } tries[] = {{none, -100, weighed, true},        {none, 0, weighed, false},
               {none, -100, open, false},          {rule_var(&a, 2), -1, weighed, true},
               {rule_var(&a, 2), -1, open, false}, {rule_var(&a, 0), -1, weighed, false}};
  for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
    const rule_term *ignored = rule_int(&a, tries[i].ignored);
    const rule_term *there[5] = {x, target, tries[i].weight, one, ignored};
    const rule_term *loss = rule_op(&a, "aten::nll_loss_forward", there, 5);
    const rule_term *total = call("getitem", loss, one);
    const rule_term *back[7] = {x, x, target, tries[i].weight, one, ignored, total};
    const rule_term *slope = rule_op(&a, "aten::nll_loss_backward", back, 7);
    ck_assert_int_eq(rule_fact_of(call("getitem", loss, rule_int(&a, 0)), tries[i].of).undefined,
                     !tries[i].good);
    ck_assert_int_eq(rule_fact_of(slope, tries[i].of).undefined, !tries[i].good);
    back[6] = x; /* any number, and so perhaps zero */
    ck_assert(rule_fact_of(rule_op(&a, "aten::nll_loss_backward", back, 7), tries[i].of).undefined);
  }
}
END_TEST

/* Nothing is below zero in a tensor without elements, and its mean is none. */
START_TEST(empty) {
  const rule_fact f = {.nonnegative = true, .nonzero = true};
  const rule_shape some = {.rank = 2, .dim = {2, 3}}, nothing = {.rank = 2, .dim = {2, 0}};
  ck_assert(rule_fact_in_shape(f, &some).nonnegative && rule_fact_in_shape(f, &some).nonzero);
  ck_assert(!rule_fact_in_shape(f, &nothing).nonnegative);
  ck_assert(!rule_fact_in_shape(f, &nothing).nonzero);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("undefined");
  TCase *t = tcase_create("undefined");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, places);
  tcase_add_test(t, poles);
  tcase_add_test(t, picked);
  tcase_add_test(t, observers);
  tcase_add_test(t, kept);
  tcase_add_test(t, parts);
  tcase_add_test(t, losses);
  tcase_add_test(t, empty);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
