/* Which readings are doubtful: what comes of parts that were exchanged, and what is repeated. */
#include "tests/lint/placement/tuples.h"
#include "tests/support/suite.h"

enum { INPUT, FIRST, SECOND, STEP, N_TUPLES };

/* An input that is cut by rows, two tensors that all ranks have, and a step of the first. */
static void begin_step(void) {
  begin_tuples("a=4", N_TUPLES);
  place[INPUT].axis[0] = (plc_one){.kind = PLC_S};
  reads(STEP, "aten::neg", (uint32_t[]){FIRST, SECOND}, 2, NULL, 0);
  tuple[STEP].n_args = 1;
}

/* The doubt about the step; "" where there is none. */
static const char *doubt(void) {
  plc_follow_cuts(&ranks, &tuple[STEP]);
  return tuple[STEP].doubt ? tuple[STEP].doubt : "";
}

static bool is_doubted(const char *text) { return strstr(doubt(), text) != NULL; }

static void calls_repeat(int64_t times) {
  const rule_term *n[] = {rule_int(&terms, times), rule_int(&terms, 1)};
  reads(STEP, "aten::repeat", (uint32_t[]){FIRST}, 1,
        (const rule_term *[]){rule_list(&terms, n, 2)}, 1);
  place[STEP].axis[0] = (plc_one){.kind = PLC_S};
  tuple[STEP].variant = (plc_variant){.n = 1, .slot = {0}, .by = {4}};
}

/* What each rank repeats once is no part of more, unless a rank may have one sequence. */
START_TEST(copies_as_many_as_ranks_are_doubtful) {
  for (int k = 0; k < 9; k++) {
    begin_step();
    calls_repeat(k == 1 ? 2 : 1);
    if (k == 2) place[FIRST].axis[0] = (plc_one){.kind = PLC_S};
    if (k == 3) tuple[STEP].variant.n = 0;
    if (k == 4) tuple[STEP].variant.slot[0] = 7;
    if (k == 5) tuple[STEP].variant.by[0] = 0.25;
    if (k == 6) set_shape(STEP, SHAPE(1, 3));
    if (k == 7) set_shape(INPUT, SHAPE(1, 3));
    if (k == 8) tuple[FIRST].state = PLC_VARYING;
    ck_assert_msg(is_doubted("repeat") == (k == 0), "%d: %s", k, doubt());
    end_tuples();
  }
}
END_TEST

/* What each rank counts of its own rows is no count of all. */
START_TEST(counts_of_own_rows_are_doubtful) {
  for (int k = 0; k < 10; k++) {
    begin_step();
    const uint32_t rows = k == 1 ? 3 : 2;
    reads(FIRST, "aten::sum", (uint32_t[]){SECOND}, k == 2 ? 0 : 1, NULL, 0);
    tuple[FIRST].konst = tuple[SECOND].konst = k != 3;
    tuple[SECOND].slots = k == 4 ? 0 : 1;
    set_shape(SECOND, SHAPE(rows));
    set_shape(FIRST, (rule_shape){.rank = k == 5, .dim = {rows}});
    if (k == 6) place[INPUT] = plc_replica();
    if (k == 7) place[FIRST].axis[0] = (plc_one){.kind = PLC_P};
    if (k == 8) tuple[STEP].collective = true;
    if (k == 9) tuple[STEP].konst = true;
    ck_assert_msg(is_doubted("counts") == (k == 0), "%d: %s", k, doubt());
    end_tuples();
  }
}
END_TEST

/* Ranks that hold equal numbers of parts that were exchanged have not met. */
START_TEST(equal_numbers_behind_an_exchange_are_doubtful) {
  for (int k = 0; k < 7; k++) {
    begin_step();
    tuple[FIRST].cut[0] = k == 1 ? PLC_DATA : k == 2 ? PLC_UNCUT : PLC_AWAY;
    if (k == 3) tuple[STEP].konst = true;
    if (k == 4)
      for (uint32_t d = 1; d < PLC_DRAWS; d++) wholes[STEP][d] = wholes[STEP][0];
    if (k == 5) place[STEP].axis[0] = (plc_one){.kind = PLC_S};
    if (k == 6) place[STEP].axis[0] = (plc_one){.kind = PLC_P};
    ck_assert_msg(is_doubted("not exchanged back") == (k == 0), "%d: %s", k, doubt());
    ck_assert_int_eq(tuple[STEP].cut[0], k < 5 ? PLC_UNCUT : PLC_AWAY);
    end_tuples();
  }
}
END_TEST

/* Ranks that meet with such parts end with them; an exchange brings them back. */
START_TEST(what_is_exchanged_comes_back_by_an_exchange) {
  for (int k = 0; k < 4; k++) {
    begin_step();
    const bool swaps = k < 2;
    const rule_term *zero[] = {rule_int(&terms, 0), rule_int(&terms, 0)};
    meets(STEP, swaps ? "dist::all_to_all" : "dist::all_gather", FIRST, zero, swaps ? 2 : 1);
    place[STEP].axis[0] = (plc_one){.kind = swaps ? PLC_S : PLC_R};
    tuple[FIRST].cut[0] = k % 2 ? PLC_AWAY : PLC_DATA;
    ck_assert_msg(is_doubted("not exchanged back") == (k == 3), "%d: %s", k, doubt());
    ck_assert_int_eq(tuple[STEP].cut[0], k == 0 ? PLC_AWAY : k == 1 ? PLC_DATA : PLC_UNCUT);
    end_tuples();
  }
}
END_TEST

START_TEST(cuts_of_both_kinds_do_not_meet) {
  static const plc_cause cause[] = {PLC_UNCUT, PLC_DATA, PLC_AWAY};
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) {
      begin_step();
      tuple[STEP].n_args = 2;
      place[STEP].axis[0] = (plc_one){.kind = PLC_S};
      tuple[FIRST].cut[0] = cause[a];
      tuple[SECOND].cut[0] = cause[b];
      ck_assert_msg(is_doubted("one operand") == (a && b && a != b), "%d %d", a, b);
      end_tuples();
    }
}
END_TEST

/* Inputs are cut along their rows; parts of a sum are not. */
START_TEST(inputs_that_are_cut_are_data) {
  static const plc_kind kind[] = {PLC_R, PLC_S, PLC_P};
  for (int k = 0; k < 3; k++) {
    begin_step();
    place[INPUT].axis[0] = (plc_one){.kind = kind[k]};
    plc_follow_cuts(&ranks, &tuple[INPUT]);
    ck_assert_int_eq(tuple[INPUT].cut[0], kind[k] == PLC_S ? PLC_DATA : PLC_UNCUT);
    end_tuples();
  }
}
END_TEST

/* A doubt goes along to what is made of it. */
START_TEST(what_rests_on_a_doubt_is_doubtful) {
  begin_step();
  ck_assert(!plc_is_doubtful(&ranks, &tuple[STEP]));
  tuple[SECOND].doubt = "so";
  ck_assert(!plc_is_doubtful(&ranks, &tuple[STEP]));
  tuple[STEP].n_args = 2;
  ck_assert(plc_is_doubtful(&ranks, &tuple[STEP]));
  end_tuples();
}
END_TEST

int main(void) {
  Suite *s = suite_create("doubt");
  TCase *t = tcase_create("doubt");
  tcase_add_test(t, copies_as_many_as_ranks_are_doubtful);
  tcase_add_test(t, counts_of_own_rows_are_doubtful);
  tcase_add_test(t, equal_numbers_behind_an_exchange_are_doubtful);
  tcase_add_test(t, what_is_exchanged_comes_back_by_an_exchange);
  tcase_add_test(t, cuts_of_both_kinds_do_not_meet);
  tcase_add_test(t, inputs_that_are_cut_are_data);
  tcase_add_test(t, what_rests_on_a_doubt_is_doubtful);
  suite_add_tcase(s, t);
  return run_suite(s);
}
