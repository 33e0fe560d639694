/* A rule speaks of sizes at which both of its sides are defined, and of numbers: the chain's terms
 * are run at other sizes than the captured ones. */
#include "tests/support/suite.h"
#include "tests/synth/scope/sized.h"

/* The one rule: this is x wherever it is defined. */
static void given(const char *attributes, const char *term) {
  rule_set_free(w.known);
  w.known = parse(iso_arena_printf(&w.arena, "(rule given (var x f (N)) %s(lhs %s) (rhs x))",
                                   attributes, term));
  only = "given";
}

/* relu(x) on the left. On the right x is cut into halves and put together again first, which only
 * an even size can be: of `n` elements, written with T. */
static void halved(const rule_term *n, const rule_term *part, int64_t elements) {
  rule_tensor *x = noise(1, SHAPE(elements), 0, 1);
  const rule_term *whole = sizes(n, NULL), *cut = sizes(num(2), part);
  const uint32_t in = input(&w.l, x);
  dims(&w.l, in, whole);
  output(&w.l, "y", sized_op(&w.l, whole, "aten::relu", v(in), NULL, NULL));
  const uint32_t other = input(&w.r, x);
  dims(&w.r, other, whole);
  given("(attr half int)", "(aten::reshape (aten::reshape x (list 2 half)) (list N))");
  const uint32_t halves = sized_op(&w.r, cut, "aten::reshape", v(other), cut, NULL),
                 again = sized_op(&w.r, whole, "aten::reshape", v(halves), whole, NULL);
  output(&w.r, "y", sized_op(&w.r, whole, "aten::relu", v(again), NULL, NULL));
}

static void begin(int64_t min, int64_t max) {
  teardown();
  set_up_sized();
  symbols("T", min, max);
}

START_TEST(a_view_that_other_sizes_do_not_have_is_not_defined) {
  begin(1, INT64_MAX);
  halved(size("T"), half("T"), 4);
  held_back("halves of an odd size", "is not defined at other sizes");
  begin(1, INT64_MAX);
  halved(times(2, "T"), size("T"), 8);
  for_all_sizes("halves of an even one");
}
END_TEST

static const rule_term *t_less(int64_t by) {
  const rule_term *both[] = {size("T"), num(by)};
  return rule_expr(&w.arena, "-", both, 2);
}

/* x without its first `by` elements, joined behind these again. */
static void taken_apart(int64_t by) {
  rule_tensor *x = noise(1, SHAPE(4), 0, 1);
  const rule_term *whole = sizes(size("T"), NULL);
  const uint32_t in = input(&w.l, x);
  dims(&w.l, in, whole);
  output(&w.l, "y", sized_op(&w.l, whole, "aten::relu", v(in), NULL, NULL));
  const uint32_t other = input(&w.r, x);
  dims(&w.r, other, whole);
  given("", iso_arena_printf(&w.arena,
                             "(aten::cat (list (aten::slice.Tensor x 0 0 %d 1) "
                             "(aten::slice.Tensor x 0 %d N 1)) 0)",
                             (int)by, (int)by));
  const uint32_t head =
      sized_step(&w.r,
                 call_of("aten::slice.Tensor",
                         (const rule_term *const[5]){v(other), num(0), num(0), num(by), num(1)}),
                 sizes(num(by), NULL));
  const uint32_t rest =
      sized_step(&w.r,
                 call_of("aten::slice.Tensor",
                         (const rule_term *const[5]){v(other), num(0), num(by), size("T"), num(1)}),
                 sizes(t_less(by), NULL));
  const rule_term *both[] = {v(head), v(rest)};
  const uint32_t again =
      sized_op(&w.r, whole, "aten::cat", rule_list(&w.arena, both, 2), num(0), NULL);
  output(&w.r, "y", sized_op(&w.r, whole, "aten::relu", v(again), NULL, NULL));
}

/* At sizes below `by` there is nothing to take: a scope may begin one size later, and no more. */
START_TEST(the_least_sizes_are_among_those_that_are_run) {
  for (int64_t by = 1; by < 4; by++) {
    begin(by, INT64_MAX);
    taken_apart(by);
    for_all_sizes("enough elements at every size");
    ck_assert_int_eq(w.res->scope.symbol[0].min, by);
    begin(1, INT64_MAX);
    taken_apart(by);
    if (by == 3) held_back("two sizes have too few", "is not defined at other sizes");
    else for_all_sizes("one size at most has too few");
    if (by < 3) ck_assert_int_eq(w.res->scope.symbol[0].min, by);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("scope_run");
  TCase *t = tcase_create("scope_run");
  tcase_add_checked_fixture(t, set_up_sized, teardown);
  tcase_add_test(t, a_view_that_other_sizes_do_not_have_is_not_defined);
  tcase_add_test(t, the_least_sizes_are_among_those_that_are_run);
  suite_add_tcase(s, t);
  return run_suite(s);
}
