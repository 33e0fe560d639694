/* Four ranks, two by two: a part that is taken by the place along the wrong axis is found among the
 * ranks of one group, where the whole program cannot be read (needs libtorch). */
#include "tests/lint/placement/small_programs.h"

#define LEAVES \
  { {"x", "[4,6]", BY_GROUP}, {"k", "[6,4]", SAME}, {"v", "[2,3]", BY_PLACE}, }
#define U \
  { "u", MM("rR_x", "rR_k"), "[4,4]" }
#define BY_TP \
  { "s", COLUMNS("rR_u", "@", "&"), "[4,2]" }
#define BY_DP \
  { "s", COLUMNS("rR_u", "<", ">"), "[4,2]" }
#define O \
  { "o", MM("rR_s", "rR_v"), "[4,3]" }
#define TWO(name, of) \
  { \
    "two" name, \
        "'op':'dist::all_reduce','args':[[{'ref':'r<_" of "'},{'ref':'r~_" of "'}],'sum']", \
        "[4,3]" \
  }

static const program programs[] = {
    {"parts by the place along tp", LEAVES, {U, BY_TP, O, TWO("_s", "o")}, "two_s", NULL, NULL},
    {"a function of the parts",
     LEAVES,
     {U,
      BY_TP,
      {"r", OF("relu", "rR_s"), "[4,2]"},
      {"o", MM("rR_r", "rR_v"), "[4,3]"},
      TWO("_s", "o")},
     "two_s",
     NULL,
     NULL},
    /* slips */
    {"parts by the place along dp",
     LEAVES,
     {U, BY_DP, O, TWO("_s", "o")},
     "two_s",
     "o",
     "take parts by the place along tp"},
    {"a function of parts by the place along dp",
     LEAVES,
     {U,
      BY_DP,
      {"r", OF("relu", "rR_s"), "[4,2]"},
      {"o", MM("rR_r", "rR_v"), "[4,3]"},
      TWO("_s", "o")},
     "two_s",
     "o",
     "take parts by the place along tp"},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

START_TEST(a_part_by_the_wrong_axis_is_found) {
  const lint_placement_options o = {.placements =
                                        "x = dp S(0)\nk = R\nv = tp S(0)\noutput y = dp S(0)\n",
                                    .file = "lines",
                                    .mesh = "dp=2,tp=2",
                                    .seed = 3};
  judge_program(&programs[_i], 4, &o);
}
END_TEST

int main(void) {
  Suite *s = suite_create("within");
  TCase *t = tcase_create("within");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, a_part_by_the_wrong_axis_is_found, 0, PROGRAMS);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
