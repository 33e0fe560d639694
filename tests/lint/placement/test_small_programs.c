/* Two layers of a model on two ranks, by hand (needs libtorch): a program that is right has no
 * finding, and one slip in it is found at the tensor where it was made. */
#include "tests/lint/placement/small_programs.h"

/* x, two matrices, the first cut by columns and the second by rows, and a bias c. */
#define LEAVES \
  { {"x", "[4,6]", SAME}, {"w", "[6,4]", OWN}, {"v", "[4,3]", OWN}, {"c", "[3]", SAME}, }
#define H \
  { "h", MM("rR_x", "rR_w"), "[4,4]" }
#define O \
  { "o", MM("rR_h", "rR_v"), "[4,3]" }
#define S \
  { "all_s", REDUCED("o", "sum"), "[4,3]" }
#define ADDED(a) BOTH("add.Tensor", a, "rR_c")

static const program programs[] = {
    {"a bias that is added behind the sum",
     LEAVES,
     {H, O, S, {"y", ADDED("all_s"), "[4,3]"}},
     "y",
     NULL,
     NULL},
    {"a sum of both ranks' parts", LEAVES, {H, O, S}, "all_s", NULL, NULL},
    {"a function of the shards before, and of the sum after",
     LEAVES,
     {{"h", MM("rR_x", "rR_w"), "[4,4]"},
      {"g", OF("relu", "rR_h"), "[4,4]"},
      {"o", MM("rR_g", "rR_v"), "[4,3]"},
      S,
      {"y", OF("tanh", "all_s"), "[4,3]"}},
     "y",
     NULL,
     NULL},
    {"shards that are gathered",
     LEAVES,
     {H, {"all_g", GATHERED("r0_h", "r1_h"), "[4,8]"}},
     "all_g",
     NULL,
     NULL},
    /* slips */
    {"parts of a sum that nobody adds up", LEAVES, {H, O}, "o", "o", "all_reduce"},
    {"a function of the parts in place of the sum",
     LEAVES,
     {H, O, {"g", OF("relu", "rR_o"), "[4,3]"}, {"all_s", REDUCED("g", "sum"), "[4,3]"}},
     "all_s",
     "g",
     "all_reduce"},
    {"a mean in place of a sum",
     LEAVES,
     {H, O, {"all_s", REDUCED("o", "avg"), "[4,3]"}},
     "all_s",
     "all_s",
     "sum"},
    {"a sum that is added up once more",
     LEAVES,
     {H, O, S, {"t", OF("neg", "all_s"), "[4,3]"}, {"all_t", REDUCED("t", "sum"), "[4,3]"}},
     "all_t",
     "all_t",
     "2"},
    {"shards that are gathered in another order",
     LEAVES,
     {H, {"all_g", GATHERED("r1_h", "r0_h"), "[4,8]"}},
     "all_g",
     "all_g",
     "order"},
    {"a bias that each rank adds before the sum",
     LEAVES,
     {H, O, {"b", ADDED("rR_o"), "[4,3]"}, {"all_s", REDUCED("b", "sum"), "[4,3]"}},
     "all_s",
     "b",
     "2 times"},
    {"the largest of both parts",
     LEAVES,
     {H, O, {"all_s", REDUCED("o", "max"), "[4,3]"}},
     "all_s",
     "all_s",
     "sum"},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

START_TEST(a_slip_is_found_where_it_was_made) {
  const lint_placement_options o = {
      .placements = "x = R\nw = S(1)\nv = S(0)\nc = R\noutput y = R\n", .file = "lines", .seed = 3};
  judge_program(&programs[_i], 2, &o);
}
END_TEST

int main(void) {
  Suite *s = suite_create("small_programs");
  TCase *t = tcase_create("small_programs");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, a_slip_is_found_where_it_was_made, 0, PROGRAMS);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
