/* One run of two ranks and of the whole: where leaves lie, what is drawn for them, and what another
 * guess changes (needs libtorch). */
#include "tests/lint/placement/opened.h"

static const program sharded = {"columns, then rows",
                                {{"x", "[4,6]", SAME}, {"w", "[6,4]", OWN}, {"v", "[4,3]", OWN}},
                                {{"h", MM("rR_x", "rR_w"), "[4,4]"},
                                 {"o", MM("rR_h", "rR_v"), "[4,3]"},
                                 {"all_s", REDUCED("o", "sum"), "[4,3]"}},
                                "all_s",
                                NULL,
                                NULL};

static opened t;

static const plc_tuple *step_of(const char *id) {
  for (size_t i = 0; i < t.x.n_tuples; i++)
    if (strcmp(plc_node(&t.x, t.x.tuple[i]->node[0])->id, id) == 0) return t.x.tuple[i];
  ck_abort_msg("no step %s", id);
}

static const char *printed(const plc_tuple *u) {
  return u->state == PLC_PLACED ? plc_print(&t.x, &u->place[0], &t.keep) : "loose";
}

START_TEST(leaves_lie_as_is_said_or_as_their_values_say) {
  static const struct {
    const char *lines, *w, *x;
    bool guessed; /* w */
  } cases[] = {{"", "S(0)", "R", true},
               {"w = S(1)\n", "S(1)", "R", false},
               {"w = P(sum)\nx = S(0)\n", "P(sum)", "S(0)", false},
               {"w = R\n", "loose", "R", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    open_one(&t, &sharded, cases[i].lines);
    plc_run(&t.x);
    ck_assert_msg(!plc_failed(&t.x), "%s", t.err.msg);
    const plc_tuple *w = leaf_of(&t.x, "w"), *x = leaf_of(&t.x, "x");
    ck_assert_str_eq(printed(w), cases[i].w);
    ck_assert_str_eq(printed(x), cases[i].x);
    ck_assert_int_eq(w->guess == w->id, cases[i].guessed);
    ck_assert_uint_eq(x->guess, PLC_NONE);
    if (w->state != PLC_PLACED) ck_assert_str_eq(w->why, "the ranks' values of it differ");
    close_one(&t);
  }
}
END_TEST

START_TEST(a_placement_that_does_not_fit_shapes_is_an_error) {
  open_one(&t, &sharded, "w = S(2)\n");
  plc_run(&t.x);
  ck_assert_int_eq(t.x.code, ISO_USAGE);
  ck_assert_msg(strstr(t.err.msg, "\"w\" does not fit its shapes"), "%s", t.err.msg);
  close_one(&t);
}
END_TEST

/* The first draw is the capture. On each, the ranks hold their parts of the whole. */
START_TEST(ranks_hold_parts_of_one_whole_on_each_draw) {
  static const char *const names[] = {"x", "w", "v"};
  open_one(&t, &sharded, "w = S(1)\nv = S(0)\n");
  plc_run(&t.x);
  for (size_t i = 0; i < 3; i++) {
    const plc_tuple *u = leaf_of(&t.x, names[i]);
    for (uint32_t d = 0; d < PLC_DRAWS; d++) {
      rule_tensor *each[PLC_RANKS];
      plc_locals(&t.x, u, d, 0, each);
      ck_assert(plc_holds(&t.x, each, u->whole[d], &u->place[0], 0));
      const double now = rule_tensor_get(each[1], 0),
                   was = rule_tensor_get(t.g->node[u->node[1]].value, 0);
      ck_assert_msg((now == was) == (d == 0), "%s on draw %u: %g, %g", names[i], d, now, was);
    }
  }
  ck_assert_str_eq(printed(step_of("r0_h")), "S(1)");
  ck_assert_str_eq(printed(step_of("r0_o")), "P(sum)");
  ck_assert_str_eq(printed(step_of("all_s")), "R");
  close_one(&t);
}
END_TEST

START_TEST(a_second_run_is_the_same) {
  open_one(&t, &sharded, "w = S(1)\nv = S(0)\n");
  plc_run(&t.x);
  rule_tensor *was = rule_tensor_ref(step_of("all_s")->whole[1]);
  const uint32_t order = step_of("r0_o")->order;
  plc_run(&t.x);
  ck_assert(rule_tensor_same_bytes(was, step_of("all_s")->whole[1]));
  ck_assert_uint_eq(step_of("r0_o")->order, order);
  rule_tensor_unref(was);
  close_one(&t);
}
END_TEST

/* Each possibility is another one, shards of one block before those of several, and they end. */
START_TEST(guesses_are_counted_through) {
  open_one(&t, &sharded, "");
  plc_run(&t.x);
  const plc_tuple *w = leaf_of(&t.x, "w");
  plc_guess *g = plc_guess_of(&t.x, w);
  ck_assert_ptr_eq(g, plc_guess_of(&t.x, w));
  char *seen[32] = {NULL};
  uint32_t n = 0;
  bool blocks = false;
  for (; plc_next_guess(&t.x, g, n); n++) {
    ck_assert_uint_lt(n, 32);
    ck_assert_uint_eq(plc_tried(&t.x, w), n);
    ck_assert(!blocks || plc_has_blocks(&t.x, &g->place));
    blocks = plc_has_blocks(&t.x, &g->place);
    seen[n] = strdup(plc_print(&t.x, &g->place, &t.keep));
    for (uint32_t i = 0; i < n; i++) ck_assert_str_ne(seen[i], seen[n]);
  }
  ck_assert_uint_ge(n, 4);
  ck_assert(blocks);
  ck_assert_str_eq(seen[0], "S(0)");
  ck_assert_str_eq(seen[1], "S(1)");
  ck_assert_uint_eq(plc_tried(&t.x, w), n - 1); /* what is not there is not taken */
  for (uint32_t i = 0; i < n; i++) free(seen[i]);
  close_one(&t);
}
END_TEST

START_TEST(a_guess_like_another_has_its_blocks) {
  open_one(&t, &sharded, "");
  plc_run(&t.x);
  plc_guess_of(&t.x, leaf_of(&t.x, "v"));
  plc_guess *w = plc_guess_of(&t.x, leaf_of(&t.x, "w")),
            *v = plc_guess_of(&t.x, leaf_of(&t.x, "v"));
  ck_assert(!plc_guess_like(&t.x, v, w)); /* it is so already */
  for (uint32_t k = 0; !plc_has_blocks(&t.x, &w->place); k++) ck_assert(plc_next_guess(&t.x, w, k));
  ck_assert(plc_guess_like(&t.x, v, w));
  ck_assert(plc_has_blocks(&t.x, &v->place));
  close_one(&t);
}
END_TEST

int main(void) {
  Suite *s = suite_create("run");
  TCase *c = tcase_create("run");
  tcase_set_timeout(c, 60);
  tcase_add_test(c, leaves_lie_as_is_said_or_as_their_values_say);
  tcase_add_test(c, a_placement_that_does_not_fit_shapes_is_an_error);
  tcase_add_test(c, ranks_hold_parts_of_one_whole_on_each_draw);
  tcase_add_test(c, a_second_run_is_the_same);
  tcase_add_test(c, guesses_are_counted_through);
  tcase_add_test(c, a_guess_like_another_has_its_blocks);
  suite_add_tcase(s, c);
  return run_suite_with_engine(s);
}
