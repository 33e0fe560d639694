/* Comparing two graphs, on graphs of a few operators and an oracle of plain C: equal terms need no
 * rule, a pair that one rule joins is joined by one, and a pair that values or the oracle do not
 * support is never called equivalent. */
#include "tests/synth/small_graphs.h"
#include "tests/support/suite.h"

/* ---- equivalent ---- */

START_TEST(equal_graphs_need_no_rule) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  graph *side[2] = {&w.l, &w.r};
  for (int k = 0; k < 2; k++) {
    const uint32_t p = weight(side[k], "b", b), i = input(side[k], x);
    output(side[k], "y", relu(side[k], add(side[k], i, p)));
  }
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.res->n_rules, 0);
  ck_assert_uint_eq(w.res->n_synthesised, 0);
  ck_assert_uint_eq(w.oracle.n_decided, 0);
  ck_assert_int_eq(w.res->evidence, RULE_PROVED);
  ck_assert_uint_eq(w.res->n_unexplained, 0);
  ck_assert_str_eq(w.res->pair[0].relation, "equal");
  ck_assert(w.res->pair[0].equivalent);
  size_t leaves = 0;
  for (size_t i = 0; i < w.res->n_assumptions; i++)
    leaves += w.res->assumption[i].kind == RULE_ASSUMES_LEAF;
  ck_assert_uint_eq(leaves, 2);
}
END_TEST

static void commuted(int times) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t lx = input(&w.l, x), rx = input(&w.r, x);
  uint32_t l = lx, r = rx;
  for (int k = 0; k < times; k++) {
    rule_tensor *b = noise((uint64_t)(k + 2), SHAPE(3), 0, 1);
    const char *name = iso_arena_printf(&w.arena, "b%d", k);
    const uint32_t lb = weight(&w.l, name, b), rb = weight(&w.r, name, b);
    l = relu(&w.l, add(&w.l, l, lb));
    r = relu(&w.r, add(&w.r, rb, r));
  }
  output(&w.l, "y", l);
  output(&w.r, "y", r);
}

START_TEST(commuted_add_takes_one_rule) {
  commuted(1);
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.res->n_rules, 1);
  ck_assert_uint_eq(n_needed(), 1);
  const synth_rule_use *use = &w.res->rule[0];
  ck_assert_uint_eq(use->uses, 1);
  ck_assert(!use->loaded && use->verdict.status == RULE_TESTED);
  ck_assert_int_eq(w.res->evidence, RULE_TESTED);
  ck_assert_str_eq(use->what->lhs->u.s, "aten::add.Tensor");
  ck_assert_str_eq(use->what->rhs->u.s, "aten::add.Tensor");
  ck_assert_uint_eq(use->what->n_vars, 2);
  ck_assert_uint_ge(w.res->n_steps, 1);
  ck_assert_uint_eq(w.res->n_synthesised, 1);
}
END_TEST

START_TEST(a_rule_is_found_once_and_used_again) {
  commuted(3);
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.res->n_rules, 1);
  ck_assert_uint_eq(w.res->n_synthesised, 1);
  ck_assert_uint_eq(w.res->rule[0].uses, 3);
  ck_assert_uint_eq(w.res->n_reused, 2);
}
END_TEST

START_TEST(known_rules_are_validated_and_used) {
  w.known = parse("(rule commute (var x f (A B)) (var y f (B)) (lhs (aten::add.Tensor x y)) (rhs "
                  "(aten::add.Tensor y x)))");
  commuted(2);
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.oracle.n_decided, 2); /* for all sizes, then for these */
  ck_assert_uint_eq(w.res->n_rules, 1);
  ck_assert(w.res->rule[0].loaded && w.res->rule[0].needed);
  ck_assert_uint_eq(w.res->n_synthesised, 0);
}
END_TEST

START_TEST(outputs_pair_by_name_and_up_to_sizes_1) {
  rule_tensor *x = noise(1, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), b = input(&w.r, x);
  output(&w.l, "y", relu(&w.l, op(&w.l, "aten::unsqueeze", v(a), num(0), NULL)));
  output(&w.l, "z", neg(&w.l, a));
  output(&w.r, "z", neg(&w.r, b));
  output(&w.r, "y", relu(&w.r, b));
  w.options.seed = 0;
  compare_one(&w.l, &w.r, SYNTH_EQUIVALENT);
  ck_assert_str_eq(w.res->pair[0].right, "y");
  ck_assert_str_eq(w.res->pair[0].relation, "unsqueeze(right, 0)");
  ck_assert_str_eq(w.res->pair[1].right, "z");
  ck_assert_str_eq(w.res->pair[1].relation, "equal");
  ck_assert_uint_eq(n_needed(), 1);
}
END_TEST

START_TEST(a_transposed_weight_is_related) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *m = noise(2, SHAPE(3, 4), 0, 1);
  const uint32_t a = input(&w.l, x), lm = weight(&w.l, "m", m);
  output(&w.l, "y", add(&w.l, a, op(&w.l, "aten::transpose.int", v(lm), num(0), num(1))));
  const uint32_t b = input(&w.r, x), rm = weight(&w.r, "m", keep(transposed(m, 0, 1)));
  output(&w.r, "y", add(&w.r, b, rm));
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.res->n_unexplained, 0);
}
END_TEST

START_TEST(ones_that_are_a_term_go_by_a_rule) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t a = input(&w.l, x), b = input(&w.r, x);
  output(&w.l, "y", relu(&w.l, mul(&w.l, a, ones(&w.l, 3))));
  output(&w.r, "y", relu(&w.r, b));
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(n_needed(), 1);
}
END_TEST

/* ---- different ---- */

START_TEST(a_missing_relu_is_different_where_captured_values_hide_it) {
  rule_tensor *x = positive(1, SHAPE(6, 4), 1), *b = positive(2, SHAPE(4), 0.01);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b);
  output(&w.l, "y", neg(&w.l, relu(&w.l, add(&w.l, a, lb))));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b);
  output(&w.r, "y", neg(&w.r, add(&w.r, c, rb)));
  expect(SYNTH_DIFFERENT);
  ck_assert(w.res->redrawn);
  ck_assert_str_eq(w.res->witness_output, "y");
  ck_assert(w.res->witness_abs > 0 && w.res->witness_rel > 1e-6);
  ck_assert(!w.res->pair[0].equivalent);
  /* left: the relu; right: what it is missing behind. */
  ck_assert_uint_eq(w.res->n_divergences, 1);
  const synth_divergence *d = &w.res->divergence[0];
  ck_assert_int_eq(d->left, 3);
  ck_assert_int_eq(d->right, 2);
  ck_assert_ptr_nonnull(strstr(d->hint, "on the left relu is applied, and on the right it is not"));
  ck_assert_uint_eq(d->n_left_region, 2);
  ck_assert_uint_eq(d->left_region[0], 3);
  ck_assert_uint_eq(d->left_region[1], 4);
  ck_assert_uint_eq(d->n_right_region, 1);
  /* Values tell them apart, so that the oracle, which would say yes, is never asked. */
  w.oracle.judge = JUDGE_YES;
  expect(SYNTH_DIFFERENT);
}
END_TEST

START_TEST(a_missing_relu_that_only_other_signs_show_is_different) {
  rule_tensor *x = noise(1, SHAPE(6, 4), 1000, 1);
  const uint32_t a = input(&w.l, x), b = input(&w.r, x);
  output(&w.l, "y", neg(&w.l, relu(&w.l, a)));
  output(&w.r, "y", neg(&w.r, b));
  expect(SYNTH_DIFFERENT);
  ck_assert_uint_eq(n_needed(), 0);
  ck_assert_uint_ge(w.res->n_refuted, 1);
  ck_assert(w.res->redrawn);
  /* Nor does a rule that somebody wrote down. */
  w.known = parse(
      "(rule wrong (evidence proved \"all shapes\") (var x f _) (lhs (aten::relu x)) (rhs x))");
  expect(SYNTH_DIFFERENT);
  ck_assert_uint_eq(w.res->n_rules, 0);
}
END_TEST

START_TEST(a_second_set_of_inputs_is_a_witness_of_its_own) {
  rule_tensor *x = positive(1, SHAPE(6, 4), 1), *x2 = noise(2, SHAPE(6, 4), 0, 1);
  const uint32_t a = leaf(&w.l, SYNTH_INPUT, "x", x, x2), b = leaf(&w.r, SYNTH_INPUT, "x", x, x2);
  w.l.g.n_sets = w.r.g.n_sets = 2;
  output(&w.l, "y", neg(&w.l, relu(&w.l, a)));
  output(&w.r, "y", neg(&w.r, b));
  expect(SYNTH_DIFFERENT);
  ck_assert(!w.res->redrawn);
}
END_TEST

START_TEST(weights_of_ones_that_are_dropped_are_different) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t a = input(&w.l, x), one = weight(&w.l, "w", constant(SHAPE(3), 1));
  output(&w.l, "y", relu(&w.l, mul(&w.l, a, one)));
  const uint32_t b = input(&w.r, x);
  output(&w.r, "y", relu(&w.r, b));
  expect(SYNTH_DIFFERENT);
  ck_assert(w.res->redrawn);
  ck_assert_uint_eq(w.res->n_unexplained, 1);
  ck_assert(!w.res->unexplained[0].right);
  ck_assert_uint_eq(w.res->unexplained[0].node, one);
  ck_assert_int_eq(w.res->divergence[0].left, one);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_ptr_nonnull(strstr(w.res->divergence[0].hint, "multiplied by \"w\""));
}
END_TEST

/* ---- what each node rests on ---- */

START_TEST(a_node_stands_by_congruence_rule_or_assumption) {
  commuted(1);
  neg(&w.l, 0); /* nobody reads it */
  expect(SYNTH_EQUIVALENT);
  for (int side = 0; side < 2; side++) {
    stands(side, 0, SYNTH_ASSUMED);
    stands(side, 1, SYNTH_ASSUMED);
    stands(side, 2, SYNTH_BY_RULE);
    stands(side, 3, SYNTH_SAME);
  }
  stands(0, 4, SYNTH_UNREAD);
  ck_assert_uint_eq(w.res->rule[0].n_of_class, 1);
  ck_assert_uint_eq(w.res->rule[0].of_class[0], w.res->class_of[0][2]);
  ck_assert_uint_eq(w.res->class_of[1][2], w.res->class_of[0][2]);
}
END_TEST

START_TEST(an_inner_step_stands_within_a_rule) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t a = input(&w.l, x), inner = neg(&w.l, a), outer = neg(&w.l, inner);
  output(&w.l, "y", relu(&w.l, outer));
  output(&w.r, "y", relu(&w.r, input(&w.r, x)));
  expect(SYNTH_EQUIVALENT);
  stands(0, inner, SYNTH_WITHIN);
  stands(0, outer, SYNTH_BY_RULE);
  stands(0, outer + 1, SYNTH_SAME);
}
END_TEST

/* ---- undecided ---- */

START_TEST(an_oracle_that_knows_nothing_decides_nothing) {
  w.oracle.judge = JUDGE_UNKNOWN;
  commuted(2);
  expect(SYNTH_UNDECIDED);
  ck_assert_uint_eq(w.res->n_rules, 0);
  ck_assert_uint_ge(w.oracle.n_decided, 1);
  ck_assert_ptr_nonnull(strstr(w.res->reason, "no justified rule"));
  ck_assert_uint_eq(w.res->n_steps, 0);
}
END_TEST

START_TEST(tested_is_not_proved) {
  w.options.require_proved = true;
  commuted(1);
  expect(SYNTH_UNDECIDED);
}
END_TEST

/* (x + b) - b, where b is so large that roundings move x; on the right with t x besides, which is
 * less than a hundred of them. */
static void cancelling(void) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1e8),
              *t = noise(3, SHAPE(3), 0, 1e-6);
  const uint32_t lx = input(&w.l, x), lb = weight(&w.l, "b", b), rx = input(&w.r, x),
                 rb = weight(&w.r, "b", b), rt = weight(&w.r, "t", t);
  output(&w.l, "y", add(&w.l, add(&w.l, lx, lb), neg(&w.l, lb)));
  output(&w.r, "y", add(&w.r, add(&w.r, add(&w.r, rx, rb), neg(&w.r, rb)), mul(&w.r, rx, rt)));
  w.oracle.judge = JUDGE_YES;
}

/* Whether some seed, either way round, gives a verdict of equivalence. */
static bool ever_equivalent(void) {
  bool any = false;
  for (uint64_t seed = 0; seed < 4; seed++)
    for (int turn = 0; turn < 2; turn++) {
      iso_error err = {0};
      w.options.seed = seed;
      const iso_code c = turn ? try_compare(&w.r, &w.l, &err) : try_compare(&w.l, &w.r, &err);
      ck_assert_msg(c == ISO_OK, "%s", err.msg);
      any |= w.res->verdict == SYNTH_EQUIVALENT;
    }
  return any;
}

START_TEST(noise_explains_nothing_that_the_numbers_tell_apart) {
  cancelling();
  w.oracle.numbers = RULE_NUMBERS_APART;
  ck_assert(!ever_equivalent());
  w.oracle.numbers = RULE_NUMBERS_OPEN;
  ck_assert(!ever_equivalent());
  w.oracle.numbers = RULE_NUMBERS_LOST;
  ck_assert(!ever_equivalent());
}
END_TEST

START_TEST(noise_explains_what_no_numbers_are_had_for) {
  cancelling();
  w.oracle.numbers = RULE_NUMBERS_UNKNOWN;
  ck_assert(ever_equivalent());
}
END_TEST

/* ---- errors ---- */

static void expect_error(iso_code want, const char *part) {
  for (int turn = 0; turn < 2; turn++) {
    iso_error err = {0};
    ck_assert_int_eq(turn ? try_compare(&w.r, &w.l, &err) : try_compare(&w.l, &w.r, &err), want);
    ck_assert_msg(strstr(err.msg, part) != NULL, "\"%s\"", err.msg);
    ck_assert_ptr_null(w.res);
  }
}

START_TEST(outputs_that_cannot_be_paired) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t a = input(&w.l, x), b = input(&w.r, x);
  output(&w.l, "y", relu(&w.l, a));
  output(&w.r, "y", relu(&w.r, b));
  output(&w.r, "z", neg(&w.r, b));
  expect_error(ISO_USAGE, "outputs");
  w.r.g.n_outputs = 1;
  const rule_term *size[2] = {num(3), num(4)};
  w.r.out[0].node = op(&w.r, "aten::reshape", v(b), rule_list(&w.arena, size, 2), NULL);
  expect_error(ISO_USAGE, "[4, 3]");
}
END_TEST

START_TEST(operators_that_cannot_run_are_named) {
  w.oracle.broken = "aten::relu";
  commuted(1);
  expect_error(ISO_UNSUPPORTED, "aten::relu");
  iso_error err = {0};
  ck_assert_int_eq(try_compare(&w.l, &w.r, &err), ISO_UNSUPPORTED);
  ck_assert_msg(strstr(err.msg, "left.json") && strstr(err.msg, "l3"), "\"%s\"", err.msg);
}
END_TEST

int main(void) {
  Suite *s = suite_create("compare");
  TCase *t = tcase_create("compare");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, equal_graphs_need_no_rule);
  tcase_add_test(t, commuted_add_takes_one_rule);
  tcase_add_test(t, a_rule_is_found_once_and_used_again);
  tcase_add_test(t, known_rules_are_validated_and_used);
  tcase_add_test(t, outputs_pair_by_name_and_up_to_sizes_1);
  tcase_add_test(t, a_transposed_weight_is_related);
  tcase_add_test(t, ones_that_are_a_term_go_by_a_rule);
  tcase_add_test(t, a_missing_relu_is_different_where_captured_values_hide_it);
  tcase_add_test(t, a_missing_relu_that_only_other_signs_show_is_different);
  tcase_add_test(t, a_second_set_of_inputs_is_a_witness_of_its_own);
  tcase_add_test(t, weights_of_ones_that_are_dropped_are_different);
  tcase_add_test(t, a_node_stands_by_congruence_rule_or_assumption);
  tcase_add_test(t, an_inner_step_stands_within_a_rule);
  tcase_add_test(t, an_oracle_that_knows_nothing_decides_nothing);
  tcase_add_test(t, tested_is_not_proved);
  tcase_add_test(t, noise_explains_nothing_that_the_numbers_tell_apart);
  tcase_add_test(t, noise_explains_what_no_numbers_are_had_for);
  tcase_add_test(t, outputs_that_cannot_be_paired);
  tcase_add_test(t, operators_that_cannot_run_are_named);
  suite_add_tcase(s, t);
  return run_suite(s);
}
