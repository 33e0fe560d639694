/* Inputs that are kept because their integers have a structure, on every set; and statements about
 * a leaf that hold for the leaves that it is made of. */
#include "rules/names.h"
#include "synth/leaves/leaves.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { MOST = 8 };

static bool live[MAX_NODES];

static rule_tensor *integers(const char *text) {
  double x[MOST];
  int64_t n = 0;
  for (char *at = (char *)(uintptr_t)text; *at && n < MOST; n++) x[n] = strtod(at, &at);
  rule_tensor *t = keep(make_as(RULE_I64, SHAPE(n)));
  for (int64_t i = 0; i < n; i++) rule_tensor_set(t, i, x[i]);
  return t;
}

/* An input with one or two sets. */
static uint32_t input_of(rule_tensor *first, rule_tensor *second) {
  const uint32_t i = leaf(&w.l, SYNTH_INPUT, "x", first, second ? second : first);
  w.l.node[i].dtype = first->dtype;
  st.n_sets = second ? 2 : 1;
  return i;
}

static void begin(void) {
  begin_state();
  for (int i = 0; i < MAX_NODES; i++) live[i] = true;
}

/* A step that is not run. */
static void read_by(const rule_term *t) {
  uint32_t i;
  synth_node *n = new_node(&w.l, &i);
  n->kind = SYNTH_OP;
  n->op = t->u.s;
  n->call = t;
  add_atom(LEFT, i);
}

static const rule_term *call(const char *op, const rule_term *a, const rule_term *b) {
  return call_of(op, (const rule_term *const[5]){a, b});
}

/* Positions, lengths, bounds of sequences, which one an element is of, masks. */
static const struct {
  const char *set[2];
  bool kept;
} sequences[] = {{{"0 1 2 3"}, true},
                 {{"5 6 7"}, true},
                 {{"4 4 4"}, true},
                 {{"1 0 0 1"}, true},
                 {{"0 3 3 7"}, true},
                 {{"0 1 2 0 1 2 3"}, true},
                 {{"1 1 1 2 3 4 5 6"}, true}, /* behind padding, which is one number */
                 {{"0"}, true},
                 {{"3"}, false},
                 {{"7 2 9 4"}, false},
                 {{"3 5 9"}, false}, /* bounds begin at 0 */
                 {{"0 5 3"}, false},
                 {{"0 3 1 4"}, false},
                 {{"0 0 0 1 2 0 0 0"}, false}, /* zeros mostly */
                 {{"0 1 2 3", "4 5 6 7"}, true},
                 {{"0 1 2 3", "7 2 9 4"}, false},
                 {{"0 1 2 3", "0 2 4 9"}, true}, /* bounds, both */
                 {{"1 2 3 4", "0 2 4 9"}, false},
                 {{"0 0", "1 0"}, true}};

START_TEST(a_structure_on_every_set_is_kept) {
  begin();
  const uint32_t x = input_of(integers(sequences[_i].set[0]),
                              sequences[_i].set[1] ? integers(sequences[_i].set[1]) : NULL);
  ck_assert_msg(st_structured(&st, LEFT, x, live) == sequences[_i].kept, "%s",
                sequences[_i].set[0]);
  end_state();
}
END_TEST

/* Rows of a table are no bounds of sequences, and classes of a loss may be any. */
START_TEST(numbers_that_choose_rows_have_less_of_a_structure) {
  for (int k = 0; k < 3; k++) {
    begin();
    const uint32_t bounds = input_of(integers("0 3 3 7"), NULL),
                   steps = input_of(integers("0 1 2 3"), NULL),
                   table = weight(&w.l, "t", noise(1, SHAPE(9, 2), 0, 1));
    for (uint32_t x = bounds; k && x <= steps; x++)
      read_by(k == 1 ? call("aten::embedding", v(table), v(x))
                     : call("aten::cross_entropy_loss", v(table), v(x)));
    ck_assert(st_structured(&st, LEFT, bounds, live) == (k == 0));
    ck_assert(st_structured(&st, LEFT, steps, live) == (k < 2));
    end_state();
  }
}
END_TEST

/* Zeros and ones are no mask where a loss is told them; numbers that come of a mask are kept. */
START_TEST(what_looks_like_a_mask_may_be_classes) {
  for (int k = 0; k < 3; k++) {
    begin();
    const uint32_t bits = input_of(integers("0 1 1 0"), NULL),
                   counts = input_of(integers("0 3 3 7"), NULL),
                   table = weight(&w.l, "t", noise(1, SHAPE(4, 9), 0, 1));
    for (uint32_t x = bits; k && x <= counts; x++)
      read_by(k == 1 ? call("aten::embedding", v(table), v(x))
                     : call("aten::cross_entropy_loss", v(table), v(x)));
    w.l.node[bits].kept = w.l.node[counts].kept = true;
    ck_assert(st_structured(&st, LEFT, bits, live) == (k < 2));
    ck_assert(st_structured(&st, LEFT, counts, live));
    ck_assert(st_kept_by_chance(&st, LEFT, counts, live) == (k > 0)); /* of four rows */
    w.l.node[counts].by_chance = true;
    ck_assert(st_kept_by_chance(&st, LEFT, counts, live));
    end_state();
  }
}
END_TEST

/* So few are no structure where others are tried: by the rows of the table that they choose. */
START_TEST(few_numbers_are_kept_by_chance) {
  static const struct {
    const char *set;
    int rows; /* 0: they choose none */
    bool by_chance;
  } some[] = {{"0 0 0", 9, true},        {"0 0 0 0", 9, true},    {"0 1 1 0 1 0", 5, true},
              {"0 1 1 0 1 0", 0, false}, {"0", 9, true},          {"0 1 2", 9, true},
              {"0 1 2 3 4", 9, false},   {"1 1 1", 0, true},      {"1 1 1 1", 0, false},
              {"1 1 1 1", 9, true},      {"5 5 5 5 5 5", 0, true}};
  for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
    begin();
    const uint32_t x = input_of(integers(some[k].set), NULL),
                   table = weight(&w.l, "t", noise(1, SHAPE(some[k].rows + 1, 2), 0, 1));
    if (some[k].rows) read_by(call("aten::embedding", v(table), v(x)));
    ck_assert_msg(st_kept_by_chance(&st, LEFT, x, live) == some[k].by_chance, "%s", some[k].set);
    ck_assert(st_structured(&st, LEFT, x, live));
    st.leaves.frees_by_chance = true;
    ck_assert_msg(st_structured(&st, LEFT, x, live) != some[k].by_chance, "%s", some[k].set);
    st.leaves.frees_by_chance = false;
    end_state();
  }
}
END_TEST

START_TEST(other_dtypes_and_declared_domains_decide_first) {
  const rule_domain range = {.low = 0, .high = 9, .who = "x"},
                    sorted = {.low = -INFINITY, .high = INFINITY, .sorted = true, .who = "x"},
                    order = {.low = 0, .high = 3, .distinct = true, .who = "x"};
  begin();
  const uint32_t f = input_of(noise(1, SHAPE(3), 0, 1), NULL),
                 none = input_of(make(SHAPE(0)), NULL),
                 c = input_of(keep(make_as(RULE_BOOL, SHAPE(3))), NULL),
                 bounds = input_of(integers("0 3 3 7"), NULL),
                 ids = input_of(integers("3 9 2"), NULL),
                 places = input_of(integers("0 1 2 3"), NULL);
  keep(w.l.value[none][0]);
  ck_assert(!st_structured(&st, LEFT, f, live) && st_structured(&st, LEFT, none, live));
  ck_assert(st_structured(&st, LEFT, c, live));
  w.l.node[bounds].domain = &range; /* any numbers, it is said */
  ck_assert(!st_structured(&st, LEFT, bounds, live));
  w.l.node[ids].domain = &sorted; /* elements go together */
  ck_assert(st_structured(&st, LEFT, ids, live));
  w.l.node[places].domain = &order; /* any order of all places can be drawn */
  ck_assert(!st_structured(&st, LEFT, places, live));
  end_state();
}
END_TEST

/* A statement about each element holds for the leaves that a term puts together, and not for one of
 * which it takes a part. */
START_TEST(a_domain_is_that_of_the_leaves_it_is_made_of) {
  const rule_domain d = {.low = -2, .high = 5, .who = "left"},
                    own = {.low = 0, .high = 9, .who = "right"};
  for (int k = 0; k < 2; k++) {
    begin();
    const uint32_t x = input_of(noise(1, SHAPE(4), 0, 1), NULL);
    w.l.node[x].domain = &d;
    for (uint32_t i = 0; i < 2; i++) input(&w.r, noise(2 + i, SHAPE(2), 0, 1));
    w.r.node[1].domain = &own;
    const rule_term *cut[5] = {v(0), num(0), num(0), num(1), num(1)};
    const rule_term *part[2] = {k ? call_of(OP_SLICE_TENSOR, cut) : v(0), v(1)};
    const rule_term *arg[5] = {rule_list(&w.arena, part, 2), num(0)};
    ck_assert(st_pass_domain_on(&st, LEFT, x, call_of(OP_CAT, arg), &err) == ISO_OK);
    if (k) ck_assert_ptr_null(w.r.node[0].domain);
    else ck_assert(w.r.node[0].domain->low == -2 && w.r.node[0].domain->high == 5);
    ck_assert(w.r.node[1].domain->low == 0 && w.r.node[1].domain->high == 5);
    end_state();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("domains");
  TCase *t = tcase_create("domains");
  tcase_add_loop_test(t, a_structure_on_every_set_is_kept, 0,
                      (int)(sizeof sequences / sizeof *sequences));
  tcase_add_test(t, numbers_that_choose_rows_have_less_of_a_structure);
  tcase_add_test(t, what_looks_like_a_mask_may_be_classes);
  tcase_add_test(t, few_numbers_are_kept_by_chance);
  tcase_add_test(t, other_dtypes_and_declared_domains_decide_first);
  tcase_add_test(t, a_domain_is_that_of_the_leaves_it_is_made_of);
  suite_add_tcase(s, t);
  return run_suite(s);
}
