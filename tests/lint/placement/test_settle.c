/* Placements of which nothing is said are found where the program can be read with them, also of
 * fused weights, and a slip beside them stays one (needs libtorch). */
#include "tests/lint/placement/opened.h"

/* x is known to all; nothing is said of the matrices. */
#define LEAVES \
  { {"x", "[4,6]", SAME}, {"w", "[6,4]", OWN}, {"v", "[4,3]", OWN}, }
#define FUSED \
  { {"x", "[4,6]", SAME}, {"w", "[6,4]", OWN}, {"b", "[4]", OWN}, {"v", "[2,3]", OWN}, }
#define H \
  { "h", MM("rR_x", "rR_w"), "[4,4]" }
#define O \
  { "o", MM("rR_h", "rR_v"), "[4,3]" }
#define S \
  { "all_s", REDUCED("o", "sum"), "[4,3]" }
/* Two halves of a rank's columns are parts of two matrices, which a weight holds one behind the
 * other, and so does its bias. */
#define GATED \
  {"t", "'op':'aten::addmm','args':[{'ref':'rR_b'},{'ref':'rR_x'},{'ref':'rR_w'}]", "[4,4]"}, \
      {"p", COLUMNS("rR_t", "0", "2"), "[4,2]"}, {"q", COLUMNS("rR_t", "2", "4"), "[4,2]"}, \
      {"m", BOTH("mul.Tensor", "rR_p", "rR_q"), "[4,2]"}, { \
    "o", MM("rR_m", "rR_v"), "[4,3]" \
  }

typedef struct open_program {
  program of;
  const char *placed[4][2]; /* leaf, placement after guesses were changed */
} open_program;

static const open_program programs[] = {
    {{"columns, then rows", LEAVES, {H, O, S}, "all_s", NULL, NULL},
     {{"x", "R"}, {"w", "S(1)"}, {"v", "S(0)"}}},
    {{"columns that are gathered",
      LEAVES,
      {H, {"all_g", GATHERED("r0_h", "r1_h"), "[4,8]"}},
      "all_g",
      NULL,
      NULL},
     {{"w", "S(1)"}}},
    {{"a fused weight and its bias", FUSED, {GATED, S}, "all_s", NULL, NULL},
     {{"w", "S(1:2)"}, {"b", "S(0:2)"}, {"v", "S(0)"}}},
    /* slips */
    {{"a function of the parts of a sum",
      LEAVES,
      {H, O, {"g", OF("relu", "rR_o"), "[4,3]"}, {"all_s", REDUCED("g", "sum"), "[4,3]"}},
      "all_s",
      "o",
      "all_reduce"},
     {{"w", "S(1)"}, {"v", "S(0)"}}},
    {{"a mean of a fused weight's parts",
      FUSED,
      {GATED, {"all_s", REDUCED("o", "avg"), "[4,3]"}},
      "all_s",
      "all_s",
      "sum"},
     {{NULL}}},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

START_TEST(what_is_right_is_read_and_a_slip_is_found) {
  const lint_placement_options o = {
      .placements = "output y = R\n", .file = "lines", .mesh = "tp=2", .seed = 3};
  judge_program(&programs[_i].of, 2, &o);
}
END_TEST

/* ---- what guesses become ---- */

START_TEST(guesses_are_changed_until_more_is_placed) {
  const open_program *p = &programs[_i];
  opened t;
  open_one(&t, &p->of, "output y = R\n");
  plc_run(&t.x);
  const plc_score before = plc_score_of(&t.x);
  plc_settle(&t.x);
  ck_assert_msg(!plc_failed(&t.x), "%s: %s", p->of.what, t.err.msg);
  const plc_score after = plc_score_of(&t.x);
  ck_assert_msg(after.loose <= before.loose, "%s: more is loose", p->of.what);
  if (!p->of.wrong) ck_assert_msg(after.loose == 0, "%s: %u are loose", p->of.what, after.loose);
  for (size_t i = 0; i < 4 && p->placed[i][0]; i++) {
    const plc_tuple *l = leaf_of(&t.x, p->placed[i][0]);
    ck_assert_msg(l->state == PLC_PLACED, "%s: %s", p->of.what, p->placed[i][0]);
    const char *at = plc_print(&t.x, &l->place[0], &t.keep);
    ck_assert_msg(strcmp(at, p->placed[i][1]) == 0, "%s: %s is %s", p->of.what, p->placed[i][0],
                  at);
  }
  for (size_t i = 0; i < t.x.n_tuples; i++) ck_assert(!t.x.tuple[i]->stuck);
  close_one(&t);
}
END_TEST

/* A second time nothing is left to change. */
START_TEST(what_is_settled_stays) {
  opened t;
  open_one(&t, &programs[_i].of, "output y = R\n");
  plc_run(&t.x);
  plc_settle(&t.x);
  char *was[MOST_NODES] = {NULL};
  for (size_t i = 0; i < t.x.n_tuples; i++)
    if (t.x.tuple[i]->state == PLC_PLACED)
      was[i] = strdup(plc_print(&t.x, &t.x.tuple[i]->place[0], &t.keep));
  plc_settle(&t.x);
  for (size_t i = 0; i < t.x.n_tuples; i++) {
    const bool placed = t.x.tuple[i]->state == PLC_PLACED;
    ck_assert_int_eq(placed, was[i] != NULL);
    if (placed) ck_assert_str_eq(plc_print(&t.x, &t.x.tuple[i]->place[0], &t.keep), was[i]);
    free(was[i]);
  }
  close_one(&t);
}
END_TEST

int main(void) {
  Suite *s = suite_create("settle");
  TCase *t = tcase_create("settle");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, what_is_right_is_read_and_a_slip_is_found, 0, PROGRAMS);
  tcase_add_loop_test(t, guesses_are_changed_until_more_is_placed, 0, PROGRAMS);
  tcase_add_loop_test(t, what_is_settled_stays, 0, PROGRAMS);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
