/* Parts of ranks of two groups at once, put together group by group, are joined with the whole: by
 * rows and columns, in sums of each group, with neighbours or ranks apart in one group. */
#include "rules/names.h"
#include "synth/parts/parts.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { SEEDS = 24, GROUPS = 2, MOST_EACH = 3, MOST_PARTS = GROUPS * MOST_EACH };

static uint32_t each;
static bool apart; /* the ranks of a group are as far apart as there are groups */
static st_parts parts;

static const rule_term *of(size_t i) { return v((uint32_t)i); }

static uint32_t place_of(uint32_t of_group, uint32_t k) {
  return apart ? k * GROUPS + of_group : of_group * each + k;
}

/* A group's parts, put together along `d`, or added where that is -1; over places in `node`. */
static const rule_term *together(const size_t *at, uint32_t n, int64_t d) {
  const rule_term *item[MOST_PARTS];
  for (uint32_t k = 0; k < n; k++) item[k] = of(at[k]);
  const rule_term *arg[5] = {rule_list(&w.arena, item, n),
                             d < 0 ? rule_string(&w.arena, "sum") : num(d)};
  return call_of(d < 0 ? OP_DIST_ALL_REDUCE : OP_CAT, arg);
}

/* The groups are rows, each of them columns, or summands. Returns: the place of the whole. */
static size_t whole_of(const size_t *at, bool added) {
  size_t made[GROUPS];
  for (uint32_t g = 0; g < GROUPS; g++) {
    size_t own[MOST_EACH];
    for (uint32_t k = 0; k < each; k++) own[k] = at[place_of(g, k)];
    add_made(together(own, each, added ? -1 : 1));
    made[g] = n_made - 1;
  }
  add_made(together(made, GROUPS, 0));
  return n_made - 1;
}

/* The same put together by columns first. */
static size_t by_columns(const size_t *at) {
  size_t made[MOST_EACH];
  for (uint32_t k = 0; k < each; k++) {
    const size_t own[GROUPS] = {at[place_of(0, k)], at[place_of(1, k)]};
    add_made(together(own, GROUPS, 0));
    made[k] = n_made - 1;
  }
  add_made(together(made, each, 1));
  return n_made - 1;
}

/* Leaves of the ranks, and what is made of them: the parts. */
static void begin_grid(uint64_t seed, const char *step) {
  iso_rng rng = iso_rng_new(seed, 1);
  begin_terms();
  oracle.decide = small_decide;
  each = 2 + (uint32_t)iso_rng_below(&rng, MOST_EACH - 1);
  apart = iso_rng_below(&rng, 2);
  parts = (st_parts){.n = GROUPS * each, .by = 1, .scale = 1};
  for (uint32_t k = 0; k < parts.n; k++) add_leaf(noise(seed * 97 + k, SHAPE(2, 3), 0, 1));
  for (uint32_t k = 0; k < parts.n; k++) {
    parts.of[k] = step ? add_op(step, k, 0, false) : node[k];
    parts.value[k] = st_val(&st, parts.of[k], 0);
  }
}

static bool join(eg_node whole) {
  st_sought x = {.side = LEFT};
  ck_assert_msg(st_join_grid(&st, &parts, whole, &x, &err) == ISO_OK, "%s", err.msg);
  ck_assert(eg_rebuild(st.g, &err) == ISO_OK);
  return x.met;
}

/* The step of the whole is that of all ranks, put together as the whole is. */
START_TEST(a_step_on_a_grid_is_the_step_on_its_parts) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    size_t leaf_at[MOST_PARTS], at[MOST_PARTS];
    begin_grid(seed, "aten::neg");
    for (uint32_t k = 0; k < parts.n; k++) leaf_at[k] = k, at[k] = parts.n + k;
    const size_t x = whole_of(leaf_at, _i), y = n_made;
    add_op("aten::neg", x, 0, false);
    ck_assert_msg(join(node[y]), "seed %d", (int)seed);
    bool same = eg_equal(st.g, node[y], node[whole_of(at, _i)]);
    if (!_i) same |= eg_equal(st.g, node[y], node[by_columns(at)]);
    ck_assert_msg(same, "seed %d", (int)seed);
    ck_assert_uint_gt(w.oracle.n_decided, 0);
    end_state();
  }
}
END_TEST

/* By value alone it is met, and nothing is merged that no rule says. */
START_TEST(what_no_rule_says_is_not_merged) {
  for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
    size_t leaf_at[MOST_PARTS], at[MOST_PARTS];
    begin_grid(seed, "aten::neg");
    w.oracle.judge = JUDGE_UNKNOWN;
    for (uint32_t k = 0; k < parts.n; k++) leaf_at[k] = k, at[k] = parts.n + k;
    const size_t x = whole_of(leaf_at, false), y = n_made;
    add_op("aten::neg", x, 0, false);
    join(node[y]);
    const size_t z = whole_of(at, false);
    ck_assert(!eg_equal(st.g, node[y], node[z]));
    end_state();
  }
}
END_TEST

/* Two parts exchanged, or one element of one part another one. */
START_TEST(other_parts_are_no_grid) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    size_t leaf_at[MOST_PARTS];
    begin_grid(seed, "aten::neg");
    for (uint32_t k = 0; k < parts.n; k++) leaf_at[k] = k;
    const size_t x = whole_of(leaf_at, false);
    add_op("aten::neg", x, 0, false);
    const eg_node whole = node[n_made - 1];
    if (seed % 2) {
      const uint32_t a = place_of(0, 0), b = place_of(1, 1);
      const eg_node e = parts.of[a];
      const rule_tensor *t = parts.value[a];
      parts.of[a] = parts.of[b], parts.value[a] = parts.value[b];
      parts.of[b] = e, parts.value[b] = t;
    } else {
      parts.of[1] = add_leaf(noise(seed + 5000, SHAPE(2, 3), 0, 1));
      parts.value[1] = st_val(&st, parts.of[1], 0);
    }
    ck_assert_msg(!join(whole), "seed %d", (int)seed);
    end_state();
  }
}
END_TEST

/* Fewer than two groups of two are none: their concatenation is looked for elsewhere. */
START_TEST(a_grid_has_two_groups_of_two) {
  begin_grid(0, "aten::neg");
  const size_t at[2] = {0, 1};
  add_made(together(at, 2, 0));
  add_op("aten::neg", n_made - 1, 0, false);
  for (parts.n = 2; parts.n <= 3; parts.n++) ck_assert(!join(node[n_made - 1]));
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("grid");
  TCase *t = tcase_create("grid");
  tcase_add_loop_test(t, a_step_on_a_grid_is_the_step_on_its_parts, 0, 2);
  tcase_add_test(t, what_no_rule_says_is_not_merged);
  tcase_add_test(t, other_parts_are_no_grid);
  tcase_add_test(t, a_grid_has_two_groups_of_two);
  suite_add_tcase(s, t);
  return run_suite(s);
}
