/* The ranks' calls as a call of the whole: a literal that grows from rank to rank covers all of
 * them, one that counts ranks is 1, and calls of other operators are no call. */
#include "lint/placement/lift/variants.h"
#include "tests/lint/placement/tuples.h"
#include "tests/support/suite.h"

enum { SEEDS = 300, DATA = 0, OTHER, STEP, N_TUPLES };

static uint32_t step_of[N_TUPLES * PLC_RANKS];
static const plc_variant none = {0};

static void begin_call(const char *mesh) {
  begin_tuples(mesh, N_TUPLES);
  for (uint32_t k = 0; k < N_TUPLES; k++)
    for (uint32_t r = 0; r < ranks.mesh.n; r++) step_of[at[k][r]] = k;
  ranks.step_of = step_of;
}

static void set_call(uint32_t r, const char *op, const rule_term *const *arg, size_t n) {
  node[at[STEP][r]].op = op;
  node[at[STEP][r]].call = rule_op(&terms, op, arg, n);
}

static const rule_term *data_of(uint32_t r) { return rule_var(&terms, at[DATA][r]); }

static const rule_term *whole(void) { return plc_whole_call(&ranks, &tuple[STEP], &none, &terms); }

/* Rank r has rows from r * size to (r + 1) * size. */
START_TEST(parts_in_the_order_of_ranks_are_all_of_it) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    begin_call(seed % 2 ? "a=4" : "a=2");
    const int64_t size = 1 + (int64_t)iso_rng_below(&rng, 9), n = ranks.mesh.n;
    const bool down = iso_rng_below(&rng, 2);
    for (uint32_t r = 0; r < n; r++) {
      const int64_t k = down ? n - 1 - r : r;
      const rule_term *const arg[] = {data_of(r), rule_int(&terms, 0), rule_int(&terms, k * size),
                                      rule_int(&terms, (k + 1) * size)};
      set_call(r, "aten::slice.Tensor", arg, 4);
    }
    ck_assert(plc_gather(&ranks, &tuple[STEP]));
    ck_assert(tuple[STEP].differs);
    ck_assert_uint_eq(tuple[STEP].slots, 3);
    const rule_term *t = whole();
    ck_assert_ptr_nonnull(t);
    ck_assert(t->child[0]->kind == RULE_VAR && t->child[0]->u.i == 0);
    ck_assert_int_eq(t->child[1]->u.i, 0);
    ck_assert_int_eq(t->child[2]->u.i, 0);
    ck_assert_int_eq(t->child[3]->u.i, n * size);
    end_tuples();
  }
}
END_TEST

/* Numbers that are none of a rank's place stay as they are on all ranks. */
START_TEST(what_is_the_same_on_all_ranks_stays) {
  begin_call("a=2");
  for (uint32_t r = 0; r < 2; r++) {
    const rule_term *const arg[] = {data_of(r), rule_float(&terms, 2), rule_string(&terms, "mean")};
    set_call(r, "aten::mul.Scalar", arg, 3);
  }
  ck_assert(plc_gather(&ranks, &tuple[STEP]));
  ck_assert(!tuple[STEP].differs);
  ck_assert_uint_eq(tuple[STEP].n_args, 1);
  ck_assert_uint_eq(tuple[STEP].arg[0], DATA);
  const rule_term *t = whole();
  ck_assert_double_eq(t->child[1]->u.f, 2);
  ck_assert_str_eq(t->child[2]->u.s, "mean");
  /* The number is said to be one of ranks. */
  for (uint32_t r = 0; r < 2; r++) node[at[STEP][r]].counts_ranks = true;
  ck_assert_double_eq(whole()->child[1]->u.f, 1);
  node[at[STEP][1]].counts_ranks = false; /* on one of them */
  ck_assert_double_eq(whole()->child[1]->u.f, 2);
  end_tuples();
}
END_TEST

/* A variant says which integer is larger for one rank alone, and by how many times. */
START_TEST(a_variant_multiplies_the_integer_at_its_slot) {
  for (int k = 0; k < 5; k++) {
    begin_call("a=2");
    for (uint32_t r = 0; r < 2; r++) {
      const rule_term *const sizes[] = {rule_int(&terms, 2), rule_int(&terms, 3)},
                             *const arg[] = {data_of(r), rule_list(&terms, sizes, 2)};
      set_call(r, "aten::reshape", arg, 2);
    }
    const plc_variant v = {.n = 1,
                           .slot = {k == 1 ? 1 : 0},
                           .by = {k == 2   ? 0.5
                                  : k == 3 ? 0
                                  : k == 4 ? 0.25
                                           : 2}};
    const rule_term *t = plc_whole_call(&ranks, &tuple[STEP], &v, &terms);
    ck_assert_msg((t != NULL) == (k < 4), "%d", k); /* no half of an integer */
    if (!t) {
      end_tuples();
      continue;
    }
    static const int64_t want[][2] = {{4, 3}, {2, 6}, {1, 3}, {1, 3}}; /* 2 is a number of ranks */
    for (int i = 0; i < 2; i++) ck_assert_int_eq(t->child[1]->child[i]->u.i, want[k][i]);
    end_tuples();
  }
}
END_TEST

START_TEST(calls_that_differ_in_more_than_integers_are_none) {
  for (int k = 0; k < 6; k++) {
    begin_call("a=2");
    for (uint32_t r = 0; r < 2; r++) {
      const bool other = r == 1;
      const rule_term *const arg[] = {data_of(r),
                                      k == 1 && other   ? rule_float(&terms, 3)
                                      : k == 2 && other ? rule_int(&terms, 2)
                                                        : rule_float(&terms, 2),
                                      rule_string(&terms, k == 3 && other ? "sum" : "mean"),
                                      rule_int(&terms, r)};
      set_call(r, k == 4 && other ? "aten::div.Scalar" : "aten::mul.Scalar", arg,
               k == 5 && other ? 3 : 4);
    }
    /* Steps are of one operator, as they were put together. */
    ck_assert_msg((whole() != NULL) == (k == 0 || k == 4), "%d", k);
    ck_assert_msg(plc_gather(&ranks, &tuple[STEP]) == (k == 0 || k == 4), "%d", k);
    end_tuples();
  }
}
END_TEST

/* A bias that one rank adds: it has a tensor there, and the others none. */
START_TEST(a_tensor_that_some_ranks_give_is_an_argument) {
  begin_call("a=2");
  for (uint32_t r = 0; r < 2; r++) {
    const rule_term *const arg[] = {data_of(r),
                                    r ? rule_none(&terms) : rule_var(&terms, at[OTHER][r])};
    set_call(r, "aten::linear", arg, 2);
  }
  ck_assert(plc_gather(&ranks, &tuple[STEP]));
  ck_assert(tuple[STEP].differs);
  ck_assert_uint_eq(tuple[STEP].n_args, 2);
  ck_assert_uint_eq(tuple[STEP].arg[1], OTHER);
  ck_assert(whole()->child[1]->kind == RULE_VAR);
  end_tuples();
}
END_TEST

/* Each rank gives a collective its own tensor. */
START_TEST(a_collective_reads_each_ranks_own_tensor) {
  begin_call("a=4");
  meets(STEP, "dist::all_reduce", OTHER, NULL, 0);
  tuple[STEP].n_args = 0;
  for (uint32_t r = 0; r < 4; r++) ranks_of[at[STEP][r]] = 15;
  ck_assert(plc_gather(&ranks, &tuple[STEP]));
  ck_assert_uint_eq(tuple[STEP].n_args, 1);
  ck_assert_uint_eq(tuple[STEP].arg[0], OTHER);
  end_tuples();
}
END_TEST

int main(void) {
  Suite *s = suite_create("call");
  TCase *t = tcase_create("call");
  tcase_add_test(t, parts_in_the_order_of_ranks_are_all_of_it);
  tcase_add_test(t, what_is_the_same_on_all_ranks_stays);
  tcase_add_test(t, a_variant_multiplies_the_integer_at_its_slot);
  tcase_add_test(t, calls_that_differ_in_more_than_integers_are_none);
  tcase_add_test(t, a_tensor_that_some_ranks_give_is_an_argument);
  tcase_add_test(t, a_collective_reads_each_ranks_own_tensor);
  suite_add_tcase(s, t);
  return run_suite(s);
}
