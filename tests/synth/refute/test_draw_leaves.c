/* Draws of a search for a difference: each kind draws what it says, leaves of one class have one
 * value, and a draw is a function of seed, leaf and number alone. */
#include "synth/leaves/leaves.h"
#include "synth/refute/refute_int.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { ROWS = 40, COLUMNS = 5, X = 0, SAME, MATRIX, VECTOR, LEAVES };

static st_drawing h;
static rule_tensor *value[2][MAX_NODES], **leaf_of[2];

static void add_leaf_of(int side, uint32_t i) {
  add_atom(side, i);
  rec *r = &st.rec[st.map[side][i].i];
  r->leaf = r->atom = true;
}

/* An input that both graphs read, another one, a matrix and a vector. */
static void begin(uint64_t seed) {
  begin_state();
  w.options.seed = seed;
  const uint32_t x = input(&w.l, noise(1, SHAPE(ROWS, COLUMNS), 0.2, 1));
  input(&w.l, noise(2, SHAPE(ROWS), 0, 1));
  weight(&w.l, "m", noise(3, SHAPE(ROWS, ROWS), 0, 0.1));
  weight(&w.l, "v", noise(4, SHAPE(ROWS), 1, 0.1));
  for (uint32_t i = 0; i < LEAVES; i++) add_leaf_of(LEFT, i);
  input(&w.r, w.l.value[x][0]);
  st.map[RIGHT][0] = st.map[LEFT][x];
  st.rec[st.map[LEFT][x].i].node[RIGHT] = 0;
  h = (st_drawing){.s = &st, .of = calloc(st.n_rec + 1, sizeof *h.of)};
  leaf_of[LEFT] = value[LEFT], leaf_of[RIGHT] = value[RIGHT];
}

static void draw(size_t k) {
  st_forget_draw(&h);
  h.k = k;
  ck_assert_msg(st_draw_all(&h, leaf_of, &err) == ISO_OK, "%s", err.msg);
}

static void end(void) {
  st_forget_draw(&h);
  free(h.of);
  end_state();
}

static bool all(const rule_tensor *t, bool (*fits)(double)) {
  bool yes = true;
  for (int64_t i = 0; i < t->numel; i++) yes &= fits(rule_tensor_get(t, i));
  return yes;
}

static bool is_positive(double x) { return x > 0; }
static bool is_negative(double x) { return x < 0; }
static bool is_tie(double x) { return x == nearbyint(x) && fabs(x) <= 2; }
static bool is_half(double x) { return 2 * x == nearbyint(2 * x) && fabs(x) <= 3; }
static bool is_zero(double x) { return x == 0; }
static bool is_signed_zero(double x) { return x == 0 && signbit(x); }

static double deviation(const rule_tensor *t) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < t->numel; i++) sum += rule_tensor_get(t, i);
  for (int64_t i = 0; i < t->numel; i++)
    squares += pow(rule_tensor_get(t, i) - sum / (double)t->numel, 2);
  return sqrt(squares / (double)t->numel);
}

static bool as_captured(uint32_t i) {
  bool same = true;
  for (int64_t e = 0; e < value[LEFT][i]->numel; e++)
    same &= rule_tensor_get(value[LEFT][i], e) == rule_tensor_get(w.l.value[i][0], e);
  return same;
}

/* The draws by number: of inputs, and whether parameters are as they were captured. */
START_TEST(each_kind_draws_what_it_says) {
  for (uint64_t seed = 0; seed < 8; seed++) {
    begin(seed);
    static const struct {
      size_t k;
      bool (*fits)(double);
      bool captured;
    } kinds[] = {{3, is_negative, true}, {4, is_positive, true},  {5, is_tie, true},
                 {19, is_tie, false},    {20, is_half, true},     {22, is_positive, false},
                 {24, is_zero, true},    {23, is_negative, false}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
      draw(kinds[i].k);
      ck_assert_msg(all(value[LEFT][X], kinds[i].fits), "draw %d", (int)kinds[i].k);
      for (uint32_t p = MATRIX; p <= VECTOR; p++) {
        ck_assert_msg(as_captured(p) == kinds[i].captured, "draw %d", (int)kinds[i].k);
        ck_assert(kinds[i].captured || all(value[LEFT][p], kinds[i].fits));
      }
    }
    draw(1);
    ck_assert_double_gt(deviation(value[LEFT][X]), 40);
    draw(2);
    ck_assert_double_lt(deviation(value[LEFT][X]), 0.03);
    draw(11); /* matrices a thousandth */
    ck_assert_double_lt(deviation(value[LEFT][MATRIX]), 3e-4);
    draw(15); /* each row one number */
    for (int64_t i = 0; i < value[LEFT][X]->numel; i++)
      ck_assert_double_eq(rule_tensor_get(value[LEFT][X], i),
                          rule_tensor_get(value[LEFT][X], i - i % COLUMNS));
    draw(21); /* the first row of zeros */
    for (int64_t i = 0; i < value[LEFT][X]->numel; i++)
      ck_assert((rule_tensor_get(value[LEFT][X], i) == 0) == (i < COLUMNS));
    end();
  }
}
END_TEST

/* Inputs at the numbers that the graph compares with, beside them, at their double and half. */
START_TEST(numbers_of_the_graph_are_met) {
  static const double steps[] = {1, 1 + 1e-3, 1 - 1e-3, 0, 2, 0.5};
  begin(3);
  const rule_term *arg[] = {v(0),
                            rule_float(&w.arena, -7.5),
                            num(40),
                            num(2),
                            rule_float(&w.arena, 0),
                            rule_float(&w.arena, 1e13),
                            rule_float(&w.arena, INFINITY),
                            rule_float(&w.arena, 7.5)};
  const rule_term *inner = rule_op(&w.arena, "aten::clamp", arg, 8),
                  *outer = rule_op(&w.arena, "aten::neg", &inner, 1);
  st_collect_literals(&h, outer);
  ck_assert_uint_eq(h.n_literal, 2);
  ck_assert_double_eq(h.literal[0], 7.5);
  ck_assert_double_eq(h.literal[1], 40);
  draw(6);
  int64_t met[2] = {0, 0};
  for (int64_t i = 0; i < value[LEFT][X]->numel; i++) {
    const double x = fabs(rule_tensor_get(value[LEFT][X], i));
    bool known = false;
    for (int l = 0; l < 2; l++) {
      for (int s = 0; s < 6; s++) known |= x == h.literal[l] * steps[s];
      met[l] += x == h.literal[l];
    }
    ck_assert_msg(known, "%g", x);
  }
  ck_assert(met[0] > 5 && met[1] > 5);
  end();
}
END_TEST

START_TEST(no_more_numbers_are_kept_than_there_is_room_for) {
  begin(0);
  for (int i = 0; i < 2 * ST_LITERALS; i++) st_collect_literals(&h, num(3 + i));
  ck_assert_uint_eq(h.n_literal, ST_LITERALS);
  end();
}
END_TEST

/* Signs: all leaves of one each; zeros of the sign that tells. */
START_TEST(signs_are_drawn_leaf_by_leaf) {
  begin(1);
  int mixed = 0;
  for (size_t k = ST_SIGNS_DRAW; k < ST_SIGNS_DRAW + 8; k++) {
    int positive = 0;
    draw(k);
    for (uint32_t i = 0; i < LEAVES; i++) {
      const bool up = all(value[LEFT][i], is_positive);
      ck_assert(up || all(value[LEFT][i], is_negative));
      positive += up;
    }
    mixed += positive > 0 && positive < LEAVES;
  }
  ck_assert_int_ge(mixed, 4);
  /* First inputs of one sign, then of the other, beside negative vectors. */
  for (size_t k = 0; k < 2; k++) {
    draw(ST_SIGNS_DRAW + k);
    ck_assert(all(value[LEFT][X], k ? is_negative : is_positive));
    ck_assert(all(value[LEFT][MATRIX], k ? is_positive : is_negative));
    ck_assert(all(value[LEFT][VECTOR], is_negative));
  }
  draw(ST_ZERO_SIGNS_DRAW);
  ck_assert(all(value[LEFT][X], is_signed_zero) && all(value[LEFT][SAME], is_signed_zero));
  draw(ST_ZERO_SIGNS_DRAW + 1);
  ck_assert(all(value[LEFT][X], is_zero) && !all(value[LEFT][X], is_signed_zero));
  draw(ST_ZERO_SIGNS_DRAW + 2);
  ck_assert(!all(value[LEFT][X], is_zero) && as_captured(MATRIX));
  end();
}
END_TEST

START_TEST(leaves_of_one_class_have_one_value_and_others_their_own) {
  double first[ROWS * COLUMNS];
  begin(5);
  for (size_t k = 0; k < 30; k++) {
    draw(k);
    ck_assert_ptr_eq(value[LEFT][X], value[RIGHT][0]);
    ck_assert_ptr_ne(value[LEFT][X], value[LEFT][SAME]);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++) first[i] = rule_tensor_get(value[LEFT][X], i);
    draw(k + 1);
    if (k == 8) ck_assert_double_ne(first[0], rule_tensor_get(value[LEFT][X], 0)); /* both normal */
    draw(k);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
      ck_assert_double_eq(first[i], rule_tensor_get(value[LEFT][X], i));
  }
  end();
}
END_TEST

START_TEST(what_is_preset_is_not_drawn) {
  begin(6);
  rule_tensor *t = constant(SHAPE(ROWS, COLUMNS), 17);
  st_forget_draw(&h);
  st_preset(&h, st.map[LEFT][X], t);
  h.k = 0;
  ck_assert(st_draw_all(&h, leaf_of, &err) == ISO_OK);
  ck_assert_ptr_eq(value[RIGHT][0], t);
  ck_assert(!as_captured(SAME));
  end();
}
END_TEST

/* ---- large numbers ---- */

START_TEST(large_draws_are_of_one_size_and_then_among_others) {
  const double size[] = {1e160, 1.7e308, 800, 1e80};
  setup();
  rule_tensor *t = noise(1, SHAPE(64), 0, 1), *out = NULL;
  for (size_t k = 0; k < ST_LARGE_DRAWS; k++) {
    iso_rng rng = iso_rng_new(k, 0);
    int large = 0, same = 0;
    ck_assert(st_draw_large(k, t, &rng, &out, &err) == ISO_OK);
    for (int64_t i = 0; i < 64; i++) {
      const double x = rule_tensor_get(out, i);
      same += x == rule_tensor_get(t, i);
      for (int s = 0; s < 4; s++) large += fabs(x) == size[s];
      if (k < 8) ck_assert_double_eq(x, (k % 2 ? -1 : 1) * size[k / 2]);
    }
    ck_assert_int_eq(large + same, 64);
    if (k + 1 == ST_LARGE_DRAWS) ck_assert_int_eq(same, 64);
    else if (k >= 8) ck_assert(large > 5 && same > 20);
    rule_tensor_unref(out);
  }
  teardown();
}
END_TEST

/* Deep in its lists, and in no other one's. */
START_TEST(an_infinite_operand_is_seen) {
  setup();
  rule_tensor *t[3] = {constant(SHAPE(3), 1), constant(SHAPE(3), 1),
                       keep(make_as(RULE_I64, SHAPE(3)))};
  rule_tensor_set(t[1], 2, -INFINITY);
  st_value_list list[3] = {{.n = 1, .v = &t[0]}, {.n = 1, .v = &t[1]}, {.n = 1, .v = &t[2]}};
  const st_run run = {.value = list, .n = 3};
  const rule_term *few[2] = {v(0), v(2)}, *more[2] = {v(0), v(1)};
  const rule_term *fine = rule_list(&w.arena, few, 2), *bad = rule_list(&w.arena, more, 2);
  ck_assert(!st_infinite_operand(rule_op(&w.arena, "aten::cat", &fine, 1), &run));
  ck_assert(st_infinite_operand(rule_op(&w.arena, "aten::cat", &bad, 1), &run));
  rule_tensor_set(t[1], 2, NAN);
  ck_assert(st_infinite_operand(v(1), &run) && !st_infinite_operand(v(0), &run));
  teardown();
}
END_TEST

int main(void) {
  Suite *s = suite_create("draw_leaves");
  TCase *t = tcase_create("draw_leaves");
  tcase_add_test(t, each_kind_draws_what_it_says);
  tcase_add_test(t, numbers_of_the_graph_are_met);
  tcase_add_test(t, no_more_numbers_are_kept_than_there_is_room_for);
  tcase_add_test(t, signs_are_drawn_leaf_by_leaf);
  tcase_add_test(t, leaves_of_one_class_have_one_value_and_others_their_own);
  tcase_add_test(t, what_is_preset_is_not_drawn);
  tcase_add_test(t, large_draws_are_of_one_size_and_then_among_others);
  tcase_add_test(t, an_infinite_operand_is_seen);
  suite_add_tcase(s, t);
  return run_suite(s);
}
