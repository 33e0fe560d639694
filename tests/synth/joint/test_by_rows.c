/* Products with a matrix of which few rows at a time are made: the numbers are those of the whole
 * matrix, and no others than such products are made so. */
#include "rules/names.h"
#include "synth/joint/run_int.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { COLUMNS = 3, WIDTH = 500, ROWS = 700 }; /* a block is 262 rows, so that the last is short */

static size_t n_calls;
static int64_t most_rows;

/* linear(x, w), in plain C. parameters: those of an oracle. */
static iso_code linear(void *ctx, const rule_term *t, rule_tensor *const *bind, bool float64,
                       rule_tensor **out, size_t max, size_t *n_out, iso_error *e) {
  const rule_tensor *x = bind[t->child[0]->u.i], *matrix = bind[t->child[1]->u.i];
  const int64_t n = matrix->shape.dim[0];
  (void)ctx, (void)e;
  ck_assert(float64 && max > 0 && matrix->dtype == RULE_F64);
  out[0] = make((rule_shape){3, {1, COLUMNS, n}});
  for (int64_t i = 0; i < COLUMNS; i++)
    for (int64_t k = 0; k < n; k++) {
      double sum = 0;
      for (int64_t j = 0; j < WIDTH; j++)
        sum += rule_tensor_get(x, i * WIDTH + j) * rule_tensor_get(matrix, k * WIDTH + j);
      rule_tensor_set(out[0], i * n + k, sum);
    }
  *n_out = 1;
  n_calls++;
  if (n > most_rows) most_rows = n;
  return ISO_OK;
}

static const rule_term *product(void) {
  const rule_term *arg[3] = {v(0), v(1), rule_none(&st.arena)};
  return rule_op(&st.arena, OP_LINEAR, arg, 3);
}

static rule_tensor *drawn_as(rule_dtype dtype, rule_shape shape, uint64_t seed) {
  rule_tensor *t = keep(make_as(dtype, shape));
  iso_rng rng = iso_rng_new(seed, 1);
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, iso_rng_normal(&rng));
  return t;
}

START_TEST(a_product_is_that_with_the_whole_matrix) {
  static const rule_dtype narrow[] = {RULE_F32, RULE_F16, RULE_BF16};
  for (size_t d = 0; d < 3; d++) {
    begin_terms();
    oracle.call = linear;
    rule_tensor *x = drawn_as(RULE_F64, (rule_shape){3, {1, COLUMNS, WIDTH}}, d),
                *matrix = drawn_as(narrow[d], (rule_shape){2, {ROWS, WIDTH}}, 7 + d),
                *wide = keep(make((rule_shape){2, {ROWS, WIDTH}})), *whole, *parts;
    rule_tensor_widen(matrix, 0, matrix->numel, wide->data);
    rule_tensor *bind[2] = {x, wide};
    size_t n = 0;
    ck_assert(!linear(NULL, product(), bind, true, &whole, 1, &n, &err));
    n_calls = 0, most_rows = 0, bind[1] = matrix;
    st_stored stored = {matrix, 0, NULL};
    const st_matrix_rows rows = {ROWS, WIDTH, st_stored_rows, &stored};
    ck_assert(!st_call_by_rows(&st, product(), bind, &rows, &parts, &err));
    ck_assert(n_calls > 1 && most_rows < ROWS && bind[1] == matrix);
    ck_assert(rule_tensor_same(keep(whole), keep(parts)));
    end_state();
  }
}
END_TEST

/* Each number moves, and by no more than the noise. */
START_TEST(disturbed_rows_are_moved_as_far_as_is_asked) {
  begin_terms();
  rule_tensor *matrix = drawn_as(RULE_F32, (rule_shape){2, {ROWS, WIDTH}}, 3), *out;
  iso_rng rng = iso_rng_new(5, 1);
  st_stored stored = {matrix, 1e-6, &rng};
  ck_assert(!st_stored_rows(&stored, 100, 50, &out, &err));
  keep(out);
  ck_assert(out->dtype == RULE_F64 && out->shape.dim[0] == 50 && out->shape.dim[1] == WIDTH);
  size_t moved = 0;
  for (int64_t i = 0; i < out->numel; i++) {
    const double was = rule_tensor_get(matrix, 100 * WIDTH + i), is = rule_tensor_get(out, i);
    ck_assert(fabs(is - was) <= 1.001e-6 * fabs(was));
    moved += is != was;
  }
  ck_assert(moved > (size_t)out->numel * 9 / 10);
  end_state();
}
END_TEST

START_TEST(other_calls_are_made_as_a_whole) {
  begin_terms();
  const rule_term *none = rule_none(&st.arena);
  const rule_term *biased[3] = {v(0), v(1), v(2)}, *same[3] = {v(1), v(1), none},
                  *look[2] = {v(0), v(1)};
  ck_assert(st_matrix_of(product()) == 1);
  ck_assert(st_matrix_of(rule_op(&st.arena, OP_LINEAR, biased, 3)) < 0);
  ck_assert(st_matrix_of(rule_op(&st.arena, OP_LINEAR, same, 3)) < 0);
  ck_assert(st_matrix_of(rule_op(&st.arena, OP_EMBEDDING, look, 2)) < 0);
  ck_assert(st_is_matrix(&(rule_shape){2, {1 << 13, 1 << 10}}));
  ck_assert(!st_is_matrix(&(rule_shape){2, {ROWS, WIDTH}}));
  ck_assert(!st_is_matrix(&(rule_shape){1, {1 << 23}}));
  ck_assert(!st_is_matrix(&(rule_shape){2, {1 << 23, 0}}));
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("by_rows");
  TCase *t = tcase_create("by_rows");
  tcase_add_test(t, a_product_is_that_with_the_whole_matrix);
  tcase_add_test(t, disturbed_rows_are_moved_as_far_as_is_asked);
  tcase_add_test(t, other_calls_are_made_as_a_whole);
  suite_add_tcase(s, t);
  return run_suite(s);
}
