/* Which inputs choose rows of a table: as they are, moved, or computed one by one. */
#include "synth/leaves/leaves.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { X, OTHER, TABLE, MASK, LEAVES }; /* of the left */

static bool live[MAX_NODES];

static const rule_term *call(const char *op, const rule_term *a, const rule_term *b,
                             const rule_term *c, const rule_term *d) {
  return call_of(op, (const rule_term *const[5]){a, b, c, d});
}

static uint32_t leaf_of(rule_dtype dtype, rule_shape s) {
  rule_tensor *t = keep(make_as(dtype, s));
  const uint32_t i = leaf(&w.l, SYNTH_INPUT, "x", t, t);
  w.l.node[i].dtype = dtype;
  return i;
}

static void begin(void) {
  begin_state();
  leaf_of(RULE_I64, SHAPE(4));
  leaf_of(RULE_I64, SHAPE(4));
  leaf_of(RULE_F64, SHAPE(4, 4));
  leaf_of(RULE_BOOL, SHAPE(4));
  for (int i = 0; i < MAX_NODES; i++) live[i] = true;
}

/* A step that is not run. */
static const rule_term *step(const rule_term *t, rule_dtype dtype) {
  uint32_t i;
  synth_node *n = new_node(&w.l, &i);
  n->kind = SYNTH_OP;
  n->op = t->u.s;
  n->call = t;
  n->dtype = dtype;
  return v(i);
}

static const rule_term *integers(const rule_term *t) { return step(t, RULE_I64); }
static const rule_term *plus(const rule_term *a, const rule_term *b) {
  return integers(call("aten::add.Tensor", a, b, NULL, NULL));
}
static const rule_term *first_of(const rule_term *x) {
  return integers(call("aten::slice.Tensor", x, num(0), num(0), num(1)));
}
static const rule_term *cast(const rule_term *x) {
  return integers(call("aten::_to_copy", x, NULL, NULL, NULL));
}
static const rule_term *turned(const rule_term *x) {
  return integers(call("aten::unsqueeze", x, num(0), NULL, NULL));
}
static const rule_term *at_least(const rule_term *x, int64_t low) {
  return integers(call("aten::clamp_min", x, num(low), NULL, NULL));
}
static const rule_term *chosen(const rule_term *x) {
  return integers(call("aten::where.self", v(MASK), x, v(OTHER), NULL));
}
static void looked_up(const rule_term *x) {
  step(call("aten::embedding", v(TABLE), x, NULL, NULL), RULE_F64);
}

static st_rows rows_of(uint32_t i) { return st_chooses_rows(&st, LEFT, i, live); }

START_TEST(integers_choose_rows_moved_or_computed_one_by_one) {
  for (int k = 0; k < 12; k++) {
    begin();
    const rule_term *x = v(X), *index = NULL;
    if (k == 0) index = x;
    if (k == 1) index = plus(x, num(1));
    if (k == 2) index = plus(x, v(OTHER));
    if (k == 3) index = first_of(x);
    if (k == 4) index = first_of(plus(x, num(1)));
    if (k == 5) index = at_least(turned(cast(x)), 0);
    if (k == 6) index = plus(at_least(x, 0), num(-1));
    if (k == 7) index = chosen(x);
    /* No sign of rows: of a part, of two of them, of none. */
    if (k == 8) index = plus(first_of(x), num(1));
    if (k == 9) index = plus(x, x);
    if (k == 10) index = v(OTHER);
    if (k == 11) index = integers(call("aten::cumsum", x, num(0), NULL, NULL));
    looked_up(index);
    ck_assert_msg(rows_of(X) == (k < 8 ? ST_ROWS_READ : ST_ROWS_NONE), "%d: %d", k, rows_of(X));
    ck_assert(rows_of(TABLE) == ST_ROWS_NONE);
    end_state();
  }
}
END_TEST

/* By other operators, and as what: rows are read, or are the classes of a loss. */
START_TEST(rows_are_read_or_told_as_classes) {
  for (int k = 0; k < 7; k++) {
    begin();
    const rule_term *x = v(X), *t = v(TABLE), *list = rule_list(&w.arena, &x, 1);
    const rule_term *calls[7] = {call("aten::index.Tensor", t, list, NULL, NULL),
                                 call("aten::index_select", t, num(1), x, NULL),
                                 call("aten::one_hot", x, num(5), NULL, NULL),
                                 call("aten::cross_entropy_loss", t, x, NULL, NULL),
                                 call("aten::index_put", t, list, t, NULL),
                                 call("aten::index_add", t, num(0), x, t),
                                 call("aten::mul.Tensor", t, x, NULL, NULL)};
    step(calls[k], RULE_F64);
    const st_rows want = k < 3 ? ST_ROWS_READ : k == 3 ? ST_ROWS_CLASSES : ST_ROWS_NONE;
    ck_assert_msg(rows_of(X) == want, "%s: %d", calls[k]->u.s, rows_of(X));
    end_state();
  }
}
END_TEST

START_TEST(only_what_is_live_counts_and_classes_before_rows) {
  begin();
  looked_up(v(X));
  step(call("aten::cross_entropy_loss", v(TABLE), v(X), NULL, NULL), RULE_F64);
  ck_assert(rows_of(X) == ST_ROWS_CLASSES);
  live[LEAVES + 1] = false;
  ck_assert(rows_of(X) == ST_ROWS_READ);
  live[LEAVES] = false;
  ck_assert(rows_of(X) == ST_ROWS_NONE);
  end_state();
}
END_TEST

/* Floats made of integers are none of them. */
START_TEST(integers_that_became_floats_choose_nothing) {
  begin();
  const rule_term *f = step(call("aten::_to_copy", v(X), NULL, NULL, NULL), RULE_F64);
  looked_up(integers(call("aten::_to_copy", f, NULL, NULL, NULL)));
  ck_assert(rows_of(X) == ST_ROWS_NONE);
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("index_bounds");
  TCase *t = tcase_create("index_bounds");
  tcase_add_test(t, integers_choose_rows_moved_or_computed_one_by_one);
  tcase_add_test(t, rows_are_read_or_told_as_classes);
  tcase_add_test(t, only_what_is_live_counts_and_classes_before_rows);
  tcase_add_test(t, integers_that_became_floats_choose_nothing);
  suite_add_tcase(s, t);
  return run_suite(s);
}
