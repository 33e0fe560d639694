/* Places that a program counts from the end are as far from the end of the whole; and sizes of 1
 * that were read as larger ones are remembered. */
#include "lint/placement/lift/variants.h"
#include "tests/lint/placement/tuples.h"
#include "tests/support/suite.h"

enum { SEEDS = 400, DATA = 0, STEP, NEXT, LAST, N_TUPLES };

static rule_schemas *schemas;

static void begin_cut(rule_shape own, rule_shape all, const char *op, const rule_term *const *arg,
                      uint32_t n) {
  begin_tuples("a=2", N_TUPLES);
  ck_assert(rule_schemas_new(&schemas, &err) == ISO_OK);
  ranks.schemas = schemas;
  set_shape(DATA, own);
  wholes[DATA][0] = make(all);
  reads(STEP, op, (uint32_t[]){DATA}, 1, arg, n);
}

static void end_cut(void) {
  end_tuples();
  rule_schemas_free(schemas);
}

static void from_end(bool from, bool to) {
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    node[at[STEP][r]].from_end = from;
    node[at[STEP][r]].to_end = to;
  }
}

static int64_t whole_argument(uint32_t k) {
  const rule_term *c = plc_from_end(&ranks, &tuple[STEP], node[at[STEP][0]].call, &terms);
  ck_assert_ptr_nonnull(c);
  ck_assert_str_eq(c->u.s, node[at[STEP][0]].call->u.s);
  ck_assert(c->child[k]->kind == RULE_INT);
  return c->child[k]->u.i;
}

/* Rows from `start` to `end` along a dimension of which the whole has more. */
START_TEST(what_is_counted_from_the_end_is_as_far_from_the_wholes) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    iso_arena a;
    rule_shape own = {.rank = 1 + (uint32_t)iso_rng_below(&rng, 3)}, all;
    iso_arena_init(&a);
    for (uint32_t d = 0; d < own.rank; d++) own.dim[d] = 2 + (int64_t)iso_rng_below(&rng, 3);
    all = own;
    const int64_t dim = (int64_t)iso_rng_below(&rng, own.rank), size = own.dim[dim],
                  start = (int64_t)iso_rng_below(&rng, (uint64_t)size),
                  end = start + 1 + (int64_t)iso_rng_below(&rng, (uint64_t)(size - start));
    all.dim[dim] *= 1 + (int64_t)iso_rng_below(&rng, 3);
    const int64_t more = all.dim[dim] - size;
    const rule_term *const arg[] = {rule_int(&a, dim), rule_int(&a, start), rule_int(&a, end),
                                    rule_int(&a, 1)};
    begin_cut(own, all, "aten::slice.Tensor", arg, 4);
    for (int from = 0; from < 2; from++)
      for (int to = 0; to < 2; to++) {
        from_end(from, to);
        const bool open = from && end == size; /* up to the end, whatever that is */
        ck_assert_int_eq(whole_argument(1), dim);
        ck_assert_int_eq(whole_argument(2), from ? start + more : start);
        ck_assert_int_eq(whole_argument(3), to || open ? end + more : end);
        ck_assert_int_eq(whole_argument(4), 1);
      }
    end_cut();
    iso_arena_fini(&a);
  }
}
END_TEST

START_TEST(the_last_of_a_shard_is_the_last_of_the_whole) {
  for (int k = 0; k < 7; k++) {
    iso_arena a;
    iso_arena_init(&a);
    const rule_term *const arg[] = {rule_int(&a, k == 1 ? 1 : 0), rule_int(&a, 1)};
    begin_cut(SHAPE(2, 3), k == 2 ? SHAPE(4, 3, 1) : SHAPE(4, 3), "aten::select.int", arg, 2);
    from_end(k != 3, false);
    if (k == 4) tuple[DATA].whole = NULL;
    if (k == 5) tuple[DATA].n_out = 2;
    if (k == 6) tuple[STEP].n_args = 0;
    ck_assert_msg(whole_argument(2) == (k == 0 ? 3 : 1), "%d", k);
    end_cut();
    iso_arena_fini(&a);
  }
}
END_TEST

/* A literal of 1 that was read as 2, at most `depth` steps before. */
START_TEST(a_size_of_one_that_grew_is_remembered) {
  for (int k = 0; k < 6; k++) {
    begin_tuples("a=2", N_TUPLES);
    const rule_term *const sizes[] = {rule_int(&terms, 3), rule_int(&terms, 1)}, *const list =
                                                                                     rule_list(
                                                                                         &terms,
                                                                                         sizes, 2);
    reads(STEP, "aten::reshape", (uint32_t[]){DATA}, 1, &list, 1);
    reads(NEXT, "aten::neg", (uint32_t[]){STEP}, 1, NULL, 0);
    reads(LAST, "aten::neg", (uint32_t[]){NEXT}, 1, NULL, 0);
    tuple[STEP].variant = (plc_variant){.n = 1, .slot = {k == 1 ? 0 : 1}, .by = {k == 2 ? 1 : 2}};
    if (k == 3) tuple[STEP].state = PLC_VARYING;
    if (k == 4) tuple[STEP].variant.n = 0;
    const bool grew = k == 0 || k == 5;
    ck_assert_msg(plc_grew_one(&ranks, &tuple[STEP], 0) == grew, "%d", k);
    ck_assert(plc_grew_one(&ranks, &tuple[LAST], 2) == grew);
    ck_assert(!plc_grew_one(&ranks, &tuple[LAST], 1));
    ck_assert(!plc_grew_one(&ranks, &tuple[DATA], 9));
    end_tuples();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("ends");
  TCase *t = tcase_create("ends");
  tcase_add_test(t, what_is_counted_from_the_end_is_as_far_from_the_wholes);
  tcase_add_test(t, the_last_of_a_shard_is_the_last_of_the_whole);
  tcase_add_test(t, a_size_of_one_that_grew_is_remembered);
  suite_add_tcase(s, t);
  return run_suite(s);
}
