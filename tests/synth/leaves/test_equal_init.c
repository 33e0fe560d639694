/* Relations that hold by the captured values alone: of zeros and ones the one of its name counts,
 * and no element is made equal to another one of its leaf. */
#include "synth/leaves/leaves.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

static synth_relation of[MAX_NODES];
static bool settled[2][MAX_NODES], written[2][MAX_NODES];
static int32_t replica[2][MAX_NODES];

static void begin(void) {
  begin_state();
  memset(of, 0, sizeof of);
  memset(settled, 0, sizeof settled);
  memset(written, 0, sizeof written);
  for (int side = 0; side < 2; side++) {
    st.leaves.settled[side] = settled[side];
    st.leaves.written[side] = written[side];
    st.leaves.replica[side] = replica[side];
    for (int i = 0; i < MAX_NODES; i++) replica[side][i] = -1;
  }
}

static void end(void) {
  st.leaves = (st_leaves){0};
  end_state();
}

/* ---- zeros and ones ---- */

/* A parameter of one number. */
static uint32_t filled(int side, const char *name, double x) {
  return weight(graph_of(side), name, constant(SHAPE(3), x));
}

static void drop(void) { ck_assert(st_drop_coincidences(&st, LEFT, of, &err) == ISO_OK); }

/* The right leaf that left leaf `i` is; -1: none. */
static int64_t partner(uint32_t i) { return of[i].term ? of[i].term->u.i : -1; }

/* The relations that values suggest: each left leaf to the right's first. */
static void all_to_the_first(uint32_t n) {
  for (uint32_t i = 0; i < n; i++) of[i].term = v(0);
}

START_TEST(zeros_are_those_of_their_name) {
  begin();
  filled(RIGHT, "a.bias", 0), filled(RIGHT, "b.bias", 0);
  filled(LEFT, "model.b.bias", 0), filled(LEFT, "model.a.bias", 0);
  all_to_the_first(2);
  drop();
  ck_assert_int_eq(partner(1), 0);
  ck_assert_int_eq(partner(0), 1);
  end();
}
END_TEST

/* Without a name of theirs they go with one that is left, and with none of other numbers. */
START_TEST(others_go_with_one_that_is_left) {
  begin();
  filled(RIGHT, "a", 0), filled(RIGHT, "ones", 1), filled(RIGHT, "u", 0), filled(RIGHT, "v", 0);
  filled(LEFT, "a", 0), filled(LEFT, "x", 0), filled(LEFT, "y", 0), filled(LEFT, "z", 0);
  all_to_the_first(4);
  drop();
  ck_assert_int_eq(partner(0), 0);
  ck_assert_int_eq(partner(1), 2);
  ck_assert_int_eq(partner(2), 3);
  ck_assert_int_eq(partner(3), -1);
  end();
}
END_TEST

/* A leaf that repeats a lower rank's is no partner of its own. */
START_TEST(replicas_are_left_to_what_they_repeat) {
  begin();
  filled(RIGHT, "a", 0), filled(RIGHT, "u", 0);
  filled(LEFT, "a", 0), filled(LEFT, "x", 0);
  replica[RIGHT][1] = 0;
  all_to_the_first(2);
  drop();
  ck_assert(partner(0) == 0 && partner(1) == -1);
  end();
}
END_TEST

START_TEST(nothing_is_dropped_without_a_name_that_says_so) {
  /* no such name; part of a word; numbers that differ; a relation that the user gave */
  for (int k = 0; k < 5; k++) {
    begin();
    rule_tensor *t = noise(1, SHAPE(3), 0, 1);
    if (k == 2) weight(graph_of(RIGHT), "a", t);
    else filled(RIGHT, "a", 0);
    for (int i = 0; i < 2; i++) {
      const char *name = i ? "b" : k == 0 ? "c" : k == 1 ? "xa" : "a";
      if (k == 2) weight(graph_of(LEFT), name, t);
      else filled(LEFT, name, 0);
    }
    settled[LEFT][1] = k == 3;
    all_to_the_first(2);
    drop();
    ck_assert(partner(0) == 0 && partner(1) == (k == 4 ? -1 : 0));
    end();
  }
}
END_TEST

/* ---- elements that stand twice ---- */

static const rule_term *call(const char *op, const rule_term *a, const rule_term *b,
                             const rule_term *c, const rule_term *d) {
  return call_of(op, (const rule_term *const[5]){a, b, c, d});
}

static const rule_term *rows(uint32_t i, int64_t from, int64_t to) {
  return call_of("aten::slice.Tensor",
                 (const rule_term *const[5]){v(i), num(0), num(from), num(to), num(1)});
}

static const rule_term *cat(const rule_term *a, const rule_term *b) {
  const rule_term *both[2] = {a, b};
  return call("aten::cat", rule_list(&w.arena, both, 2), num(0), NULL, NULL);
}

/* Whether a left leaf may be this term over right leaves 0 and 1, both [4, 2]. */
static bool stays(const rule_term *t, bool is_written, bool konst) {
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 0; i < 2; i++) {
      weight(graph_of(side), i ? "b" : "a", noise(i, SHAPE(4, 2), 0, 1));
      add_atom(side, i);
    }
  of[0].term = t;
  written[LEFT][0] = is_written;
  st.rec[st.map[LEFT][0].i].konst = konst;
  ck_assert_msg(st_drop_repeats(&st, LEFT, of, &err) == ISO_OK, "%s", err.msg);
  return of[0].term != NULL;
}

START_TEST(an_element_of_a_leaf_stands_once) {
  for (int k = 0; k < 10; k++) {
    begin();
    const rule_term *size[2] = {num(8), num(2)};
    const rule_term *turned = call("aten::transpose.int", v(0), num(0), num(1), NULL);
    const struct {
      const rule_term *t;
      bool stays;
    } of_terms[10] = {
        {v(0), true},
        {turned, true},
        {cat(v(0), v(1)), true},
        {cat(v(0), v(0)), false},
        {cat(rows(0, 0, 2), rows(0, 2, 4)), true},
        {cat(rows(0, 2, 4), rows(0, 0, 2)), true},
        {cat(rows(0, 0, 2), rows(0, 1, 3)), false},
        {cat(rows(0, 0, 3), rows(1, 0, 3)), true},
        {cat(cat(v(0), v(1)), rows(1, 3, 4)), false},
        {call("aten::reshape", v(0), rule_list(&w.arena, size, 1), NULL, NULL), true}};
    ck_assert_msg(stays(of_terms[k].t, false, false) == of_terms[k].stays, "%d", k);
    end();
  }
}
END_TEST

START_TEST(what_the_user_wrote_and_constants_may_repeat) {
  for (int k = 0; k < 3; k++) {
    begin();
    ck_assert_int_eq(stays(cat(v(0), v(0)), k == 1, k == 2), k > 0);
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("equal_init");
  TCase *t = tcase_create("equal_init");
  tcase_add_test(t, zeros_are_those_of_their_name);
  tcase_add_test(t, others_go_with_one_that_is_left);
  tcase_add_test(t, replicas_are_left_to_what_they_repeat);
  tcase_add_test(t, nothing_is_dropped_without_a_name_that_says_so);
  tcase_add_test(t, an_element_of_a_leaf_stands_once);
  tcase_add_test(t, what_the_user_wrote_and_constants_may_repeat);
  suite_add_tcase(s, t);
  return run_suite(s);
}
