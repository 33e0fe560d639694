/* Values that leaves are drawn anew with: as large as the captured ones, each a function of seed,
 * leaf and round alone, integers over all of their range, and inside of declared domains. */
#include "synth/leaves/leaves.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { MANY = 1 << 13, SEEDS = 60 };

static uint32_t leaf_with(rule_tensor *t) {
  const uint32_t i = input(&w.l, t);
  w.l.node[i].dtype = t->dtype;
  return i;
}

static rule_tensor *drawn(uint32_t leaf, size_t ordinal, size_t round) {
  rule_tensor *out = NULL;
  st_spread of = {0};
  ck_assert_msg(st_redraw(&st, LEFT, leaf, (st_stream){ordinal, round}, &of, &out, &err) == ISO_OK,
                "%s", err.msg);
  return keep(out);
}

/* ---- floats ---- */

static void spread(const rule_tensor *t, double *mean, double *dev) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < t->numel; i++) sum += rule_tensor_get(t, i);
  *mean = sum / (double)t->numel;
  for (int64_t i = 0; i < t->numel; i++) squares += pow(rule_tensor_get(t, i) - *mean, 2);
  *dev = sqrt(squares / (double)t->numel);
}

/* Matrices are a quarter as large from the second round on. */
START_TEST(floats_have_the_captured_mean_and_deviation) {
  static const struct {
    rule_shape shape;
    double mean, dev;
  } kinds[] = {{{1, {MANY}}, 0, 1},
               {{1, {MANY}}, -3, 0.5},
               {{2, {64, MANY / 64}}, 2, 0.01},
               {{2, {64, MANY / 64}}, 0, 40}};
  begin_state();
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    rule_tensor *t = noise(k + 1, kinds[k].shape, kinds[k].mean, kinds[k].dev);
    const uint32_t leaf = leaf_with(t);
    for (size_t round = 0; round < 3; round++) {
      const double by = round && t->shape.rank == 2 ? 0.25 : 1;
      double mean, dev;
      spread(drawn(leaf, leaf, round), &mean, &dev);
      ck_assert_double_le(fabs(mean - by * kinds[k].mean), 0.1 * by * kinds[k].dev);
      ck_assert_double_le(fabs(dev - by * kinds[k].dev), 0.1 * by * kinds[k].dev);
    }
  }
  end_state();
}
END_TEST

/* What was one number on all elements is so no more. */
START_TEST(one_number_becomes_several) {
  begin_state();
  for (int k = 0; k < 3; k++) {
    const uint32_t leaf = leaf_with(constant(SHAPE(MANY), k - 1));
    double mean, dev;
    spread(drawn(leaf, leaf, 0), &mean, &dev);
    ck_assert_double_le(fabs(mean - (k - 1)), 0.02);
    ck_assert_double_le(fabs(dev - 0.1), 0.02);
  }
  end_state();
}
END_TEST

static bool same(const rule_tensor *a, const rule_tensor *b) {
  bool equal = true;
  for (int64_t i = 0; i < a->numel; i++) equal &= rule_tensor_get(a, i) == rule_tensor_get(b, i);
  return equal;
}

START_TEST(seed_leaf_and_round_alone_decide) {
  begin_state();
  rule_tensor *whole = keep(make_as(RULE_I64, SHAPE(40)));
  for (int64_t i = 0; i < 40; i++) rule_tensor_set(whole, i, (double)(i % 17));
  const uint32_t leaf[2] = {leaf_with(noise(1, SHAPE(5, 8), 0, 1)), leaf_with(whole)};
  for (int k = 0; k < 2; k++) {
    const rule_tensor *x = drawn(leaf[k], 3, 1);
    ck_assert(same(x, drawn(leaf[k], 3, 1)));
    ck_assert(!same(x, drawn(leaf[k], 4, 1)));
    ck_assert(!same(x, drawn(leaf[k], 3, 2)));
    ck_assert(!same(drawn(leaf[k], 3, 2), drawn(leaf[k], 3, 3)));
    w.options.seed++;
    ck_assert(!same(x, drawn(leaf[k], 3, 1)));
    w.options.seed--;
  }
  end_state();
}
END_TEST

/* ---- integers ---- */

typedef struct numbers {
  int64_t low, high, n; /* captured: all of these */
} numbers;

static numbers draw_numbers(iso_rng *rng) {
  const int64_t low = (int64_t)iso_rng_below(rng, 21) - 10;
  return (numbers){low, low + (int64_t)iso_rng_below(rng, 40),
                   64 + (int64_t)iso_rng_below(rng, 64)};
}

static uint32_t integer_leaf(const numbers *x) {
  rule_tensor *t = keep(make_as(RULE_I64, SHAPE(x->n)));
  for (int64_t i = 0; i < x->n; i++)
    rule_tensor_set(t, i, (double)(x->low + i % (x->high - x->low + 1)));
  return leaf_with(t);
}

static int64_t times(const rule_tensor *t, int64_t x) {
  int64_t n = 0;
  for (int64_t i = 0; i < t->numel; i++) n += rule_tensor_get_int(t, i) == x;
  return n;
}

/* Each of the numbers between the least and the largest that were captured; or of the range that is
 * known, and then some of them are the number that means none. */
START_TEST(integers_are_drawn_over_their_range) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    const numbers x = draw_numbers(&rng);
    begin_state();
    const uint32_t leaf = integer_leaf(&x);
    const bool ranged = seed % 2;
    int64_t low = x.low, high = x.high;
    ck_assert((st.leaves.range[LEFT] = calloc(MAX_NODES, sizeof(st_range))) != NULL);
    if (ranged) {
      low -= 2, high += 3;
      st.leaves.range[LEFT][leaf] =
          (st_range){.told = true, .low = low, .high = high + 1, .has_none = true, .none = -100};
    }
    int64_t seen = 0, none = 0, all = 0;
    bool met[64] = {false};
    for (size_t round = 0; round < 24; round++) {
      const rule_tensor *t = drawn(leaf, 1, round);
      for (int64_t i = 0; i < t->numel; i++, all++) {
        const int64_t v = rule_tensor_get_int(t, i);
        none += v == -100;
        ck_assert(v == -100 || (v >= low && v <= high));
        if (v != -100 && !met[v - low]) met[v - low] = true, seen++;
      }
    }
    ck_assert_int_eq(seen, high - low + 1);
    ck_assert(ranged ? 6 * none > all && 3 * none < all : none == 0);
    free(st.leaves.range[LEFT]);
    end_state();
  }
}
END_TEST

/* Two of three are at a number that the graph compares with, or beside it. */
START_TEST(integers_are_drawn_where_they_decide) {
  begin_state();
  const numbers x = {0, 999, 900};
  const uint32_t leaf = integer_leaf(&x);
  const rule_term *arg[5] = {v(leaf), num(500)};
  uint32_t i;
  synth_node *n = new_node(&w.l, &i);
  *n = (synth_node){.kind = SYNTH_OP, .id = "lt", .n_outputs = 1, .dtype = RULE_BOOL};
  n->call = call_of("aten::lt.Scalar", arg);
  n->op = n->call->u.s;
  add_atom(LEFT, i);
  const rule_tensor *t = drawn(leaf, 1, 0);
  int64_t edges = 0;
  for (int64_t at = 499; at <= 501; at++) {
    ck_assert_int_gt(times(t, at), 100);
    edges += times(t, at);
  }
  ck_assert_int_ge(edges, 600);
  ck_assert_int_lt(edges, 620);
  end_state();
}
END_TEST

/* Where there are collectives the second round has one number in each of as many equal shares of
 * the range as there are elements. */
START_TEST(no_share_of_the_range_is_left_out) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_state();
    const numbers x = {5, 5 + 32 * 10 - 1, 320};
    const uint32_t leaf = integer_leaf(&x);
    rule_tensor *few = keep(make_as(RULE_I64, SHAPE(32)));
    for (int k = 0; k < 32; k++) rule_tensor_set(few, k, k ? 5 : 5 + 32 * 10 - 1);
    w.l.node[leaf].shape = few->shape;
    w.l.value[leaf][0] = few;
    const rule_term *of = v(weight(&w.l, "w", noise(1, SHAPE(2), 0, 1)));
    op(&w.l, "dist::all_reduce", rule_list(&w.arena, &of, 1), rule_string(&w.arena, "sum"), NULL);
    w.options.seed = seed;
    const rule_tensor *t = drawn(leaf, 1, 1);
    int in[32] = {0}, inside = 0, order = 0;
    for (int k = 0; k < 32; k++) {
      const int64_t share = (rule_tensor_get_int(t, k) - 5) / 10;
      ck_assert(share >= 0 && share < 32);
      inside += in[share]++ == 0;
      order += share == k;
    }
    ck_assert_int_eq(inside, 32);
    ck_assert_int_lt(order, 16); /* and not in the elements' order */
    end_state();
  }
}
END_TEST

/* ---- domains ---- */

START_TEST(what_is_drawn_is_inside_its_domain) {
  static const double without[] = {-1, 0, 2};
  const rule_domain domains[] = {
      {.low = -2, .high = 5, .who = "x"},
      {.low = -INFINITY, .high = 1, .who = "x"},
      {.low = -3, .high = 9, .exclude = without, .n_exclude = 3, .who = "x"},
      {.low = -40, .high = 40, .distinct = true, .who = "x"},
      {.low = -40, .high = 40, .sorted = true, .who = "x"},
      {.low = 0, .high = 1, .mask = RULE_MASK | RULE_MASK_RIGHT, .who = "x"}};
  static const double row[][4] = {{1, -2, 1, 5}, {1, -5, 1, 0},  {1, -2, 9, 3},
                                  {0, 0, 0, 0},  {-3, -1, 4, 7}, {1, 1, 0, 0}}; /* captured */
  for (size_t k = 0; k < sizeof domains / sizeof *domains; k++)
    for (int whole = 0; whole < 2; whole++) {
      begin_state();
      rule_tensor *t = keep(make_as(whole ? RULE_I64 : RULE_F64, SHAPE(3, 4)));
      for (int64_t i = 0; i < t->numel; i++)
        rule_tensor_set(t, i, domains[k].distinct ? (double)i : row[k][i % 4]);
      const uint32_t leaf = leaf_with(t);
      w.l.node[leaf].domain = &domains[k];
      int other = 0;
      for (size_t round = 0; round < 8; round++) {
        const rule_tensor *x = drawn(leaf, 1, round);
        char why[100] = "";
        ck_assert_msg(rule_domain_admits(&domains[k], x, why, sizeof why), "%d, round %d: %s",
                      (int)k, (int)round, why);
        other += !same(x, t);
      }
      ck_assert_int_ge(other, 4);
      end_state();
    }
}
END_TEST

/* Integers meet both ends of it, unless tables end earlier. */
START_TEST(integers_meet_the_ends_of_their_domain) {
  static const double without[] = {3};
  for (int ranged = 0; ranged < 2; ranged++) {
    const rule_domain d = {
        .low = -2, .high = 60, .exclude = without, .n_exclude = (size_t)ranged, .who = "x"};
    const numbers x = {0, 2, 300};
    begin_state();
    const uint32_t leaf = integer_leaf(&x);
    w.l.node[leaf].domain = &d;
    ck_assert((st.leaves.range[LEFT] = calloc(MAX_NODES, sizeof(st_range))) != NULL);
    if (ranged) st.leaves.range[LEFT][leaf] = (st_range){.told = true, .low = 0, .high = 5};
    int64_t low = 99, high = -99;
    for (size_t round = 0; round < 12; round++) {
      const rule_tensor *t = drawn(leaf, 1, round);
      if (ranged) ck_assert_int_eq(times(t, 3), 0);
      for (int64_t i = 0; i < t->numel; i++) {
        const int64_t v = rule_tensor_get_int(t, i);
        if (v < low) low = v;
        if (v > high) high = v;
      }
    }
    ck_assert_int_eq(low, ranged ? 0 : -2);
    ck_assert_int_eq(high, ranged ? 4 : 60);
    free(st.leaves.range[LEFT]);
    end_state();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("draw");
  TCase *t = tcase_create("draw");
  tcase_add_test(t, floats_have_the_captured_mean_and_deviation);
  tcase_add_test(t, one_number_becomes_several);
  tcase_add_test(t, seed_leaf_and_round_alone_decide);
  tcase_add_test(t, integers_are_drawn_over_their_range);
  tcase_add_test(t, integers_are_drawn_where_they_decide);
  tcase_add_test(t, no_share_of_the_range_is_left_out);
  tcase_add_test(t, what_is_drawn_is_inside_its_domain);
  tcase_add_test(t, integers_meet_the_ends_of_their_domain);
  suite_add_tcase(s, t);
  return run_suite(s);
}
