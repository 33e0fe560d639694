/* Which variables of a candidate are computed from others, against walks of random graphs whose
 * steps each belong to one side. */
#include "synth/search/search_int.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { SEEDS = 400, LEAVES = 3, GROWN = 14, MOST_VARS = 5 };

static cone all;
static builder b;
static opening open, shut, aside;
static int side_of[MOST];

/* ---- graphs ---- */

static size_t made_by(int side, const char *op, size_t x, size_t y, bool two) {
  const eg_node e = add_op(op, x, y, two);
  st.rec[e.i].node[side] = (int32_t)n_made;
  side_of[n_made - 1] = side;
  return n_made - 1;
}

static size_t new_leaf(uint64_t seed) {
  add_leaf(noise(seed * MOST + n_made, SHAPE(2, 2), 0, 1));
  return n_made - 1;
}

static void grow(uint64_t seed) {
  static const char *const ops[] = {"aten::add.Tensor", "aten::mul.Tensor", "aten::neg",
                                    "aten::relu"};
  iso_rng rng = iso_rng_new(seed, 61);
  for (int i = 0; i < LEAVES; i++) new_leaf(seed);
  for (int i = 0; i < GROWN; i++) {
    const size_t op = iso_rng_below(&rng, 4), x = iso_rng_below(&rng, n_made);
    const size_t before = n_made;
    const int side = (int)iso_rng_below(&rng, 2);
    const eg_node e = add_op(ops[op], x, iso_rng_below(&rng, n_made), op < 2);
    for (size_t j = 0; j < before; j++)
      if (node[j].i == e.i) n_made = before; /* it was there already */
    if (n_made == before) continue;
    st.rec[e.i].node[side] = (int32_t)before;
    side_of[before] = side;
  }
}

static uint32_t class_of(size_t i) { return eg_class_of(st.g, node[i]).i; }

/* Everything is in the cone. */
static void begin_cone(void) {
  ck_assert(fr_cone_new(&all, eg_count_added(st.g)));
  for (size_t i = 0; i < n_made; i++) all.in[class_of(i)] = 3, all.cls[all.n++] = class_of(i);
  b = (builder){.s = &st, .k = &all};
  open = shut = aside = (opening){0};
}

static void variable(size_t i) {
  b.used[b.n_vars] = 3;
  b.var[b.n_vars++] = (eg_class){class_of(i)};
  all.cut[class_of(i)] = 1;
}

static void end(void) {
  fr_cone_free(&all);
  end_state();
}

/* Whether one side computes `i` from `j`, all steps on the way being its own. */
static bool naive_below(size_t i, size_t j, int side) {
  if (i < LEAVES || side_of[i] != side) return false;
  for (size_t a = 0; a < eg_node_arity(st.g, node[i]); a++) {
    const uint32_t c = eg_node_child(st.g, node[i], a).i;
    for (size_t m = 0; m < i; m++)
      if (class_of(m) == c && (m == j || naive_below(m, j, side))) return true;
  }
  return false;
}

static bool naive_from(size_t i, size_t j) {
  return i != j && (naive_below(i, j, LEFT) || naive_below(i, j, RIGHT));
}

static bool has(const opening *o, size_t i) {
  for (size_t j = 0; j < o->n; j++)
    if (o->cls[j] == class_of(i)) return true;
  return false;
}

static size_t choose(iso_rng *rng, size_t *of) {
  size_t n = 0;
  while (n < MOST_VARS) {
    const size_t i = iso_rng_below(rng, n_made);
    bool seen = false;
    for (size_t j = 0; j < n; j++) seen |= of[j] == i;
    if (!seen) of[n++] = i;
  }
  return n;
}

START_TEST(variables_computed_from_others_are_opened_and_those_others_shut) {
  size_t opened = 0, closed = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_terms();
    grow(seed);
    begin_cone();
    iso_rng rng = iso_rng_new(seed, 62);
    size_t of[MOST_VARS];
    const size_t n = choose(&rng, of);
    for (size_t i = 0; i < n; i++) variable(of[i]);
    ck_assert(fr_dependencies(&st, &all, &b, false, &open, &shut, &aside));
    for (size_t i = 0; i < n; i++) {
      bool above = false, below = false;
      for (size_t j = 0; j < n; j++)
        above |= naive_from(of[i], of[j]), below |= naive_from(of[j], of[i]);
      ck_assert_msg(has(&open, of[i]) == above, "seed %d: %d", (int)seed, (int)of[i]);
      ck_assert_msg(has(&shut, of[i]) == below, "seed %d: %d", (int)seed, (int)of[i]);
      opened += above;
      closed += below;
    }
    ck_assert_uint_eq(aside.n, 0);
    end();
  }
  ck_assert(opened > 100 && closed > 100);
}
END_TEST

/* Of the tied ones those that are computed from others of them; and those of which neither is
 * said. */
START_TEST(tied_variables_are_opened_where_nothing_tied_is_computed_from_them) {
  size_t opened = 0, left = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    begin_terms();
    grow(seed);
    begin_cone();
    iso_rng rng = iso_rng_new(seed, 63);
    size_t of[MOST_VARS];
    bool tied[RULE_MAX_VARS] = {false};
    const size_t n = choose(&rng, of);
    for (size_t i = 0; i < n; i++) {
      variable(of[i]);
      tied[i] = iso_rng_below(&rng, 3) > 0;
      all.cut[class_of(of[i])] = iso_rng_below(&rng, 5) > 0;
    }
    ck_assert(fr_tied_open(&st, &all, &b, tied, &open));
    for (size_t i = 0; i < n; i++) {
      bool above = false, below = false;
      for (size_t j = 0; j < n; j++) {
        above |= tied[j] && naive_from(of[i], of[j]);
        below |= tied[j] && naive_from(of[j], of[i]);
      }
      const bool want = tied[i] && all.cut[class_of(of[i])] && (above || !below);
      ck_assert_msg(has(&open, of[i]) == want, "seed %d: %d", (int)seed, (int)of[i]);
      opened += want;
      left += tied[i] && !want;
    }
    for (size_t j = 0; j < open.n; j++) ck_assert_int_eq(open.how[j], OPEN);
    end();
  }
  ck_assert(opened > 100 && left > 100);
}
END_TEST

/* ---- by hand ---- */

/* Data that reads a table does not depend on it, where only near dependencies count; another table
 * does. */
START_TEST(data_computed_from_constants_are_free_where_only_near_ones_count) {
  for (int k = 0; k < 8; k++) {
    const bool near = k & 1, table_konst = k & 2, konst = k & 4;
    begin_terms();
    const size_t x = new_leaf(1), table = new_leaf(1);
    const size_t y = made_by(LEFT, "aten::add.Tensor", x, table, true);
    st.rec[node[table].i].konst = table_konst;
    st.rec[node[y].i].konst = konst;
    begin_cone();
    variable(table);
    variable(y);
    ck_assert(fr_dependencies(&st, &all, &b, near, &open, &shut, &aside));
    const bool want = !(near && table_konst && !konst);
    ck_assert_int_eq(has(&open, y), want);
    ck_assert_int_eq(has(&shut, table), want);
    end();
  }
}
END_TEST

static size_t turned(int side, size_t x) {
  const rule_term *arg[5] = {v((uint32_t)x), num(0), num(1)};
  const eg_node e = add_made(call_of("aten::transpose.int", arg));
  st.rec[e.i].node[side] = (int32_t)n_made;
  side_of[n_made - 1] = side;
  return n_made - 1;
}

/* A layout is followed through both graphs, six steps down, while nothing is computed; what is cut
 * on the way is opened, and nothing else. */
START_TEST(layouts_are_followed_through_both_graphs) {
  enum { MOST_STEPS = 6 };
  for (int steps = 2; steps <= MOST_STEPS + 1; steps++)
    for (int way = 0; way < 3; way++) {
      const bool computes = way == 1, is_cut = way != 2;
      begin_terms();
      const size_t x = new_leaf(2);
      size_t y = x, middle = x;
      for (int i = 0; i < steps; i++) {
        middle = y;
        y = computes && i == steps / 2 ? made_by(i % 2, "aten::neg", y, 0, false)
                                       : turned(i % 2, y);
      }
      begin_cone();
      variable(x);
      variable(y);
      all.cut[class_of(middle)] = is_cut;
      ck_assert(fr_dependencies(&st, &all, &b, false, &open, &shut, &aside));
      const bool found = steps <= MOST_STEPS && !computes;
      ck_assert_msg(has(&open, y) == found, "%d steps, way %d", steps, way);
      ck_assert_int_eq(has(&open, middle), found && is_cut);
      ck_assert(!has(&open, x));
      end();
    }
}
END_TEST

/* Two constants that are layouts of a third, and of which neither is the other's. */
START_TEST(constants_that_are_layouts_of_a_third_are_opened) {
  for (int konst = 0; konst < 8; konst++) {
    begin_terms();
    const size_t x = new_leaf(3), l = turned(LEFT, x), r = n_made;
    const rule_term *arg[5] = {v((uint32_t)x), num(0)};
    add_made(call_of("aten::unsqueeze", arg));
    st.rec[node[r].i].node[RIGHT] = 1;
    for (size_t i = 0; i < n_made; i++) st.rec[node[i].i].konst = konst >> i & 1;
    begin_cone();
    variable(l);
    variable(r);
    ck_assert(fr_dependencies(&st, &all, &b, false, &open, &shut, &aside));
    ck_assert(has(&open, l) == (konst == 7) && has(&open, r) == (konst == 7));
    end();
  }
}
END_TEST

START_TEST(rules_are_named_after_what_is_no_layout) {
  static const char *const layouts[] = {"aten::transpose.int", "aten::reshape", "aten::unsqueeze",
                                        "aten::slice.Tensor", "aten::permute"},
                           *const others[] = {"aten::t", "aten::neg", "aten::cat", "aten::mm"};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    ck_assert_msg(fr_layout_op(layouts[i]) && fr_moves_op(layouts[i]), "%s", layouts[i]);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    ck_assert_msg(!fr_layout_op(others[i]), "%s", others[i]);
  ck_assert(fr_moves_op("aten::t") && !fr_moves_op("aten::neg"));
}
END_TEST

int main(void) {
  Suite *s = suite_create("refine_deps");
  TCase *t = tcase_create("refine_deps");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, variables_computed_from_others_are_opened_and_those_others_shut);
  tcase_add_test(t, tied_variables_are_opened_where_nothing_tied_is_computed_from_them);
  tcase_add_test(t, data_computed_from_constants_are_free_where_only_near_ones_count);
  tcase_add_test(t, layouts_are_followed_through_both_graphs);
  tcase_add_test(t, constants_that_are_layouts_of_a_third_are_opened);
  tcase_add_test(t, rules_are_named_after_what_is_no_layout);
  suite_add_tcase(s, t);
  return run_suite(s);
}
