/* Operands that stand in a run as they are stored: the numbers that a call gets of them. */
#include "rules/names.h"
#include "synth/joint/run_int.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { ROWS = 40, WIDTH = 3 };

static rule_tensor *table_of(rule_dtype dtype) {
  rule_tensor *t = keep(make_as(dtype, (rule_shape){2, {ROWS, WIDTH}}));
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, 0.1 * (double)(i - 7));
  return t;
}

static rule_tensor *ids_of(int64_t a, int64_t b) {
  rule_tensor *t = keep(make_as(RULE_I64, (rule_shape){1, {2}}));
  rule_tensor_set_int(t, 0, a), rule_tensor_set_int(t, 1, b);
  return t;
}

static const rule_term *look_up(void) {
  return call_of(OP_EMBEDDING, (const rule_term *const[5]){v(0), v(1)});
}

/* Each dtype's numbers, in one piece and in parts, and a tensor that two operands are is made once.
 */
START_TEST(operands_are_widened_to_the_same_numbers) {
  static const rule_dtype narrow[] = {RULE_F32, RULE_F16, RULE_BF16};
  begin_terms();
  for (size_t d = 0; d < sizeof narrow / sizeof *narrow; d++) {
    rule_tensor *t = table_of(narrow[d]), *wide = table_of(RULE_F64), *bind[3] = {t, wide, t};
    st_wide made = {.n = 0};
    ck_assert(st_is_narrow(t) && !st_is_narrow(wide) && !st_is_narrow(ids_of(0, 1)));
    const rule_term *arg[3] = {v(0), v(1), v(2)}, *call = rule_op(&st.arena, "x", arg, 3);
    ck_assert(!st_widen_operands(call, &made, 1, bind, NULL));
    ck_assert(made.n == 1 && bind[1] == wide && bind[0] == bind[2] && bind[0]->dtype == RULE_F64);
    double part[WIDTH];
    for (int64_t row = 0; row < ROWS; row++) {
      rule_tensor_widen(t, row * WIDTH, WIDTH, part);
      for (int64_t k = 0; k < WIDTH; k++) {
        ck_assert(rule_tensor_get(bind[0], row * WIDTH + k) == rule_tensor_get(t, row * WIDTH + k));
        ck_assert(part[k] == rule_tensor_get(t, row * WIDTH + k));
      }
    }
    st_wide_free(&made);
  }
  end_state();
}
END_TEST

START_TEST(a_look_up_reads_its_rows_alone) {
  begin_terms();
  rule_tensor *t = table_of(RULE_BF16), *bind[2] = {t, ids_of(ROWS - 1, 4)}, *own[2];
  size_t n = 0;
  ck_assert(!st_few_rows(look_up(), bind, own, &n, NULL));
  ck_assert(n == 2 && bind[0]->shape.dim[0] == 2 && bind[0]->dtype == RULE_F64);
  for (int64_t k = 0; k < WIDTH; k++) {
    const int64_t first = rule_tensor_get_int(bind[1], 0), second = rule_tensor_get_int(bind[1], 1);
    ck_assert(rule_tensor_get(bind[0], first * WIDTH + k) ==
              rule_tensor_get(t, (ROWS - 1) * WIDTH + k));
    ck_assert(rule_tensor_get(bind[0], second * WIDTH + k) == rule_tensor_get(t, 4 * WIDTH + k));
  }
  while (n > 0) rule_tensor_unref(own[--n]);
  end_state();
}
END_TEST

/* Rows that are not there are for libtorch to refuse; a table in float64 stays as it is. */
START_TEST(other_look_ups_are_left_alone) {
  begin_terms();
  rule_tensor *own[2], *ids[] = {ids_of(0, ROWS), ids_of(-1, 0), ids_of(0, 1)};
  for (int i = 0; i < 3; i++) {
    rule_tensor *t = table_of(i < 2 ? RULE_F32 : RULE_F64), *bind[2] = {t, ids[i]};
    size_t n = 0;
    ck_assert(!st_few_rows(look_up(), bind, own, &n, NULL));
    ck_assert(n == 0 && bind[0] == t && bind[1] == ids[i]);
  }
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("narrow");
  TCase *t = tcase_create("narrow");
  tcase_add_test(t, operands_are_widened_to_the_same_numbers);
  tcase_add_test(t, a_look_up_reads_its_rows_alone);
  tcase_add_test(t, other_look_ups_are_left_alone);
  suite_add_tcase(s, t);
  return run_suite(s);
}
