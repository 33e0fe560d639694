/* Outputs of several ranks: each is compared with its counterpart, by name, else by position. */
#include <check.h>
#include <string.h>

#include "synth/leaves/leaves.h"
#include "tests/support/suite.h"

enum { MAX = 6 };

static iso_arena arena;
static void setup(void) { iso_arena_init(&arena); }
static void teardown(void) { iso_arena_fini(&arena); }

/* Outputs with these names, node k for the k-th. */
static synth_graph graph(synth_output *out, const char *const *name) {
  size_t n = 0;
  for (; n < MAX && name[n]; n++) out[n] = (synth_output){.name = name[n], .node = (uint32_t)n};
  return (synth_graph){.path = "graph.json", .n_outputs = n, .output = out, .n_nodes = n};
}

/* Pairs as "left=right ...". */
static const char *paired(const char *const *left, const char *const *right) {
  synth_output l[MAX], r[MAX];
  const synth_graph gl = graph(l, left), gr = graph(r, right);
  synth_graph p[2];
  iso_error err;
  if (st_pair_outputs(&gl, &gr, &arena, p, &err) != ISO_OK) return "error";
  ck_assert_uint_eq(p[LEFT].n_outputs, p[RIGHT].n_outputs);
  const char *text = "";
  for (size_t i = 0; i < p[LEFT].n_outputs; i++)
    text = iso_arena_printf(&arena, "%s%s%s=%s", text, *text ? " " : "", p[LEFT].output[i].name,
                            p[RIGHT].output[i].name);
  return text;
}
#define NAMES(...) ((const char *const[MAX + 1]){__VA_ARGS__})

START_TEST(one_against_several) {
  ck_assert_str_eq(paired(NAMES("y"), NAMES("y", "y_rank1", "y_rank2")), "y=y y=y_rank1 y=y_rank2");
  ck_assert_str_eq(paired(NAMES("y", "y_rank1"), NAMES("y")), "y=y y_rank1=y");
  ck_assert_str_eq(paired(NAMES("a", "b"), NAMES("b", "b_rank1", "a", "a_rank1")),
                   "a=a a=a_rank1 b=b b=b_rank1");
}
END_TEST

START_TEST(several_against_several) {
  ck_assert_str_eq(paired(NAMES("y", "y_rank1"), NAMES("y", "y_rank1")), "y=y y_rank1=y_rank1");
  ck_assert_str_eq(paired(NAMES("y", "y_rank1"), NAMES("y", "y_rank1", "y_rank2")),
                   "y=y y=y_rank1 y=y_rank2 y_rank1=y");
}
END_TEST

START_TEST(by_position_where_names_differ) {
  ck_assert_str_eq(paired(NAMES("out"), NAMES("y", "y_rank1")), "out=y out=y_rank1");
  ck_assert_str_eq(paired(NAMES("a", "b"), NAMES("c", "d")), "a=c b=d");
}
END_TEST

START_TEST(no_replica_without_its_first) {
  ck_assert_str_eq(paired(NAMES("y_rank1"), NAMES("y_rank1")), "y_rank1=y_rank1");
  ck_assert_str_eq(paired(NAMES("y"), NAMES("y", "z_rank1")), "error");
  ck_assert_str_eq(paired(NAMES("y"), NAMES("y", "y_rank")), "error");
  ck_assert_str_eq(paired(NAMES("_rank1"), NAMES("_rank1")), "_rank1=_rank1");
}
END_TEST

int main(void) {
  Suite *s = suite_create("ranks");
  TCase *t = tcase_create("outputs");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, one_against_several);
  tcase_add_test(t, several_against_several);
  tcase_add_test(t, by_position_where_names_differ);
  tcase_add_test(t, no_replica_without_its_first);
  suite_add_tcase(s, t);
  return run_suite(s);
}
