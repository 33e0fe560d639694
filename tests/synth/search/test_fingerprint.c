/* Groups by value, against sums in order, sorted numbers and walks of all groups. */
#include <float.h>

#include "synth/search/search.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { SEEDS = 200, LONGEST = 45 };

/* ---- moments ---- */

/* Numbers, a few of them masks, infinite or no number at all. */
static rule_tensor *with_masks(iso_rng *rng, rule_dtype dtype, int64_t n) {
  static const double odd[] = {-INFINITY, INFINITY, -3e38, NAN, 2e30, 0};
  rule_tensor *t = keep(make_as(dtype, SHAPE(n)));
  for (int64_t i = 0; i < n; i++)
    rule_tensor_set(t, i, iso_rng_below(rng, 5) ? iso_rng_normal(rng) : odd[iso_rng_below(rng, 6)]);
  return t;
}

static void naive_moments(const rule_tensor *t, double m[4]) {
  long double sum[4] = {0};
  for (int64_t i = 0; i < t->numel; i++) {
    const long double x = rule_tensor_get(t, i);
    const bool masked = !(fabsl(x) < 1e30L);
    sum[0] += masked ? 0 : x;
    sum[1] += masked ? 0 : fabsl(x);
    sum[2] += masked ? 1 : x * x;
    sum[3] += masked ? 0 : x * fabsl(x);
  }
  for (int k = 0; k < 4; k++) m[k] = (double)sum[k];
}

START_TEST(moments_are_sums_over_all_elements_and_masks_are_counted) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_terms();
    iso_rng rng = iso_rng_new(seed, 21);
    const rule_tensor *t =
        with_masks(&rng, seed % 2 ? RULE_F64 : RULE_F32, (int64_t)iso_rng_below(&rng, LONGEST));
    double m[4], want[4];
    st_moments(t, m);
    naive_moments(t, want);
    for (int k = 0; k < 4; k++)
      ck_assert_msg(fabs(m[k] - want[k]) <= 1e-12 * (1 + fabs(want[2])),
                    "seed %d, moment %d: %g, not %g", (int)seed, k, m[k], want[k]);
    end_state();
  }
}
END_TEST

static rule_tensor *shuffled(iso_rng *rng, const rule_tensor *t) {
  rule_tensor *s = keep(reshaped(t, t->shape));
  for (int64_t i = s->numel; i-- > 1;) {
    const int64_t j = (int64_t)iso_rng_below(rng, (uint64_t)i + 1);
    const double x = rule_tensor_get(s, i);
    rule_tensor_set(s, i, rule_tensor_get(s, j));
    rule_tensor_set(s, j, x);
  }
  return s;
}

/* In another order they are near, in either direction; with one element's sign turned they are
 * not. */
START_TEST(moments_are_near_in_any_order_and_not_with_another_sign) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_terms();
    iso_rng rng = iso_rng_new(seed, 22);
    const rule_tensor *t = noise(seed, SHAPE(1 + (int64_t)iso_rng_below(&rng, LONGEST)), 0, 1);
    rule_tensor *other = shuffled(&rng, t);
    double a[4], b[4];
    st_moments(t, a);
    st_moments(other, b);
    ck_assert(st_near_moments(a, b) && st_near_moments(b, a));
    rule_tensor_set(other, 0, -rule_tensor_get(other, 0));
    st_moments(other, b);
    ck_assert(!st_near_moments(a, b) && !st_near_moments(b, a));
    end_state();
  }
}
END_TEST

/* Each moment alone tells two tensors apart. */
START_TEST(one_moment_that_differs_is_enough) {
  const double a[4] = {1, 2, 3, 1};
  for (int k = 0; k < 4; k++)
    for (int sign = -1; sign <= 1; sign += 2) {
      double b[4] = {1, 2, 3, 1};
      b[k] += sign * 1e-9;
      ck_assert(st_near_moments(a, b) && st_near_moments(b, a));
      b[k] += sign * 1e-7;
      ck_assert(!st_near_moments(a, b) && !st_near_moments(b, a));
    }
}
END_TEST

/* ---- shapes ---- */

static rule_shape without_ones(rule_shape s) {
  rule_shape out = {0};
  for (uint32_t d = 0; d < s.rank; d++)
    if (s.dim[d] != 1) out.dim[out.rank++] = s.dim[d];
  return out;
}

START_TEST(shapes_are_near_where_sizes_1_alone_tell_them_apart) {
  size_t seen[3] = {0};
  iso_rng rng = iso_rng_new(1, 23);
  for (int k = 0; k < 20000; k++) {
    rule_shape s[2];
    for (int i = 0; i < 2; i++) {
      s[i] = (rule_shape){.rank = (uint32_t)iso_rng_below(&rng, 5)};
      for (uint32_t d = 0; d < s[i].rank; d++) s[i].dim[d] = 1 + (int64_t)iso_rng_below(&rng, 3);
    }
    const rule_shape a = without_ones(s[0]), b = without_ones(s[1]);
    const int want = rule_shape_eq(&s[0], &s[1]) ? 0 : rule_shape_eq(&a, &b) ? 1 : 2;
    ck_assert_int_eq(st_shape_distance(&s[0], &s[1]), want);
    seen[want]++;
  }
  ck_assert(seen[0] > 100 && seen[1] > 100 && seen[2] > 100);
}
END_TEST

/* ---- groups ---- */

static void visit(eg_node e) { ck_assert_msg(st_visit(&st, e, &err) == ISO_OK, "%s", err.msg); }
static int32_t group_of(eg_node e) { return st.rec[e.i].group; }

/* Tensors that are each other but for a few parts in 1e9 are neighbours; the walk from place to
 * place finds each group that a walk of all would, in the order in which they were made. */
START_TEST(no_near_group_is_missed) {
  size_t found = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_terms();
    iso_rng rng = iso_rng_new(seed, 24);
    const rule_tensor *t = noise(seed, SHAPE(3), 0, 1);
    while (n_made < MOST) {
      const bool integer = iso_rng_below(&rng, 6) == 0;
      rule_tensor *u =
          keep(make_as(integer ? RULE_I64 : RULE_F64, SHAPE(iso_rng_below(&rng, 6) ? 3 : 1, 1)));
      const double by = 1 + 5e-9 * (double)iso_rng_below(&rng, 4);
      for (int64_t i = 0; i < u->numel; i++)
        rule_tensor_set(u, i, integer ? 1 : by * rule_tensor_get(t, i));
      visit(add_leaf(u));
    }
    for (size_t i = 0; i < n_made; i++) {
      const rule_tensor *u = st_val(&st, node[i], 0);
      double m[4];
      st_moments(u, m);
      int32_t at = -1;
      for (int32_t k = 0; k < (int32_t)st.groups.n; k++) {
        const group *g = &st.groups.of[k];
        if (g->numel != u->numel || st_dtype(&st, g->member[0]) != u->dtype ||
            !st_near_moments(g->moment, m))
          continue;
        at = st_next_group(&st, u->numel, u->dtype, m, at);
        ck_assert_msg(at == k, "seed %d: %d, not %d", (int)seed, at, k);
        found++;
      }
      ck_assert_int_eq(st_next_group(&st, u->numel, u->dtype, m, at), -1);
    }
    end_state();
  }
  ck_assert_uint_gt(found, SEEDS * MOST);
}
END_TEST

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Whether two tensors of four have the same numbers in some order. */
static bool same_numbers(eg_node a, eg_node b) {
  double x[2][4];
  for (int64_t i = 0; i < 4; i++) {
    x[0][i] = rule_tensor_get(st_val(&st, a, 0), i);
    x[1][i] = rule_tensor_get(st_val(&st, b, 0), i);
  }
  for (int k = 0; k < 2; k++) qsort(x[k], 4, sizeof(double), by_size);
  for (int i = 0; i < 4; i++)
    if (fabs(x[0][i] - x[1][i]) > 1e-9 * (1 + fabs(x[0][i]))) return false;
  return true;
}

static void grow(uint64_t seed) {
  static const char *const ops[] = {"aten::add.Tensor", "aten::mul.Tensor", "aten::neg", "aten::t"};
  iso_rng rng = iso_rng_new(seed, 25);
  for (uint64_t i = 0; i < 2; i++) add_leaf(noise(2 * seed + i, SHAPE(2, 2), 0, 1));
  while (n_made < 20) {
    const size_t k = iso_rng_below(&rng, 4), a = iso_rng_below(&rng, n_made);
    add_op(ops[k], a, iso_rng_below(&rng, n_made), k < 2);
  }
}

/* Whatever comes first; no two of one group have other numbers. */
START_TEST(equal_values_share_a_group) {
  size_t equal = 0, apart = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_terms();
    st.search.apart = true; /* no rules are looked for */
    grow(seed);
    for (size_t i = 0; i < n_made; i++) visit(node[seed % 2 ? i : n_made - 1 - i]);
    for (size_t i = 0; i < n_made; i++)
      for (size_t k = 0; k < i; k++) {
        const bool one = group_of(node[i]) == group_of(node[k]);
        ck_assert_int_ge(group_of(node[i]), 0);
        if (st_values_equal(&st, node[i], node[k])) ck_assert(one), equal++;
        if (!same_numbers(node[i], node[k])) ck_assert(!one), apart++;
      }
    end_state();
  }
  ck_assert(equal > 100 && apart > 1000);
}
END_TEST

/* A leaf that is a node of this side's graph. */
static eg_node of_side(int side, rule_tensor *t) {
  const eg_node e = add_leaf(t);
  st.rec[e.i].node[side] = (int32_t)leaf(graph_of(side), SYNTH_INPUT, "x", t, t);
  return e;
}

START_TEST(a_layout_across_the_graphs_belongs_and_another_order_does_not) {
  for (int turned = 0; turned < 2; turned++) {
    begin_terms();
    st.search.apart = true;
    rule_tensor *x = noise(5, SHAPE(2, 3), 0, 1), *y = keep(transposed(x, 0, 1));
    if (!turned) {
      const double first = rule_tensor_get(y, 0);
      rule_tensor_set(y, 0, rule_tensor_get(y, 1));
      rule_tensor_set(y, 1, first);
    }
    const eg_node l = of_side(LEFT, x), r = of_side(RIGHT, y);
    visit(l);
    visit(r);
    ck_assert_int_eq(group_of(l) == group_of(r), turned);
    end_state();
  }
}
END_TEST

START_TEST(tensors_without_numbers_are_in_no_group) {
  begin_terms();
  rule_tensor *nan = noise(6, SHAPE(70), 0, 1), *late = noise(6, SHAPE(70), 0, 1);
  rule_tensor_set(nan, 3, NAN);
  rule_tensor_set(late, 69, NAN);
  rule_tensor *single = keep(make_as(RULE_F32, SHAPE(2)));
  rule_tensor_set(single, 1, NAN);
  rule_tensor *infinite = constant(SHAPE(2), INFINITY);
  visit(add_leaf(nan));
  visit(add_leaf(late));
  visit(add_leaf(single));
  visit(add_leaf(keep(make(SHAPE(0, 3)))));
  for (size_t i = 0; i < n_made; i++) ck_assert_int_eq(group_of(node[i]), -1);
  visit(add_leaf(infinite));
  ck_assert_int_eq(group_of(node[4]), 0);
  end_state();
}
END_TEST

/* ---- equal values ---- */

START_TEST(values_are_equal_only_on_every_draw) {
  begin_terms();
  st.n_draws = 3;
  rule_tensor *x = noise(7, SHAPE(4), 0, 1), *y = noise(8, SHAPE(4), 0, 1);
  const eg_node a = add_leaf(x), b = add_leaf(x);
  ck_assert(st_values_equal(&st, a, b));
  for (size_t d = 0; d < 3; d++) {
    rule_tensor **at = &st.rec[b.i].val[d];
    rule_tensor_unref(*at);
    *at = rule_tensor_ref(y);
    ck_assert(!st_values_equal(&st, a, b) && !st_values_equal(&st, b, a));
    rule_tensor_unref(*at);
    *at = rule_tensor_ref(x);
  }
  end_state();
}
END_TEST

START_TEST(zeros_of_two_signs_are_equal_where_nothing_reads_signs) {
  begin_terms();
  rule_tensor *x = noise(9, SHAPE(2), 0, 1), *y = keep(reshaped(x, x->shape));
  rule_tensor_set(x, 0, 0.0);
  rule_tensor_set(y, 0, -0.0);
  const eg_node a = add_leaf(x), b = add_leaf(y);
  ck_assert(st_values_equal(&st, a, b));
  st.constants.signs = true;
  ck_assert(!st_values_equal(&st, a, b));
  ck_assert(st_values_equal(&st, a, a));
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("fingerprint");
  TCase *t = tcase_create("fingerprint");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, moments_are_sums_over_all_elements_and_masks_are_counted);
  tcase_add_test(t, moments_are_near_in_any_order_and_not_with_another_sign);
  tcase_add_test(t, one_moment_that_differs_is_enough);
  tcase_add_test(t, shapes_are_near_where_sizes_1_alone_tell_them_apart);
  tcase_add_test(t, no_near_group_is_missed);
  tcase_add_test(t, equal_values_share_a_group);
  tcase_add_test(t, a_layout_across_the_graphs_belongs_and_another_order_does_not);
  tcase_add_test(t, tensors_without_numbers_are_in_no_group);
  tcase_add_test(t, values_are_equal_only_on_every_draw);
  tcase_add_test(t, zeros_of_two_signs_are_equal_where_nothing_reads_signs);
  suite_add_tcase(s, t);
  return run_suite(s);
}
