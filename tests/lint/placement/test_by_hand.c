/* A tensor behind messages is an earlier one of the whole program where the ranks hold that one on
 * every draw, as replicas or shards; and nothing else. */
#include "lint/placement/lift/variants.h"
#include "tests/lint/placement/tuples.h"
#include "tests/support/suite.h"

enum { SEEDS = 200, INPUT = 0, OTHER, EARLIER, SENT, LATER, N_TUPLES };

static rule_tensor *before[PLC_DRAWS];

/* The ranks' own tensors of a tuple on a draw. */
static void hold(uint32_t k, uint32_t draw, rule_tensor *const *each) {
  for (uint32_t r = 0; r < ranks.mesh.n; r++) value[draw][at[k][r]] = each[r];
}

/* SENT is made of EARLIER, which the ranks hold as `p` says of it; OTHER and LATER are no part of
 * it. Every tuple has a whole of its own on each draw. */
static void begin_sent(iso_rng *rng, const plc_place *p, rule_shape s) {
  rule_tensor *each[PLC_RANKS];
  for (uint32_t k = 0; k < N_TUPLES; k++)
    for (uint32_t d = 0; d < PLC_DRAWS; d++) wholes[k][d] = noise(rng, s);
  reads(EARLIER, "aten::neg", (uint32_t[]){INPUT}, 1, NULL, 0);
  reads(SENT, "aten::alias", (uint32_t[]){EARLIER}, 1, NULL, 0);
  reads(LATER, "aten::neg", (uint32_t[]){SENT}, 1, NULL, 0);
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    make_parts(rng, wholes[EARLIER][d], p, each);
    hold(SENT, d, each);
    before[d] = rule_tensor_ref(wholes[SENT][d]); /* the tuple owns its wholes */
  }
  tuple[SENT].sent = true;
  tuple[SENT].state = PLC_VARYING;
}

static void end_sent(void) {
  for (uint32_t d = 0; d < PLC_DRAWS; d++) rule_tensor_unref(tuple[SENT].whole[d]);
  end_tuples();
}

/* It is as it was before. */
static void is_left(void) {
  ck_assert(!plc_lift_by_hand(&ranks, &tuple[SENT]));
  for (uint32_t d = 0; d < PLC_DRAWS; d++) ck_assert_ptr_eq(tuple[SENT].whole[d], before[d]);
  ck_assert_uint_eq(tuple[SENT].stands_for, PLC_NONE);
}

static void begin_drawn(iso_rng *rng, bool exact, plc_place *p) {
  static const char *const meshes[] = {"a=2", "a=3", "a=2,b=2"};
  rule_shape s;
  begin_tuples(meshes[iso_rng_below(rng, 3)], N_TUPLES);
  int64_t n;
  do { /* one number is no sign, and shards of blocks are not looked for */
    *p = draw_place(rng, exact, &s);
    n = 1;
    for (uint32_t d = 0; d < s.rank; d++) n *= s.dim[d];
  } while (plc_has(&ranks, p, PLC_P) == exact || plc_has_blocks(&ranks, p) || n == 1);
  begin_sent(rng, p, s);
}

START_TEST(what_ranks_hold_of_an_earlier_tensor_stands_for_it) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 7);
    plc_place p;
    begin_drawn(&rng, true, &p);
    tuple[SENT].unsure = tuple[SENT].chosen = true;
    ck_assert_msg(plc_lift_by_hand(&ranks, &tuple[SENT]), "seed %d", (int)seed);
    ck_assert_uint_eq(tuple[SENT].stands_for, EARLIER);
    ck_assert_int_eq(tuple[SENT].state, PLC_PLACED);
    ck_assert(!tuple[SENT].unsure && !tuple[SENT].chosen);
    for (uint32_t d = 0; d < PLC_DRAWS; d++) {
      rule_tensor *each[PLC_RANKS];
      plc_locals(&ranks, &tuple[SENT], d, 0, each);
      ck_assert_ptr_eq(tuple[SENT].whole[d], wholes[EARLIER][d]);
      ck_assert(are_parts(each, wholes[EARLIER][d], &place[SENT]));
    }
    end_sent();
  }
}
END_TEST

/* Parts of a sum have yet to meet. */
START_TEST(parts_of_a_sum_do_not_stand_for_it) {
  for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
    iso_rng rng = iso_rng_new(seed, 8);
    plc_place p;
    begin_drawn(&rng, false, &p);
    is_left();
    end_sent();
  }
}
END_TEST

/* One element of one rank on one draw is another one. */
START_TEST(it_has_to_be_held_on_every_draw) {
  for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
    iso_rng rng = iso_rng_new(seed, 9);
    plc_place p;
    begin_drawn(&rng, true, &p);
    const uint32_t r = (uint32_t)iso_rng_below(&rng, ranks.mesh.n),
                   d = (uint32_t)iso_rng_below(&rng, PLC_DRAWS);
    rule_tensor *t = value[d][at[SENT][r]];
    const int64_t e = (int64_t)iso_rng_below(&rng, (uint64_t)t->numel);
    rule_tensor_set(t, e, rule_tensor_get(t, e) + 0.1);
    is_left();
    end_sent();
  }
}
END_TEST

START_TEST(only_tensors_before_it_that_are_known_stand_for_it) {
  for (int k = 0; k < 9; k++) {
    iso_rng rng = iso_rng_new((uint64_t)k, 10);
    plc_place p = plc_replica();
    begin_tuples("a=2", N_TUPLES);
    p.axis[0] = (plc_one){.kind = PLC_S};
    begin_sent(&rng, &p, SHAPE(4, 3));
    if (k == 1) tuple[EARLIER].konst = true;
    if (k == 2) tuple[EARLIER].state = PLC_UNKNOWN;
    if (k == 3) tuple[EARLIER].several = true;
    if (k == 4) reads(SENT, "aten::alias", (uint32_t[]){OTHER}, 1, NULL, 0);
    if (k == 5) tuple[SENT].sent = false;
    if (k == 6) tuple[SENT].state = PLC_PLACED;
    if (k == 7) at[SENT][1] = PLC_NONE;
    if (k == 8) tuple[SENT].state = PLC_PLACED, place[SENT].scale = 2;
    if (k == 0 || k == 8) ck_assert_msg(plc_lift_by_hand(&ranks, &tuple[SENT]), "%d", k);
    else is_left();
    end_sent();
  }
}
END_TEST

/* A rank that has another one's node was sent it, and all that is made of it was. */
START_TEST(nodes_of_other_ranks_were_sent) {
  begin_tuples("a=2", N_TUPLES);
  reads(LATER, "aten::neg", (uint32_t[]){SENT}, 1, NULL, 0);
  ck_assert(!plc_reads_sent(&ranks, &tuple[SENT]));
  ranks_of[at[SENT][0]] = 2;
  ck_assert(plc_reads_sent(&ranks, &tuple[SENT]));
  ck_assert(!plc_reads_sent(&ranks, &tuple[LATER])); /* it is not flagged yet */
  tuple[SENT].sent = true;
  ck_assert(plc_reads_sent(&ranks, &tuple[LATER]));
  ranks_of[at[SENT][0]] = 3; /* both have it */
  ck_assert(!plc_reads_sent(&ranks, &tuple[SENT]));
  end_tuples();
}
END_TEST

int main(void) {
  Suite *s = suite_create("by_hand");
  TCase *t = tcase_create("by_hand");
  tcase_add_test(t, what_ranks_hold_of_an_earlier_tensor_stands_for_it);
  tcase_add_test(t, parts_of_a_sum_do_not_stand_for_it);
  tcase_add_test(t, it_has_to_be_held_on_every_draw);
  tcase_add_test(t, only_tensors_before_it_that_are_known_stand_for_it);
  tcase_add_test(t, nodes_of_other_ranks_were_sent);
  suite_add_tcase(s, t);
  return run_suite(s);
}
