/* Parts of a sum that the right side leaves out: said of what is added up, and of nothing that is
 * only repeated beside another operand. */
#include "tests/localise/small_parting.h"
#include "tests/support/suite.h"

static const int64_t root[2] = {1, 1};

/* Rows of one tensor of four, of which the right has the first `rows`; what each side makes of them
 * is its region. */
static void rows_of(int64_t rows, rule_shape shape) {
  begin();
  rule_tensor *x = positive(5, shape, 1);
  shape.dim[0] = rows;
  rule_tensor *some = keep(make(shape));
  for (int64_t i = 0; i < some->numel; i++) rule_tensor_set(some, i, rule_tensor_get(x, i));
  input(&w.l, x);
  input(&w.r, some);
  for (int side = 0; side < 2; side++) neg(graph_of(side), 0);
}

static const char *hint(void) {
  static synth_divergence d;
  d = (synth_divergence){.left = 1, .right = 1};
  place_all();
  for (int side = 0; side < 2; side++)
    for (uint32_t i = 1; i < graph_of(side)->g.n_nodes; i++) p.seen[side][i] = 1;
  ck_assert(lo_left_out(&p, root, &d, &err) == ISO_OK);
  if (d.hint) ck_assert(d.left == 2 && d.right == 2);
  return d.hint;
}

START_TEST(rows_that_are_not_added_up_are_said) {
  for (int64_t rows = 1; rows < 4; rows++) {
    rows_of(rows, SHAPE(4, 3));
    const rule_term *dim[] = {num(0)}, *list = rule_list(&w.arena, dim, 1);
    for (int side = 0; side < 2; side++)
      op(graph_of(side), "aten::sum.dim_IntList", v(1), list, NULL);
    const char *said = hint(),
               *want = iso_arena_printf(&w.arena,
                                        "of `%s` only 0 to %d along dimension 0 are added up in "
                                        "`%s`: the right leaves out the others",
                                        w.l.node[1].id, (int)rows, w.r.node[2].id);
    ck_assert_msg(said && strcmp(said, want) == 0, "%s, not %s", said ? said : "nothing", want);
    end();
  }
}
END_TEST

/* One scale for each row, and the first one's for all rows. */
START_TEST(what_is_repeated_is_added_up_nowhere) {
  rows_of(1, SHAPE(4, 1));
  for (int side = 0; side < 2; side++) {
    graph *g = graph_of(side);
    const uint32_t z = input(g, positive(6, SHAPE(4, 3), 1));
    mul(g, z, 1);
  }
  synth_divergence d = {.left = 1, .right = 1};
  place_all();
  for (int side = 0; side < 2; side++) p.seen[side][1] = p.seen[side][3] = 1;
  ck_assert(lo_left_out(&p, root, &d, &err) == ISO_OK);
  ck_assert_ptr_null(d.hint);
  end();
}
END_TEST

START_TEST(all_rows_are_nothing_left_out) {
  rows_of(4, SHAPE(4, 3));
  const rule_term *dim[] = {num(0)}, *list = rule_list(&w.arena, dim, 1);
  for (int side = 0; side < 2; side++)
    op(graph_of(side), "aten::sum.dim_IntList", v(1), list, NULL);
  ck_assert_ptr_null(hint());
  end();
}
END_TEST

int main(void) {
  Suite *s = suite_create("left_out");
  TCase *t = tcase_create("all");
  tcase_add_test(t, rows_that_are_not_added_up_are_said);
  tcase_add_test(t, what_is_repeated_is_added_up_nowhere);
  tcase_add_test(t, all_rows_are_nothing_left_out);
  suite_add_tcase(s, t);
  return run_suite(s);
}
