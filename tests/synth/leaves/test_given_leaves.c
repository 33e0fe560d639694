/* Lines about leaves, taken together: with the right leaves as they are written then, every line
 * holds whatever the left leaves are; where lines tie elements of a left leaf together it is
 * written as its line says, or keeps its values. */
#include "rules/names.h"
#include "synth/leaves/leaves.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { SEEDS = 200, ROWS = 6, COLUMNS = 4, MOST_LINES = 16 };
/* How the right graph has a left leaf. */
typedef enum way { REPLICAS, CUT, COPIED_CUT, COPIED_PARTS, OVERLAP, TURNED, FREE_WAYS } way;

static synth_given line[MOST_LINES];
static size_t n_lines;
static synth_relation of[MAX_NODES];

static void begin(void) {
  begin_state();
  n_lines = 0;
  memset(of, 0, sizeof of);
  for (int side = 0; side < 2; side++) {
    st.leaves.settled[side] = calloc(MAX_NODES, 1);
    st.leaves.written[side] = calloc(MAX_NODES, 1);
    st.leaves.kept[side] = calloc(MAX_NODES, 1);
    ck_assert(st.leaves.settled[side] && st.leaves.written[side] && st.leaves.kept[side]);
  }
}

static void end(void) {
  for (int side = 0; side < 2; side++) {
    free(st.leaves.settled[side]);
    free(st.leaves.written[side]);
    free(st.leaves.kept[side]);
  }
  end_state();
}

static void take(void) {
  w.options.given = line;
  w.options.n_given = n_lines;
  ck_assert_msg(st_take_families(&st, of, &err) == ISO_OK, "%s", err.msg);
}

/* ---- terms ---- */

static const rule_term *rows(const rule_term *x, int64_t from, int64_t to) {
  const rule_term *arg[5] = {x, num(0), num(from), num(to), num(1)};
  return rule_op(&w.arena, OP_SLICE_TENSOR, arg, 5);
}

static const rule_term *joined_rows(const rule_term *a, const rule_term *b) {
  const rule_term *part[2] = {a, b}, *arg[2] = {rule_list(&w.arena, part, 2), num(0)};
  return rule_op(&w.arena, OP_CAT, arg, 2);
}

static const rule_term *turned(const rule_term *x) { return rule_op(&w.arena, "aten::t", &x, 1); }

static rule_tensor *value_over(const rule_term *t, rule_tensor *const *leaf) {
  rule_tensor *out = NULL;
  ck_assert_msg(st_term_over(&st, t, leaf, &out, &err) == ISO_OK, "%s", err.msg);
  return keep(out);
}

/* ---- leaves and lines ---- */

static rule_tensor *part_of(const rule_tensor *t, int64_t from, int64_t to) {
  rule_tensor *r = keep(make(SHAPE(to - from, COLUMNS)));
  for (int64_t i = 0; i < r->numel; i++)
    rule_tensor_set(r, i, rule_tensor_get(t, from * COLUMNS + i));
  return r;
}

static const rule_term *right(rule_tensor *t) { return v(weight(&w.r, "r", t)); }

static void says(uint32_t left, const rule_term *t) {
  ck_assert_uint_lt(n_lines, MOST_LINES);
  line[n_lines++] = (synth_given){.left = left, .term = t};
}

static void equal(const rule_term *a, const rule_term *b) {
  ck_assert_uint_lt(n_lines, MOST_LINES);
  line[n_lines++] = (synth_given){.equals = a, .term = b};
}

/* A left leaf of its own numbers, and what the right graph has of it. */
static uint32_t add_family(way how, iso_rng *rng) {
  const int64_t cut = 1 + (int64_t)iso_rng_below(rng, ROWS - 2);
  rule_tensor *t = noise(1 + n_lines, SHAPE(ROWS, COLUMNS), 0, 1);
  const uint32_t x = weight(&w.l, "l", t);
  if (how == REPLICAS)
    for (int k = 0; k < 3; k++) says(x, right(t));
  if (how == TURNED) says(x, turned(right(keep(transposed(t, 0, 1)))));
  if (how == CUT) says(x, joined_rows(right(part_of(t, 0, cut)), right(part_of(t, cut, ROWS))));
  if (how == COPIED_CUT) {
    const rule_term *a = right(part_of(t, 0, cut)), *b = right(part_of(t, cut, ROWS)),
                    *c = right(part_of(t, cut, ROWS));
    says(x, joined_rows(a, b));
    equal(b, c);
  }
  if (how == COPIED_PARTS) {
    const rule_term *a = right(part_of(t, 0, cut)), *b = right(part_of(t, cut, ROWS)),
                    *c = right(part_of(t, 0, cut)), *d = right(part_of(t, cut, ROWS));
    says(x, joined_rows(a, b));
    equal(joined_rows(c, d), joined_rows(a, b));
  }
  if (how == OVERLAP) {
    const rule_term *a = right(part_of(t, 0, cut + 1)), *b = right(part_of(t, cut, ROWS));
    says(x, joined_rows(a, rows(b, 1, ROWS - cut)));
    equal(rows(a, cut, cut + 1), rows(b, 0, 1));
  }
  return x;
}

/* Every line holds of the right leaves as they are written, over other left leaves. */
static void lines_hold(uint64_t seed) {
  rule_tensor *value[2][MAX_NODES] = {{NULL}};
  for (size_t i = 0; i < w.l.g.n_nodes; i++)
    value[LEFT][i] = noise(seed + i, w.l.node[i].shape, 3, 2);
  for (size_t i = 0; i < w.r.g.n_nodes; i++) {
    ck_assert_msg(of[i].term != NULL, "right leaf %d has no relation", (int)i);
    ck_assert(st.leaves.settled[RIGHT][i] && st.leaves.written[RIGHT][i]);
    ck_assert(!st.leaves.kept[RIGHT][i]);
    value[RIGHT][i] = value_over(of[i].term, value[LEFT]);
    ck_assert(rule_shape_eq(&value[RIGHT][i]->shape, &w.r.node[i].shape));
  }
  for (size_t k = 0; k < n_lines; k++) {
    const rule_tensor *a = line[k].equals ? value_over(line[k].equals, value[RIGHT])
                                          : value[LEFT][line[k].left],
                      *b = value_over(line[k].term, value[RIGHT]);
    ck_assert(rule_shape_eq(&a->shape, &b->shape));
    for (int64_t i = 0; i < a->numel; i++)
      ck_assert_msg(rule_tensor_get(a, i) == rule_tensor_get(b, i), "line %d, element %d", (int)k,
                    (int)i);
  }
}

START_TEST(lines_hold_whatever_the_left_leaves_are) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    begin();
    const int n = 1 + (int)iso_rng_below(&rng, 2);
    for (int k = 0; k < n; k++) add_family((way)iso_rng_below(&rng, FREE_WAYS), &rng);
    take();
    lines_hold(100 * seed);
    for (size_t i = 0; i < w.l.g.n_nodes; i++)
      ck_assert(!st.leaves.settled[LEFT][i] && !st.leaves.kept[LEFT][i]);
    end();
  }
}
END_TEST

/* Rows that no line speaks of are those of the left leaf that have their values. */
START_TEST(elements_that_lines_leave_open_are_found_by_value) {
  begin();
  rule_tensor *t = noise(1, SHAPE(ROWS, COLUMNS), 0, 1);
  const uint32_t x = weight(&w.l, "l", t);
  const rule_term *a = right(part_of(t, 0, 3)), *b = right(part_of(t, 2, ROWS));
  says(x, joined_rows(a, right(part_of(t, 3, ROWS))));
  equal(rows(a, 2, 3), rows(b, 0, 1)); /* of the rest of b nothing is said */
  take();
  lines_hold(7);
  rule_tensor *left[1] = {noise(9, t->shape, 0, 1)};
  const rule_tensor *now = value_over(of[b->u.i].term, left), *want = part_of(left[0], 2, ROWS);
  for (int64_t i = 0; i < want->numel; i++)
    ck_assert_double_eq(rule_tensor_get(now, i), rule_tensor_get(want, i));
  end();
}
END_TEST

/* Rows 0 and 1 have the values of rows 3 and 4, and a line says that the right leaf begins with row
 * 3: it is not written as rows 0 and 1. */
START_TEST(values_do_not_stand_against_a_line) {
  begin();
  rule_tensor *t = noise(1, SHAPE(ROWS, COLUMNS), 0, 1);
  for (int64_t i = 0; i < 2 * COLUMNS; i++)
    rule_tensor_set(t, 3 * COLUMNS + i, rule_tensor_get(t, i));
  const uint32_t x = weight(&w.l, "l", t);
  const rule_term *a = right(t), *b = right(part_of(t, 3, 5));
  says(x, a);
  equal(rows(a, 3, 4), rows(b, 0, 1));
  take();
  const rule_term *now = of[b->u.i].term;
  rule_tensor *left[1] = {noise(9, t->shape, 0, 1)};
  if (now)
    for (int64_t i = 0; i < COLUMNS; i++)
      ck_assert_double_eq(rule_tensor_get(value_over(now, left), i),
                          rule_tensor_get(left[0], 3 * COLUMNS + i));
  else ck_assert(st.leaves.settled[LEFT][x] && st.leaves.kept[LEFT][x]);
  end();
}
END_TEST

/* Both halves of a leaf are one right leaf: it is written so; with a second line, or one about
 * right leaves alone, its family keeps its values. */
START_TEST(a_left_leaf_that_is_tied_is_written_as_its_line_says) {
  for (int more = 0; more < 3; more++) {
    begin();
    rule_tensor *half = noise(1, SHAPE(ROWS / 2, COLUMNS), 0, 1), *t = keep(make(SHAPE(ROWS, 4)));
    for (int64_t i = 0; i < t->numel; i++)
      rule_tensor_set(t, i, rule_tensor_get(half, i % half->numel));
    weight(&w.l, "other", noise(2, SHAPE(3), 0, 1));
    const uint32_t x = weight(&w.l, "l", t);
    const rule_term *r = right(half);
    says(x, joined_rows(r, r));
    if (more == 1) says(x, right(t));
    if (more == 2) equal(r, right(half));
    take();
    ck_assert(st.leaves.settled[LEFT][x] && st.leaves.written[LEFT][x]);
    ck_assert_int_eq(st.leaves.kept[LEFT][x], more > 0);
    for (size_t i = 0; i < w.r.g.n_nodes; i++) {
      ck_assert_int_eq(st.leaves.kept[RIGHT][i], more > 0);
      ck_assert_ptr_null(of[i].term);
    }
    end();
  }
}
END_TEST

/* Lines that share no leaf are families of their own. */
START_TEST(families_do_not_disturb_one_another) {
  for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    begin();
    const uint32_t x = add_family((way)iso_rng_below(&rng, FREE_WAYS), &rng);
    const size_t n_right = w.r.g.n_nodes;
    rule_tensor *half = noise(77, SHAPE(ROWS / 2, COLUMNS), 0, 1), *t = keep(make(SHAPE(ROWS, 4)));
    for (int64_t i = 0; i < t->numel; i++)
      rule_tensor_set(t, i, rule_tensor_get(half, i % half->numel));
    const uint32_t y = weight(&w.l, "l2", t);
    const rule_term *r = right(half);
    says(y, joined_rows(r, r));
    take();
    ck_assert(!st.leaves.settled[LEFT][x] && st.leaves.settled[LEFT][y]);
    for (size_t i = 0; i < w.r.g.n_nodes; i++) ck_assert((of[i].term != NULL) == (i < n_right));
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("given_leaves");
  TCase *t = tcase_create("given_leaves");
  tcase_add_test(t, lines_hold_whatever_the_left_leaves_are);
  tcase_add_test(t, elements_that_lines_leave_open_are_found_by_value);
  tcase_add_test(t, values_do_not_stand_against_a_line);
  tcase_add_test(t, a_left_leaf_that_is_tied_is_written_as_its_line_says);
  tcase_add_test(t, families_do_not_disturb_one_another);
  suite_add_tcase(s, t);
  return run_suite(s);
}
