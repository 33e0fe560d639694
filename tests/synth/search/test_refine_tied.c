/* Which variables of a refuted candidate are tied: of sums, those whose factors differ on the two
 * sides. */
#include "synth/search/frontier.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { SEEDS = 300, MOST_VARS = 5 };

static builder b;
static bool tied[RULE_MAX_VARS];

static void begin(void) {
  begin_terms();
  b = (builder){.s = &st};
}

/* A variable of the candidate. */
static const rule_term *variable(rule_tensor *value) {
  const eg_node e = add_leaf(value);
  ck_assert_uint_lt(b.n_vars, RULE_MAX_VARS);
  b.var[b.n_vars] = eg_class_of(st.g, e);
  b.used[b.n_vars] = 3;
  return v((uint32_t)b.n_vars++);
}

static const rule_term *call(const char *op, const rule_term *x, const rule_term *y) {
  const rule_term *arg[5] = {x, y};
  return call_of(op, arg);
}

static void find(const rule_term *l, const rule_term *r) {
  memset(tied, true, sizeof tied);
  ck_assert_msg(fr_tied(&st, &b, l, r, tied, &err) == ISO_OK, "%s", err.msg);
}

/* ---- sums ---- */

typedef struct sum {
  const rule_term *t;
  double factor[MOST_VARS];
} sum;

static sum plus(sum x, sum y) {
  x.t = call("aten::add.Tensor", x.t, y.t);
  for (int i = 0; i < MOST_VARS; i++) x.factor[i] += y.factor[i];
  return x;
}

static sum times(sum x, double by) {
  x.t = by == -1 ? call("aten::neg", x.t, NULL)
                 : call("aten::mul.Tensor", x.t, rule_float(&w.arena, by));
  for (int i = 0; i < MOST_VARS; i++) x.factor[i] *= by;
  return x;
}

static sum draw_sum(iso_rng *rng, int depth) {
  sum x = {0};
  if (depth == 0 || iso_rng_below(rng, 5) == 0) {
    const uint32_t i = (uint32_t)iso_rng_below(rng, MOST_VARS);
    x.t = v(i);
    x.factor[i] = 1;
    return x;
  }
  x = draw_sum(rng, depth - 1);
  return iso_rng_below(rng, 4) ? plus(x, draw_sum(rng, depth - 1))
                               : times(x, iso_rng_below(rng, 2) ? -1 : 0.5);
}

/* The same sum, or one in which some variables have other factors. */
static sum other_sum(iso_rng *rng, sum l) {
  sum r = l;
  for (uint64_t k = iso_rng_below(rng, 3); k > 0; k--) {
    sum more = {.t = v((uint32_t)iso_rng_below(rng, MOST_VARS))};
    more.factor[more.t->u.i] = 1;
    r = iso_rng_below(rng, 2) ? plus(r, times(more, 0.5)) : plus(times(more, -1), r);
  }
  return times(times(r, -1), -1);
}

/* The last variable whose factors differ gets values with which the sides agree. */
static void solve(const sum *l, const sum *r, rule_tensor *const *value) {
  int last = MOST_VARS - 1;
  while (last >= 0 && l->factor[last] == r->factor[last]) last--;
  for (int64_t e = 0; last >= 0 && e < value[0]->numel; e++) {
    double rest = 0;
    for (int i = 0; i < last; i++)
      rest += (l->factor[i] - r->factor[i]) * rule_tensor_get(value[i], e);
    rule_tensor_set(value[last], e, -rest / (l->factor[last] - r->factor[last]));
  }
}

START_TEST(variables_of_sums_are_tied_where_their_factors_differ) {
  size_t n_tied = 0, n_free = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    rule_tensor *value[MOST_VARS];
    begin();
    iso_rng rng = iso_rng_new(seed, 31);
    const sum l = draw_sum(&rng, 4), r = other_sum(&rng, l);
    for (uint64_t i = 0; i < MOST_VARS; i++)
      value[i] = noise(seed * MOST_VARS + i, SHAPE(2, 3), 0, 1);
    solve(&l, &r, value);
    for (int i = 0; i < MOST_VARS; i++) variable(value[i]);
    find(l.t, r.t);
    for (int i = 0; i < MOST_VARS; i++) {
      const bool want = l.factor[i] != r.factor[i];
      ck_assert_msg(tied[i] == want, "seed %d: variable %d is %s", (int)seed, i,
                    want ? "tied" : "free");
      n_tied += want;
      n_free += !want;
    }
    end_state();
  }
  ck_assert(n_tied > 200 && n_free > 200);
}
END_TEST

/* ---- by hand ---- */

START_TEST(a_variable_whose_rows_repeat_is_tied_in_itself) {
  begin();
  rule_tensor *x = noise(1, SHAPE(2, 3), 0, 1);
  for (int64_t i = 0; i < 3; i++) rule_tensor_set(x, 3 + i, rule_tensor_get(x, i));
  const rule_term *t = variable(x), *other = variable(noise(2, SHAPE(2, 3), 0, 1));
  const rule_term *arg[5] = {t, num(0), num(0), num(1), num(1)};
  const rule_term *row = call_of("aten::slice.Tensor", arg), *rows[2] = {row, row};
  const rule_term *cat[5] = {rule_list(&w.arena, rows, 2), num(0)};
  find(call("aten::add.Tensor", t, other),
       call("aten::add.Tensor", call_of("aten::cat", cat), other));
  ck_assert(tied[0] && !tied[1]);
  end_state();
}
END_TEST

/* Positive numbers stay positive, whole ones whole: as relu reads them they are free. */
START_TEST(other_values_keep_their_signs) {
  begin();
  const rule_term *x = variable(positive(3, SHAPE(8), 1));
  find(x, call("aten::relu", x, NULL));
  ck_assert(!tied[0]);
  end_state();
}
END_TEST

START_TEST(sums_that_are_zero_are_tied_to_being_zero) {
  begin();
  const rule_term *x = variable(constant(SHAPE(4), 0));
  find(x, call("aten::neg", x, NULL));
  ck_assert(tied[0]);
  end_state();
}
END_TEST

START_TEST(nothing_is_tied_where_the_sides_differ_from_the_beginning) {
  begin();
  const rule_term *x = variable(noise(4, SHAPE(4), 0, 1));
  find(x, call("aten::neg", x, NULL));
  ck_assert(!tied[0]);
  end_state();
}
END_TEST

/* x = y, by their values; but y is read nowhere, so it cannot be told apart. */
START_TEST(a_variable_that_no_side_reads_is_free) {
  begin();
  rule_tensor *value = noise(5, SHAPE(4), 0, 1);
  const rule_term *x = variable(value);
  (void)variable(value);
  const rule_term *z = variable(value);
  b.used[1] = 0;
  find(x, z);
  ck_assert(tied[0] && !tied[1] && tied[2]);
  end_state();
}
END_TEST

START_TEST(nothing_is_told_of_large_values_nor_of_operators_that_fail) {
  const char *const broken[] = {NULL, NULL, "aten::neg"};
  for (int k = 0; k < 3; k++) {
    begin();
    rule_tensor *value = constant(SHAPE(k == 1 ? (1 << 18) + 1 : 1 << 18), 0);
    w.oracle.broken = broken[k];
    const rule_term *x = variable(value);
    find(x, call("aten::neg", x, NULL));
    ck_assert(tied[0] == (k == 0));
    end_state();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("refine_tied");
  TCase *t = tcase_create("refine_tied");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, variables_of_sums_are_tied_where_their_factors_differ);
  tcase_add_test(t, a_variable_whose_rows_repeat_is_tied_in_itself);
  tcase_add_test(t, other_values_keep_their_signs);
  tcase_add_test(t, sums_that_are_zero_are_tied_to_being_zero);
  tcase_add_test(t, nothing_is_tied_where_the_sides_differ_from_the_beginning);
  tcase_add_test(t, a_variable_that_no_side_reads_is_free);
  tcase_add_test(t, nothing_is_told_of_large_values_nor_of_operators_that_fail);
  suite_add_tcase(s, t);
  return run_suite(s);
}
