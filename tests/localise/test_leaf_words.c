/* What became of a parameter, in words: each change that loaders make, and none where there is
 * none. Tensors are drawn, so that no change looks like another one by chance. */
#include "tests/localise/small_parting.h"
#include "tests/support/suite.h"

static rule_tensor *drawn(uint64_t seed) { return noise(seed, SHAPE(5, 5), 0, 1); }

static void becomes(const rule_tensor *x, const rule_tensor *y, const char *words) {
  const char *const said = lo_leaf_changed(&p, "w", x, y);
  if (!words) ck_assert_ptr_null(said);
  else ck_assert_str_eq(said, words);
}

/* Each element as `at` says of its row and column. */
static rule_tensor *rearranged(const rule_tensor *x, int64_t (*at)(int64_t, int64_t)) {
  rule_tensor *y = drawn(0);
  for (int64_t i = 0; i < 25; i++) rule_tensor_set(y, i, rule_tensor_get(x, at(i / 5, i % 5)));
  return y;
}
static int64_t turned(int64_t i, int64_t j) { return j * 5 + i; }
static int64_t upside_down(int64_t i, int64_t j) { return (4 - i) * 5 + j; }
static int64_t mirrored(int64_t i, int64_t j) { return i * 5 + 4 - j; }
static int64_t next_row(int64_t i, int64_t j) { return (i + 1) % 5 * 5 + j; }

START_TEST(an_order_is_named) {
  begin();
  const rule_tensor *x = drawn(1);
  becomes(x, rearranged(x, turned), "w is transposed on the right");
  becomes(x, rearranged(x, upside_down), "w is reversed on the right, along dimension 0");
  becomes(x, rearranged(x, mirrored), "w is reversed on the right, along dimension 1");
  becomes(x, rearranged(x, next_row), "rows of w on the right are the left's 1 position further");
  end();
}
END_TEST

START_TEST(a_rounding_is_named) {
  begin();
  const struct {
    rule_dtype to;
    const char *words;
  } by[] = {{RULE_BF16, "w is rounded to bfloat16 on the right"},
            {RULE_F16, "w is rounded to float16 on the right"}};
  const rule_tensor *x = drawn(2);
  for (int k = 0; k < 2; k++) {
    rule_tensor *y = drawn(2);
    for (int64_t i = 0; i < 25; i++)
      rule_tensor_set(y, i, rule_dtype_round(by[k].to, rule_tensor_get(x, i)));
    becomes(x, y, by[k].words);
    rule_tensor_set(y, 7, 3 * rule_tensor_get(y, 7));
    becomes(x, y, "w has other values on the right");
  }
  end();
}
END_TEST

START_TEST(elements_are_counted) {
  begin();
  const rule_tensor *x = drawn(3);
  rule_tensor *y = drawn(3);
  becomes(x, y, NULL);
  rule_tensor_set(y, 13, 0.125);
  becomes(x, y, "w has other values on the right in 1 of 25 elements, the first at [2, 3]");
  for (int64_t i = 20; i < 25; i++) rule_tensor_set(y, i, 0);
  becomes(x, y, "w has other values on the right in 6 of 25 elements, the first at [2, 3]");
  for (int64_t i = 0; i < 25; i++) rule_tensor_set(y, i, 0);
  becomes(x, y, "w is 0 on the right");
  becomes(x, drawn(4), "w has other values on the right");
  end();
}
END_TEST

START_TEST(what_is_no_number_is_like_itself) {
  begin();
  rule_tensor *x = drawn(5), *y = drawn(5);
  rule_tensor_set(x, 3, NAN), rule_tensor_set(y, 3, NAN);
  becomes(x, y, NULL);
  rule_tensor_set(y, 4, 0.5);
  becomes(x, y, "w has other values on the right in 1 of 25 elements, the first at [0, 4]");
  end();
}
END_TEST

START_TEST(other_shapes_and_integers_are_left_to_others) {
  begin();
  const rule_tensor *x = drawn(6);
  becomes(x, noise(6, SHAPE(25), 0, 1), NULL);
  becomes(NULL, x, NULL);
  becomes(noise(1, SHAPE(1), 0, 1), noise(2, SHAPE(1), 0, 1), NULL);
  end();
}
END_TEST

int main(void) {
  Suite *s = suite_create("leaf_words");
  TCase *t = tcase_create("all");
  tcase_add_test(t, an_order_is_named);
  tcase_add_test(t, a_rounding_is_named);
  tcase_add_test(t, elements_are_counted);
  tcase_add_test(t, what_is_no_number_is_like_itself);
  tcase_add_test(t, other_shapes_and_integers_are_left_to_others);
  suite_add_tcase(s, t);
  return run_suite(s);
}
