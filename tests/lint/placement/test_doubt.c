/* Which readings are doubtful: what comes of parts that were exchanged, and what is repeated. */
#include "tests/lint/placement/ranks.h"
#include "tests/support/suite.h"

enum { INPUT, FIRST, SECOND, STEP, N_TUPLES, NUMEL = 6 };

static cap_graph graph;
static cap_node node[N_TUPLES * PLC_RANKS];
static cap_output output[N_TUPLES * PLC_RANKS];
static uint32_t at[N_TUPLES][PLC_RANKS];
static plc_tuple tuple[N_TUPLES], *tuples[N_TUPLES];
static uint32_t args[2] = {FIRST, SECOND};
static rule_tensor *value[PLC_DRAWS][N_TUPLES * PLC_RANKS], *wholes[N_TUPLES][PLC_DRAWS];
static plc_place place[N_TUPLES];
static iso_arena terms;

/* An input that is cut by rows, two tensors that all ranks have, and a step of the first. Each draw
 * has a whole of its own. */
static void begin_step(void) {
  begin("a=4");
  iso_arena_init(&terms);
  graph = (cap_graph){.node = node};
  for (uint32_t k = 0; k < N_TUPLES; k++) {
    for (uint32_t r = 0; r < ranks.mesh.n; r++) {
      const uint32_t i = at[k][r] = k * ranks.mesh.n + r;
      output[i] = (cap_output){SHAPE(2, 3), RULE_F64};
      node[i] = (cap_node){.kind = k == INPUT ? CAP_INPUT : CAP_OP,
                           .op = "aten::neg",
                           .n_outputs = 1,
                           .output = &output[i],
                           .call = rule_op(&terms, "aten::neg", NULL, 0)};
    }
    for (uint32_t d = 0; d < PLC_DRAWS; d++) {
      wholes[k][d] = make(SHAPE(NUMEL));
      rule_tensor_set(wholes[k][d], 0, d + 1);
    }
    place[k] = plc_replica();
    tuple[k] = (plc_tuple){.node = at[k],
                           .id = k,
                           .n_out = 1,
                           .leaf = k == INPUT,
                           .state = PLC_PLACED,
                           .place = &place[k],
                           .whole = wholes[k]};
    tuples[k] = &tuple[k];
  }
  for (uint32_t d = 0; d < PLC_DRAWS; d++) ranks.value[d] = value[d];
  ranks.g = &graph;
  ranks.tuple = tuples;
  ranks.n_tuples = N_TUPLES;
  place[INPUT].axis[0] = (plc_one){.kind = PLC_S};
  tuple[STEP].arg = args;
  tuple[STEP].n_args = 1;
}

static void end_step(void) {
  iso_arena_fini(&terms);
  end();
}

/* The doubt about the step; "" where there is none. */
static const char *doubt(void) {
  plc_follow_cuts(&ranks, &tuple[STEP]);
  return tuple[STEP].doubt ? tuple[STEP].doubt : "";
}

static bool is_doubted(const char *text) { return strstr(doubt(), text) != NULL; }

static void call(const char *op, const rule_term *const *child, uint32_t n) {
  for (uint32_t r = 0; r < ranks.mesh.n; r++)
    node[at[STEP][r]].call = rule_op(&terms, op, child, n);
}

static void calls_repeat(int64_t times) {
  const rule_term *n[] = {rule_int(&terms, times), rule_int(&terms, 1)};
  call("aten::repeat",
       (const rule_term *[]){rule_var(&terms, at[FIRST][0]), rule_list(&terms, n, 2)}, 2);
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
    for (uint32_t r = 0; r < ranks.mesh.n; r++) {
      if (k == 6) output[at[STEP][r]].shape = SHAPE(1, 3);
      if (k == 7) output[at[INPUT][r]].shape = SHAPE(1, 3);
    }
    if (k == 8) tuple[FIRST].state = PLC_VARYING;
    ck_assert_msg(is_doubted("repeat") == (k == 0), "%d: %s", k, doubt());
    end_step();
  }
}
END_TEST

/* What each rank counts of its own rows is no count of all. */
START_TEST(counts_of_own_rows_are_doubtful) {
  for (int k = 0; k < 10; k++) {
    begin_step();
    const uint32_t rows = k == 1 ? 3 : 2;
    tuple[FIRST].arg = (uint32_t[]){SECOND};
    tuple[FIRST].n_args = k == 2 ? 0 : 1;
    tuple[FIRST].konst = tuple[SECOND].konst = k != 3;
    tuple[SECOND].slots = k == 4 ? 0 : 1;
    for (uint32_t r = 0; r < ranks.mesh.n; r++) {
      output[at[SECOND][r]].shape = SHAPE(rows);
      output[at[FIRST][r]].shape = (rule_shape){.rank = k == 5, .dim = {rows}};
    }
    if (k == 6) place[INPUT] = plc_replica();
    if (k == 7) place[FIRST].axis[0] = (plc_one){.kind = PLC_P};
    if (k == 8) tuple[STEP].collective = true;
    if (k == 9) tuple[STEP].konst = true;
    ck_assert_msg(is_doubted("counts") == (k == 0), "%d: %s", k, doubt());
    end_step();
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
    end_step();
  }
}
END_TEST

/* Ranks that meet with such parts end with them; an exchange brings them back. */
START_TEST(what_is_exchanged_comes_back_by_an_exchange) {
  for (int k = 0; k < 4; k++) {
    begin_step();
    const bool swaps = k < 2;
    const rule_term *each[4], *zero = rule_int(&terms, 0);
    for (uint32_t r = 0; r < 4; r++) each[r] = rule_var(&terms, at[FIRST][r]);
    const rule_term *list = rule_list(&terms, each, 4);
    if (swaps) call("dist::all_to_all", (const rule_term *[]){list, zero, zero}, 3);
    else call("dist::all_gather", (const rule_term *[]){list, zero}, 2);
    tuple[STEP].collective = true;
    tuple[STEP].axes = 1;
    place[STEP].axis[0] = (plc_one){.kind = swaps ? PLC_S : PLC_R};
    tuple[FIRST].cut[0] = k % 2 ? PLC_AWAY : PLC_DATA;
    ck_assert_msg(is_doubted("not exchanged back") == (k == 3), "%d: %s", k, doubt());
    ck_assert_int_eq(tuple[STEP].cut[0], k == 0 ? PLC_AWAY : k == 1 ? PLC_DATA : PLC_UNCUT);
    end_step();
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
      end_step();
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
    end_step();
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
  end_step();
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
