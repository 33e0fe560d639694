/* Numbers of rows that ranks count from the first row that they hold of a table. */
#include "tests/lint/placement/ranks.h"
#include "tests/support/suite.h"

enum { SEEDS = 300, NUMBERS = 6, TABLE = 0, INDEX, STEP, N_TUPLES, ROWS = 3 };

static cap_graph graph;
static cap_node node[N_TUPLES * PLC_RANKS];
static cap_output output[N_TUPLES * PLC_RANKS];
static uint32_t at[N_TUPLES][PLC_RANKS];
static plc_tuple tuple[N_TUPLES], *tuples[N_TUPLES];
static uint32_t args[2] = {TABLE, INDEX};
static rule_tensor *value[PLC_DRAWS][N_TUPLES * PLC_RANKS], *wholes[PLC_DRAWS];
static plc_place placed, everywhere;

static rule_tensor *integers(int64_t n) {
  const rule_shape s = SHAPE(n);
  rule_tensor *t;
  ck_assert(rule_tensor_new(RULE_I64, &s, &t, &err) == ISO_OK);
  return keep(t);
}

/* The rows of the ranks at place `k` along the axis, and the first of them: the first has one more.
 */
static int64_t n_rows(uint32_t k) { return ROWS + (k == 0); }
static int64_t first_row(uint32_t k) { return ROWS * (int64_t)k + (k > 0); }

/* A table whose rows are cut along an axis, and a step that reads it
 * by numbers. */
static void begin_step(const char *mesh, uint32_t axis) {
  begin(mesh);
  graph = (cap_graph){.node = node};
  for (uint32_t k = 0; k < N_TUPLES; k++) {
    for (uint32_t r = 0; r < ranks.mesh.n; r++) {
      const uint32_t i = at[k][r] = k * ranks.mesh.n + r;
      output[i] = (cap_output){SHAPE(n_rows(plc_along(&ranks.mesh, r, axis)), 2), RULE_F64};
      node[i] = (cap_node){.n_outputs = 1, .output = &output[i]};
    }
    tuple[k] = (plc_tuple){.node = at[k], .id = k, .n_out = 1};
    tuples[k] = &tuple[k];
  }
  for (uint32_t d = 0; d < PLC_DRAWS; d++) ranks.value[d] = value[d];
  ranks.g = &graph;
  ranks.tuple = tuples;
  placed = plc_replica();
  placed.axis[axis] = (plc_one){.kind = PLC_S};
  tuple[TABLE].place = &placed;
  tuple[TABLE].state = PLC_PLACED;
  everywhere = plc_replica();
  tuple[INDEX].place = &everywhere;
  tuple[INDEX].state = PLC_VARYING;
  tuple[INDEX].whole = wholes;
  tuple[STEP].arg = args;
  tuple[STEP].n_args = 2;
}

/* Numbers of all ranks' rows; a rank has them less where its own begin, and any number in place of
 * those of others. Along `cut`, unless that is PLC_NONE, each rank has its part of them. */
static void fill(iso_rng *rng, uint32_t axis, uint32_t cut) {
  const int64_t all = first_row(ranks.mesh.size[axis]);
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    wholes[d] = integers(NUMBERS);
    for (int64_t i = 0; i < NUMBERS; i++)
      rule_tensor_set(wholes[d], i, (double)iso_rng_below(rng, (uint64_t)all));
    rule_tensor_set(wholes[d], 0, (double)(all - 1)); /* some are of later ranks */
    for (uint32_t r = 0; r < ranks.mesh.n; r++) {
      const int64_t n = cut == PLC_NONE ? NUMBERS : NUMBERS / ranks.mesh.size[cut],
                    rows = n_rows(plc_along(&ranks.mesh, r, axis)),
                    from = first_row(plc_along(&ranks.mesh, r, axis)),
                    skip = cut == PLC_NONE ? 0 : n * plc_along(&ranks.mesh, r, cut);
      rule_tensor *own = value[d][at[INDEX][r]] = integers(n);
      for (int64_t i = 0; i < n; i++) {
        const int64_t x = (int64_t)rule_tensor_get(wholes[d], skip + i) - from;
        rule_tensor_set(own, i, x >= 0 && x < rows ? (double)x : (double)iso_rng_below(rng, ROWS));
      }
    }
  }
}

static bool own_rows(void) { return plc_own_rows(&ranks, &tuple[STEP]) == &tuple[TABLE]; }

START_TEST(numbers_less_the_first_row_are_a_rank_s_own) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 31);
    const bool two = seed % 2;
    const uint32_t axis = two ? (uint32_t)iso_rng_below(&rng, 2) : 0;
    begin_step(two ? "a=2,b=3" : "a=3", axis);
    fill(&rng, axis, two && iso_rng_below(&rng, 2) ? 1 - axis : PLC_NONE);
    ck_assert_msg(own_rows(), "seed %d", (int)seed);
    /* One number of a row that the rank has is another one. */
    const uint32_t d = (uint32_t)iso_rng_below(&rng, PLC_DRAWS);
    for (uint32_t r = 0; r < ranks.mesh.n; r++)
      if (plc_along(&ranks.mesh, r, axis) + 1 == ranks.mesh.size[axis]) {
        rule_tensor *own = value[d][at[INDEX][r]];
        for (int64_t i = 0; i < own->numel; i++)
          rule_tensor_set(own, i, (double)(((int64_t)rule_tensor_get(own, i) + 1) % ROWS));
      }
    ck_assert_msg(!own_rows(), "seed %d", (int)seed);
    end();
  }
}
END_TEST

/* The table and the numbers have to be such. */
START_TEST(other_tables_and_numbers_are_none) {
  for (int k = 0; k < 9; k++) {
    iso_rng rng = iso_rng_new(1, 32);
    begin_step("a=3", 0);
    fill(&rng, 0, PLC_NONE);
    if (k == 0) placed.axis[0].kind = PLC_R;
    if (k == 1) placed.axis[0].kind = PLC_P;
    if (k == 2) placed.axis[0].blocks = 2;
    if (k == 3) placed.scale = 2;
    if (k == 4) tuple[TABLE].state = PLC_VARYING;
    if (k == 5) tuple[INDEX].state = PLC_PLACED;
    if (k == 6) tuple[STEP].collective = true;
    if (k == 7) at[TABLE][1] = PLC_NONE;
    ck_assert_msg(own_rows() == (k == 8), "%d", k);
    end();
  }
}
END_TEST

/* Where no rank but the first has a row that is read, nothing is known. */
START_TEST(rows_of_the_first_rank_alone_say_nothing) {
  begin_step("a=2", 0);
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    wholes[d] = integers(2);
    rule_tensor_set(wholes[d], 0, 1);
    for (uint32_t r = 0; r < 2; r++) value[d][at[INDEX][r]] = wholes[d];
  }
  ck_assert(!own_rows());
  end();
}
END_TEST

int main(void) {
  Suite *s = suite_create("rows");
  TCase *t = tcase_create("rows");
  tcase_add_test(t, numbers_less_the_first_row_are_a_rank_s_own);
  tcase_add_test(t, other_tables_and_numbers_are_none);
  tcase_add_test(t, rows_of_the_first_rank_alone_say_nothing);
  suite_add_tcase(s, t);
  return run_suite(s);
}
