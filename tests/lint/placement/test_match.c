/* Placements that are read off values: they hold element by element, and where the ranks' tensors
 * were made as parts one is found. */
#include "tests/lint/placement/ranks.h"
#include "tests/support/suite.h"

enum { SEEDS = 500 };

static cap_graph graph;
static cap_node node[PLC_RANKS];
static cap_output output[PLC_RANKS];
static uint32_t at[PLC_RANKS];
static plc_tuple tuple, argument, *tuples[2] = {&tuple, &argument};
static uint32_t args[1] = {1};
static rule_tensor *value[PLC_DRAWS][PLC_RANKS], *wholes[PLC_DRAWS];
static plc_place placed;

/* A leaf of which each rank has a node, and an operand of it. */
static void begin_tuple(void) {
  graph = (cap_graph){.n_nodes = ranks.mesh.n, .node = node};
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    at[r] = r;
    node[r] = (cap_node){.n_outputs = 1, .output = &output[r]};
  }
  for (uint32_t d = 0; d < PLC_DRAWS; d++) ranks.value[d] = value[d];
  ranks.g = &graph;
  ranks.tuple = tuples;
  placed = plc_replica();
  tuple = (plc_tuple){.node = at, .n_out = 1, .leaf = true, .whole = wholes, .arg = args};
  argument = (plc_tuple){.node = at, .n_out = 1, .place = &placed, .state = PLC_PLACED};
}

/* The ranks hold parts of other numbers on each draw. */
static void fill(iso_rng *rng, const plc_place *p, rule_shape s) {
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    wholes[d] = noise(rng, s);
    make_parts(rng, wholes[d], p, value[d]);
  }
}

static bool match(bool blocks, plc_place *out) {
  return plc_match_with(&ranks, &tuple, 0, ~0u, blocks, out);
}

static bool holds(const plc_place *p) {
  for (uint32_t d = 0; d < PLC_DRAWS; d++)
    if (!are_parts(value[d], wholes[d], p)) return false;
  return true;
}

static bool of_plain_shards(const plc_place *p) {
  for (uint32_t a = 0; a < ranks.mesh.n_axes; a++)
    if (p->axis[a].blocks > 1) return false;
  return true;
}

static bool of_shares(const plc_place *p) {
  for (uint32_t a = 0; a < ranks.mesh.n_axes; a++)
    if (p->axis[a].share[0]) return true;
  return false;
}

START_TEST(a_placement_is_found_where_there_is_one_and_holds) {
  size_t plain = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 11);
    begin_at_random(&rng);
    begin_tuple();
    rule_shape s;
    plc_place p = draw_place(&rng, false, &s), found;
    fill(&rng, &p, s);
    for (int blocks = 0; blocks < 2; blocks++) {
      const bool is = match(blocks, &found);
      if (is)
        ck_assert_msg(holds(&found), "seed %d: %s", (int)seed, plc_print(&ranks, &found, &report));
      /* Unequal blocks are taken from operands. */
      ck_assert_msg(is || (!blocks && !of_plain_shards(&p)) || of_shares(&p), "seed %d: %s",
                    (int)seed, plc_print(&ranks, &p, &report));
      plain += is && plc_same(&ranks, &p, &found);
    }
    end();
  }
  ck_assert_uint_gt(plain, SEEDS);
}
END_TEST

START_TEST(unequal_blocks_are_those_of_an_operand) {
  static const uint8_t shares[][2] = {{2, 1}, {3, 1}};
  for (int k = 0; k < 3; k++) {
    begin("a=2");
    begin_tuple();
    iso_rng rng = iso_rng_new(1, 12);
    plc_place p = plc_replica(), found;
    p.axis[0] = (plc_one){.kind = PLC_S, .dim = 1, .blocks = 2};
    memcpy(p.axis[0].share, shares[0], 2);
    fill(&rng, &p, SHAPE(2, 6));
    placed = p;
    placed.axis[0].dim = 0;
    memcpy(placed.axis[0].share, shares[k == 1], 2);
    tuple.n_args = k < 2;
    ck_assert_int_eq(match(true, &found), k == 0);
    if (k == 0) ck_assert(plc_same(&ranks, &p, &found));
    end();
  }
}
END_TEST

/* One number, or one draw, that fits no placement is enough. */
START_TEST(what_fits_on_some_draws_alone_is_no_placement) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 13);
    begin_at_random(&rng);
    begin_tuple();
    rule_shape s;
    const plc_place p = draw_place(&rng, true, &s);
    plc_place found;
    fill(&rng, &p, s);
    rule_tensor *t = value[iso_rng_below(&rng, PLC_DRAWS)][iso_rng_below(&rng, ranks.mesh.n)];
    const int64_t i = (int64_t)iso_rng_below(&rng, (uint64_t)t->numel);
    rule_tensor_set(t, i, rule_tensor_get(t, i) + 1);
    for (int blocks = 0; blocks < 2; blocks++)
      ck_assert_msg(!match(blocks, &found), "seed %d: %s, not %s", (int)seed,
                    plc_print(&ranks, &found, &report), plc_print(&ranks, &p, &report));
    end();
  }
}
END_TEST

/* As many times the whole as there are ranks, or one through that, and no other scale. */
START_TEST(parts_of_the_whole_times_a_number_of_ranks) {
  static const double scales[] = {1, 2, 3, 6, 0.5, 1.0 / 3, 1.5, 4, 1.01};
  for (size_t k = 0; k < sizeof scales / sizeof *scales; k++)
    for (int sum = 0; sum < 2; sum++) {
      begin("a=2,b=3");
      begin_tuple();
      iso_rng rng = iso_rng_new(1, 14);
      plc_place p = plc_replica(), found;
      p.scale = scales[k];
      if (sum) p.axis[1].kind = PLC_P;
      fill(&rng, &p, SHAPE(4));
      const bool is = match(false, &found);
      ck_assert_msg(is == (k < 7), "%g", scales[k]);
      if (is) ck_assert(fabs(found.scale - scales[k]) < 1e-12 && holds(&found));
      end();
    }
}
END_TEST

/* The largest of parts is tried only of what is made of parts. */
START_TEST(the_largest_is_read_off_what_reads_parts) {
  for (int reads = 0; reads < 2; reads++) {
    begin("a=2");
    begin_tuple();
    iso_rng rng = iso_rng_new(1, 15);
    plc_place p = plc_replica(), found;
    fill(&rng, &p, SHAPE(6));
    for (uint32_t d = 0; d < PLC_DRAWS; d++)
      for (int64_t i = 0; i < 6; i++)
        rule_tensor_set(value[d][i % 2], i, rule_tensor_get(wholes[d], i) - 1 - (double)i);
    placed.axis[0].kind = reads ? PLC_S : PLC_R;
    tuple.n_args = 1;
    ck_assert_int_eq(match(false, &found), reads);
    if (reads) ck_assert(found.axis[0].kind == PLC_P && found.axis[0].reduce == PLC_MAX);
    end();
  }
}
END_TEST

/* Axes that are not asked for have replicas. */
START_TEST(only_the_axes_asked_for_are_cut) {
  begin("a=2,b=2");
  begin_tuple();
  iso_rng rng = iso_rng_new(1, 16);
  plc_place p = plc_replica(), found;
  p.axis[1] = (plc_one){.kind = PLC_S};
  fill(&rng, &p, SHAPE(4));
  ck_assert(!plc_match_with(&ranks, &tuple, 0, 1, true, &found));
  ck_assert(plc_match_with(&ranks, &tuple, 0, 2, true, &found) && plc_same(&ranks, &p, &found));
  end();
}
END_TEST

int main(void) {
  Suite *s = suite_create("match");
  TCase *t = tcase_create("match");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, a_placement_is_found_where_there_is_one_and_holds);
  tcase_add_test(t, unequal_blocks_are_those_of_an_operand);
  tcase_add_test(t, what_fits_on_some_draws_alone_is_no_placement);
  tcase_add_test(t, parts_of_the_whole_times_a_number_of_ranks);
  tcase_add_test(t, the_largest_is_read_off_what_reads_parts);
  tcase_add_test(t, only_the_axes_asked_for_are_cut);
  suite_add_tcase(s, t);
  return run_suite(s);
}
