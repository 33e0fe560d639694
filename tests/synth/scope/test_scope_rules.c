/* Steps of rules with symbols for sizes: a rule counts at the sizes that its conditions and shapes
 * speak of, and these must be all that the captures admit. */
#include "tests/support/suite.h"
#include "tests/synth/scope/sized.h"

/* A view, then relu, against relu, then the view: x has T rows of 3. */
static void viewed(void) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const rule_term *whole = sizes(size("T"), num(3)), *flat = sizes(times(3, "T"), NULL);
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t in = input(g, x);
    dims(g, in, whole);
    if (side) {
      const uint32_t y = sized_op(g, whole, "aten::relu", v(in), NULL, NULL);
      output(g, "y", sized_op(g, flat, "aten::reshape", v(y), flat, NULL));
    } else {
      const uint32_t y = sized_op(g, flat, "aten::reshape", v(in), flat, NULL);
      output(g, "y", sized_op(g, flat, "aten::relu", v(y), NULL, NULL));
    }
  }
}

/* The one rule that there is, of `shape`, under `condition`. */
static void given(const char *shape, const char *flat, const char *condition) {
  rule_set_free(w.known);
  w.known = parse(iso_arena_printf(
      &w.arena,
      "(rule given (var x f %s) (lhs (aten::relu (aten::reshape x (list %s)))) "
      "(rhs (aten::reshape (aten::relu x) (list %s)))%s%s%s)",
      shape, flat, flat, condition[0] ? " (where " : "", condition, condition[0] ? ")" : ""));
  only = "given";
}

static void begin(int64_t min, int64_t max) {
  teardown();
  set_up_sized();
  symbols("T", min, max);
  viewed();
}

/* At T = 4 each condition holds. */
static const struct {
  const char *condition;
  int64_t min, max;
  bool all;
} cases[] = {
    {"", 1, INT64_MAX, true},
    {"(>= N 2)", 2, INT64_MAX, true},
    {"(>= N 2)", 1, INT64_MAX, false},
    {"(> N 1)", 2, INT64_MAX, true},
    {"(> N 1)", 1, INT64_MAX, false},
    {"(<= N 8)", 1, 8, true},
    {"(<= N 8)", 1, 9, false},
    {"(< N 9)", 1, 8, true},
    {"(< N 9)", 1, 9, false},
    {"(!= N 3)", 4, INT64_MAX, true},
    {"(!= N 5)", 1, 4, true},
    {"(!= N 3)", 3, INT64_MAX, false},
    {"(!= N 5)", 1, 5, false},
    {"(= N 4)", 4, 5, false},
    {"(= M 3)", 1, INT64_MAX, true},
    {"(= (* 2 N) (+ N N))", 1, INT64_MAX, true},
    {"(= (* N N) (* 4 N))", 1, INT64_MAX, false},
    {"(or (>= N 9) (= M 3))", 1, INT64_MAX, true},
    {"(or (>= N 4) (= N M))", 1, INT64_MAX, false},
    {"(and (>= N 2) (= M 3))", 2, INT64_MAX, true},
    {"(and (= M 3) (>= N 2))", 1, INT64_MAX, false},
};

START_TEST(conditions_hold_of_all_sizes) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin(cases[i].min, cases[i].max);
    given("(N M)", "(* N M)", cases[i].condition);
    if (cases[i].all) for_all_sizes(cases[i].condition);
    else held_back(cases[i].condition, "a condition of it is not shown for all sizes");
  }
}
END_TEST

START_TEST(numbers_of_a_rule_are_sizes_of_no_symbol) {
  begin(1, INT64_MAX);
  given("(N 3)", "(* 3 N)", "");
  for_all_sizes("the number is one in the captures");
  begin(1, INT64_MAX);
  given("(4 M)", "(* 4 M)", "");
  held_back("the number is T", "given at");
}
END_TEST

START_TEST(a_size_of_0_is_none_that_a_rule_speaks_of) {
  begin(0, INT64_MAX);
  given("(N M)", "(* N M)", "");
  held_back("T may be 0", "a size may be 0");
}
END_TEST

START_TEST(what_is_not_proved_for_all_is_no_step) {
  begin(1, INT64_MAX);
  given("(N M)", "(* N M)", "");
  only_tested = true;
  held_back("tested", "it is tested, and not proved");
  static const unsigned seen_once[] = {RULE_RESTS_ON_NUMBERS, RULE_RESTS_ON_MASKS};
  for (int i = 0; i < 2; i++) {
    begin(1, INT64_MAX);
    given("(N M)", "(* N M)", "");
    rests_on = seen_once[i];
    held_back("seen at the captured sizes alone", "it is tested, and not proved");
  }
}
END_TEST

/* The rule is for any sizes of the view, and the captures' own ask for T times 3 on one side, and
 * on the other for 12, which is that at the captured size alone. */
START_TEST(sizes_of_the_captures_are_those_of_the_rule) {
  begin(1, INT64_MAX);
  given("(N M)", "(* N M)", "");
  graph *g = &w.r;
  const uint32_t last = (uint32_t)g->g.n_nodes - 1;
  g->node[last].sized = g->node[last].call;
  held_back("a view of 12", "the sizes of an operator are not known");
}
END_TEST

int main(void) {
  Suite *s = suite_create("scope_rules");
  TCase *t = tcase_create("scope_rules");
  tcase_add_checked_fixture(t, set_up_sized, teardown);
  tcase_add_test(t, conditions_hold_of_all_sizes);
  tcase_add_test(t, numbers_of_a_rule_are_sizes_of_no_symbol);
  tcase_add_test(t, a_size_of_0_is_none_that_a_rule_speaks_of);
  tcase_add_test(t, what_is_not_proved_for_all_is_no_step);
  tcase_add_test(t, sizes_of_the_captures_are_those_of_the_rule);
  suite_add_tcase(s, t);
  return run_suite(s);
}
