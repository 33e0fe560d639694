/* Branches on values that no draw took, against a look at all numbers of all draws at once. */
#include "synth/refute/refute.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { SEEDS = 400, MOST_DRAWS = 3, MOST_SIZE = 4 };

static bool live_left[MAX_NODES], live_right[MAX_NODES];
static const bool *const live[2] = {live_left, live_right};

static void begin(uint64_t draws) {
  begin_terms();
  st.n_draws = draws;
  for (int i = 0; i < MAX_NODES; i++) live_left[i] = live_right[i] = true;
}

/* ---- nodes ---- */

/* A leaf of that side with numbers of its own on each draw. */
static uint32_t drawn(int side, iso_rng *rng, rule_dtype dtype, int64_t size) {
  rule_tensor *first = keep(make_as(dtype, SHAPE(size)));
  const uint32_t i = leaf(graph_of(side), SYNTH_INPUT, "x", first, first);
  const eg_node e = st.map[side][i] = add_leaf(first);
  for (size_t d = 0; d < st.n_draws; d++) {
    rule_tensor *t = make_as(dtype, SHAPE(size));
    for (int64_t k = 0; k < size; k++)
      rule_tensor_set(t, k,
                      dtype == RULE_BOOL ? (double)iso_rng_below(rng, 2)
                                         : (double)iso_rng_below(rng, 5) - 2);
    rule_tensor_unref(st.rec[e.i].val[d]);
    st.rec[e.i].val[d] = t;
  }
  return i;
}

/* A step, which is not run. */
static void step(int side, const char *op, const rule_term *a, const rule_term *b,
                 const rule_term *c) {
  uint32_t i;
  synth_node *n = new_node(graph_of(side), &i);
  n->kind = SYNTH_OP;
  n->op = op;
  n->call = call_of(op, (const rule_term *const[5]){a, b, c});
}

/* ---- naive ---- */

typedef struct seen {
  bool low, high;
} seen;

/* The numbers of leaf `i` beside `edge`, or beside those of leaf `other`. */
static seen look(int side, uint32_t i, double edge, int other) {
  seen r = {false, false};
  for (size_t d = 0; d < st.n_draws; d++) {
    const rule_tensor *t = st.rec[st.map[side][i].i].val[d],
                      *u = other >= 0 ? st.rec[st.map[side][other].i].val[d] : NULL;
    for (int64_t k = 0; k < t->numel; k++) {
      const double y = u ? rule_tensor_get(u, k) : edge;
      r.low |= rule_tensor_get(t, k) < y;
      r.high |= rule_tensor_get(t, k) > y;
    }
  }
  return r;
}

static const char *wanted[4];
static size_t n_wanted;

static void want(bool was_seen, const char *text) {
  if (!was_seen) wanted[n_wanted++] = text;
}

static void found(int side, uint32_t at, size_t points) {
  ck_assert_msg(st_cover(&st, live, &err) == ISO_OK, "%s", err.msg);
  const synth_coverage *c = &result.coverage;
  ck_assert_uint_eq(c->n_points, points);
  ck_assert_uint_eq(c->n_branches, n_wanted);
  for (size_t i = 0; i < n_wanted; i++) {
    ck_assert_str_eq(c->branch[i].missing, wanted[i]);
    ck_assert(c->branch[i].right == (side == RIGHT) && c->branch[i].node == at);
  }
}

/* ---- choices ---- */

typedef enum choice { WHERE, FILLED, RELU, LEAKY, ELU, LARGER, SMALLER, CHOICES } choice;

START_TEST(a_choice_that_went_one_way_is_named) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 71);
    begin(1 + iso_rng_below(&rng, MOST_DRAWS));
    const int side = (int)(seed % 2);
    const int64_t size = 1 + (int64_t)iso_rng_below(&rng, MOST_SIZE);
    const uint32_t x = drawn(side, &rng, RULE_F64, size), y = drawn(side, &rng, RULE_F64, size),
                   m = drawn(side, &rng, RULE_BOOL, size);
    const seen zero = look(side, x, 0, -1), other = look(side, x, 0, (int)y),
               mask = look(side, m, 0.5, -1);
    n_wanted = 0;
    switch ((choice)_i) {
    case WHERE:
      step(side, "aten::where.self", v(m), v(x), v(y));
      want(mask.low, "the condition is never false");
      want(mask.high, "the condition is never true");
      break;
    case FILLED:
      step(side, "aten::masked_fill.Scalar", v(x), v(m), num(0));
      want(mask.low, "the mask keeps nothing");
      want(mask.high, "the mask hides nothing");
      break;
    case LARGER:
    case SMALLER:
      step(side, _i == LARGER ? "aten::maximum" : "aten::minimum", v(x), v(y), NULL);
      want(other.low, "the first is never the smaller one");
      want(other.high, "the first is never the larger one");
      break;
    default:
      step(side,
           _i == RELU  ? "aten::relu"
           : _i == ELU ? "aten::elu"
                       : "aten::leaky_relu",
           v(x), NULL, NULL);
      want(zero.low, "no value below 0");
      want(zero.high, "no value above 0");
    }
    found(side, m + 1, 1);
    end_state();
  }
}
END_TEST

/* ---- bounds ---- */

typedef enum bound { LOW, HIGH, BOTH, LOW_ALONE, HIGH_ALONE, BOUNDS } bound;

START_TEST(a_bound_that_nothing_passed_is_named) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 72);
    begin(1 + iso_rng_below(&rng, MOST_DRAWS));
    const int side = (int)(seed % 2);
    const uint32_t x = drawn(side, &rng, RULE_F64, 1 + (int64_t)iso_rng_below(&rng, MOST_SIZE));
    const double low = (double)iso_rng_below(&rng, 4) - 2, high = low + 1;
    const rule_term *l = rule_float(&w.arena, low), *h = rule_float(&w.arena, high),
                    *none = rule_none(&w.arena);
    static const char *const ops[] = {"aten::clamp_min", "aten::clamp_max", "aten::hardtanh",
                                      "aten::clamp", "aten::clamp"};
    step(side, ops[_i], v(x),
         _i == HIGH         ? h
         : _i == HIGH_ALONE ? none
                            : l,
         _i == BOTH || _i == HIGH_ALONE ? h : NULL);
    n_wanted = 0;
    const bool has_low = _i != HIGH && _i != HIGH_ALONE, has_high = _i != LOW && _i != LOW_ALONE;
    if (has_low)
      want(look(side, x, low, -1).low,
           iso_arena_printf(&w.arena, "no value below the lower bound %g", low));
    if (has_high)
      want(look(side, x, high, -1).high,
           iso_arena_printf(&w.arena, "no value above the upper bound %g", high));
    found(side, x + 1, (size_t)has_low + has_high);
    end_state();
  }
}
END_TEST

/* ---- by hand ---- */

/* Tensors of which one is repeated are not compared. */
START_TEST(a_choice_between_sizes_is_not_looked_at) {
  begin(1);
  iso_rng rng = iso_rng_new(1, 73);
  const uint32_t x = drawn(LEFT, &rng, RULE_F64, 4), y = drawn(LEFT, &rng, RULE_F64, 1);
  step(LEFT, "aten::maximum", v(x), v(y), NULL);
  n_wanted = 0;
  found(LEFT, 0, 1);
  end_state();
}
END_TEST

START_TEST(what_nothing_reaches_is_listed_and_has_no_branches) {
  begin(1);
  iso_rng rng = iso_rng_new(1, 74);
  for (int side = 0; side < 2; side++) {
    const uint32_t x = drawn(side, &rng, RULE_F64, 1);
    step(side, "aten::relu", v(x), NULL, NULL);
    step(side, "aten::neg", v(x), NULL, NULL);
  }
  live_left[1] = live_right[2] = false;
  ck_assert(st_cover(&st, live, &err) == ISO_OK);
  const synth_coverage *c = &result.coverage;
  ck_assert(c->n_reached[LEFT] == 2 && c->n_reached[RIGHT] == 2);
  ck_assert(c->n_unreached[LEFT] == 1 && c->unreached[LEFT][0] == 1);
  ck_assert(c->n_unreached[RIGHT] == 1 && c->unreached[RIGHT][0] == 2);
  ck_assert_uint_eq(c->n_points, 1);
  for (size_t i = 0; i < c->n_branches; i++) ck_assert(c->branch[i].right);
  end_state();
}
END_TEST

START_TEST(draws_are_those_of_the_captures_and_our_own) {
  begin(5);
  st.n_sets = 2;
  ck_assert(st_cover(&st, live, &err) == ISO_OK);
  ck_assert(result.coverage.n_captured == 2 && result.coverage.n_redrawn == 3);
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("coverage");
  TCase *t = tcase_create("coverage");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, a_choice_that_went_one_way_is_named, 0, CHOICES);
  tcase_add_loop_test(t, a_bound_that_nothing_passed_is_named, 0, BOUNDS);
  tcase_add_test(t, a_choice_between_sizes_is_not_looked_at);
  tcase_add_test(t, what_nothing_reaches_is_listed_and_has_no_branches);
  tcase_add_test(t, draws_are_those_of_the_captures_and_our_own);
  suite_add_tcase(s, t);
  return run_suite(s);
}
