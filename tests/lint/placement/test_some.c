/* What some ranks do, and what ranks pass round, exchange or take piece by piece. */
#include "tests/lint/placement/tuples.h"
#include "tests/support/suite.h"

enum { INPUT, OTHER, STEP, PART, NEXT, MET, N_TUPLES };

static const plc_one shard = {.kind = PLC_S}, sum = {.kind = PLC_P};

static void slices(uint32_t k, uint32_t of, int64_t from, int64_t to) {
  reads(k, "aten::slice.Tensor", (uint32_t[]){of}, 1,
        (const rule_term *[]){rule_int(&terms, 0), rule_int(&terms, from), rule_int(&terms, to)},
        3);
}

/* An input that is cut, a step of it and of another tensor, and a part of the step that is moved to
 * where ranks meet. */
static void begin_exchange(void) {
  begin_tuples("a=2", N_TUPLES);
  place[INPUT].axis[0] = shard;
  reads(STEP, "aten::mm", (uint32_t[]){INPUT, OTHER}, 2, NULL, 0);
  tuple[STEP].state = PLC_UNKNOWN;
  slices(PART, STEP, 0, 1);
  reads(NEXT, "aten::view", (uint32_t[]){PART}, 1, NULL, 0);
  meets(MET, "dist::all_gather", NEXT, (const rule_term *[]){rule_int(&terms, 0)}, 1);
}

START_TEST(a_part_that_others_get_is_exchanged) {
  for (int k = 0; k < 8; k++) {
    begin_exchange();
    if (k == 1) reads(STEP, "aten::mm", (uint32_t[]){OTHER, INPUT}, 2, NULL, 0); /* as good */
    if (k == 2) place[INPUT] = plc_replica();
    if (k == 3) tuple[INPUT].state = PLC_VARYING;
    if (k == 4) reads(NEXT, "aten::exp", (uint32_t[]){PART}, 1, NULL, 0);
    if (k == 5)
      tuple[MET].collective = false, reads(MET, "aten::exp", (uint32_t[]){NEXT}, 1, NULL, 0);
    if (k == 6) reads(PART, "aten::exp", (uint32_t[]){STEP}, 1, NULL, 0);
    if (k == 7) place[INPUT].axis[0] = sum;
    ck_assert_msg(plc_is_exchanged(&ranks, &tuple[STEP]) == (k < 2), "%d", k);
    end_tuples();
  }
}
END_TEST

START_TEST(a_part_of_the_shard_itself_may_be_exchanged) {
  begin_exchange();
  slices(PART, INPUT, 0, 1);
  ck_assert(plc_is_exchanged(&ranks, &tuple[PART]));
  ck_assert(!plc_is_exchanged(&ranks, &tuple[STEP]));
  ck_assert(!plc_is_exchanged(&ranks, &tuple[INPUT]));
  end_tuples();
}
END_TEST

/* What goes to others is known by what else is made of it, too. */
START_TEST(what_is_given_to_others_is_met) {
  begin_exchange();
  ck_assert(plc_is_met(&ranks, &tuple[STEP]));
  ck_assert(plc_is_met(&ranks, &tuple[NEXT]));
  ck_assert(!plc_is_met(&ranks, &tuple[INPUT]));
  ck_assert(!plc_is_met(&ranks, &tuple[MET]));
  reads(NEXT, "aten::exp", (uint32_t[]){PART}, 1, NULL, 0);
  ck_assert(!plc_is_met(&ranks, &tuple[STEP]));
  end_tuples();
}
END_TEST

/* Both rows of a shard are taken, each by itself. */
START_TEST(pieces_are_all_of_a_shard) {
  for (int k = 0; k < 7; k++) {
    begin_tuples("a=2", N_TUPLES);
    place[INPUT].axis[0] = k == 1 ? sum : shard;
    slices(STEP, INPUT, 0, 1);
    slices(PART, INPUT, k == 2 ? 0 : 1, k == 2 ? 1 : 2); /* the same once more */
    set_shape(STEP, SHAPE(1, 3));
    set_shape(PART, k == 3 ? SHAPE(1, 2) : SHAPE(1, 3));
    if (k == 4) tuple[STEP].differs = true;
    if (k == 5) reads(PART, "aten::select.int", (uint32_t[]){INPUT}, 1, NULL, 0);
    if (k == 6) reads(STEP, "aten::exp", (uint32_t[]){INPUT}, 1, NULL, 0);
    ck_assert_msg(plc_is_piece(&ranks, &tuple[STEP]) == (k == 0), "%d", k);
    end_tuples();
  }
}
END_TEST

/* A rank has what another one made, unless all have the same, or it stands for what is known. */
START_TEST(what_another_rank_made_was_passed) {
  for (int k = 0; k < 6; k++) {
    begin_tuples("a=2", N_TUPLES);
    place[STEP].axis[0] = k == 1 ? (plc_one){.kind = PLC_R} : shard;
    for (uint32_t r = 0; r < 2; r++) ranks_of[at[STEP][r]] = UINT64_C(1) << (k == 2 ? r : 1 - r);
    if (k == 3) tuple[STEP].stands_for = INPUT;
    if (k == 4) tuple[STEP].state = PLC_VARYING;
    if (k == 5) ranks_of[at[STEP][0]] = ranks_of[at[STEP][1]] = 3; /* both have it */
    reads(PART, "aten::exp", (uint32_t[]){OTHER, STEP}, 2, NULL, 0);
    const bool is = k == 0 || k == 4;
    bool seen[N_TUPLES] = {false}, again[N_TUPLES] = {false};
    ck_assert_msg(plc_is_passed(&ranks, &tuple[STEP]) == is, "%d", k);
    ck_assert_msg(plc_passed_behind(&ranks, &tuple[PART], seen) == (is ? &tuple[STEP] : NULL), "%d",
                  k);
    ck_assert_msg(plc_is_behind(&ranks, &tuple[PART], again) == is, "%d", k);
    end_tuples();
  }
}
END_TEST

/* Behind a collective that fits nothing, or a part that is exchanged and of which nothing is known,
 * nothing is known. */
START_TEST(what_is_behind_is_not_known) {
  for (int k = 0; k < 7; k++) {
    begin_exchange();
    reads(OTHER, "aten::exp", (uint32_t[]){MET}, 1, NULL, 0);
    reads(STEP, "aten::exp", (uint32_t[]){INPUT}, 1, NULL, 0);
    tuple[STEP].state = PLC_PLACED;
    if (k == 1) tuple[MET].state = PLC_VARYING;
    if (k == 2) tuple[MET].state = PLC_VARYING, tuple[MET].mended = true;
    if (k == 3) tuple[MET].state = PLC_VARYING, tuple[MET].several = true;
    if (k == 4) tuple[STEP].state = PLC_VARYING;
    if (k == 5) tuple[STEP].state = PLC_UNKNOWN, tuple[STEP].stuck = true;
    if (k == 6) tuple[MET].state = PLC_UNKNOWN;
    bool seen[N_TUPLES] = {false};
    ck_assert_msg(plc_is_behind(&ranks, &tuple[OTHER], seen) == (k == 1 || k == 5 || k == 6), "%d",
                  k);
    end_tuples();
  }
}
END_TEST

/* One rank's own rows of a sum that nobody reduced lack what the others have of them. */
START_TEST(own_rows_of_a_sum_lose_the_others_parts) {
  for (int k = 0; k < 8; k++) {
    begin_tuples("a=2", N_TUPLES);
    place[INPUT].axis[0] = k == 1 ? shard : sum;
    if (k == 2) place[INPUT].axis[0].reduce = PLC_MAX;
    slices(PART, INPUT, 0, 1);
    tuple[PART].state = k == 3 ? PLC_PLACED : PLC_VARYING;
    tuple[PART].differs = k != 4;
    if (k == 5) slices(NEXT, INPUT, 1, 2); /* another part, that may go to others */
    if (k == 6) at[PART][1] = PLC_NONE;
    if (k == 7) meets(NEXT, "dist::all_gather", PART, NULL, 0);
    ck_assert_msg(plc_part_of_sum(&ranks, &tuple[PART]) == (k == 0 ? &tuple[INPUT] : NULL), "%d",
                  k);
    end_tuples();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("some");
  TCase *t = tcase_create("some");
  tcase_add_test(t, a_part_that_others_get_is_exchanged);
  tcase_add_test(t, a_part_of_the_shard_itself_may_be_exchanged);
  tcase_add_test(t, what_is_given_to_others_is_met);
  tcase_add_test(t, pieces_are_all_of_a_shard);
  tcase_add_test(t, what_another_rank_made_was_passed);
  tcase_add_test(t, what_is_behind_is_not_known);
  tcase_add_test(t, own_rows_of_a_sum_lose_the_others_parts);
  suite_add_tcase(s, t);
  return run_suite(s);
}
