/* Literals that count a rank's elements: of which tensor, how many one rank alone has, and which
 * results they account for. */
#include "lint/placement/lift/variants.h"
#include "tests/lint/placement/tuples.h"
#include "tests/support/suite.h"

enum { SEEDS = 500, DATA = 0, STEP, SUM, SCALED, LAST, N_TUPLES };

static void flag(uint32_t k, bool elements, bool counted, bool nothing) {
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    node[at[k][r]].counts_elements = elements;
    node[at[k][r]].counts_ranks = counted;
    node[at[k][r]].counts_nothing = nothing;
  }
}

static void set_whole(uint32_t k, rule_shape s) { wholes[k][0] = make(s); }

static int64_t product(const rule_shape *s, uint32_t from, uint32_t to) {
  int64_t n = 1;
  for (uint32_t d = from; d < to; d++) n *= s->dim[d];
  return n;
}

/* By all ranges of dimensions: what so many elements of a rank are in the whole; 0 where there are
 * none, or several answers. */
static int64_t naive_count(const rule_shape *own, const rule_shape *all, int64_t n) {
  int64_t found = 0;
  for (uint32_t i = 0; i < own->rank; i++)
    for (uint32_t j = i + 1; j <= own->rank; j++) {
      if (product(own, i, j) != n) continue;
      if (found && found != product(all, i, j)) return 0;
      found = product(all, i, j);
    }
  return found;
}

START_TEST(a_count_of_elements_is_that_of_the_whole_if_one_answer_fits) {
  int changed = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    rule_shape own = {.rank = 1 + (uint32_t)iso_rng_below(&rng, 3)}, all;
    for (uint32_t d = 0; d < own.rank; d++) own.dim[d] = 2 + (int64_t)iso_rng_below(&rng, 3);
    all = own;
    for (uint32_t d = 0; d < own.rank; d++)
      if (iso_rng_below(&rng, 3) == 0) all.dim[d] *= 2;
    begin_tuples("a=2", N_TUPLES);
    set_shape(DATA, own);
    set_whole(DATA, all);
    reads(STEP, "aten::div.Scalar", (uint32_t[]){DATA}, 1, NULL, 0);
    for (int64_t n = 1; n <= 64; n++) {
      const int64_t want = naive_count(&own, &all, n);
      flag(STEP, true, false, false);
      ck_assert_double_eq(plc_whole_count(&ranks, &tuple[STEP], (double)n), (double)want);
      flag(STEP, false, false, false);
      ck_assert_double_eq(plc_whole_count(&ranks, &tuple[STEP], (double)n), 0);
      changed += want != 0 && want != n;
    }
    end_tuples();
  }
  ck_assert_int_gt(changed, SEEDS);
}
END_TEST

/* A constant of one row fits many rows as it does one, so that no count of it is known. */
START_TEST(a_broadcast_constant_counts_nothing) {
  for (int k = 0; k < 3; k++) {
    begin_tuples("a=2", N_TUPLES);
    set_shape(DATA, k == 1 ? SHAPE(2, 3) : SHAPE(1, 3));
    set_whole(DATA, k == 1 ? SHAPE(2, 3) : SHAPE(1, 3));
    tuple[DATA].konst = k < 2;
    reads(STEP, "aten::div.Scalar", (uint32_t[]){DATA}, 1, NULL, 0);
    flag(STEP, true, false, false);
    ck_assert_double_eq(plc_whole_count(&ranks, &tuple[STEP], 3), k ? 3 : 0);
    end_tuples();
  }
}
END_TEST

/* A sum of a rank's 2 by 3 elements, of which the whole has twice as many, times `by`. */
static void begin_mean(const char *mesh, const char *op,
                       const rule_term *(*by)(iso_arena *, double), double number) {
  begin_tuples(mesh, N_TUPLES);
  set_whole(DATA, SHAPE(4, 3));
  reads(SUM, "aten::sum", (uint32_t[]){DATA}, 1, NULL, 0);
  set_shape(SUM, SHAPE(1));
  set_whole(SUM, SHAPE(1));
  const rule_term *const arg = by(&terms, number);
  reads(SCALED, op, (uint32_t[]){SUM}, 1, &arg, 1);
  set_shape(SCALED, SHAPE(1));
  set_whole(SCALED, SHAPE(1));
  reads(LAST, "aten::neg", (uint32_t[]){SCALED}, 1, NULL, 0);
}

static const rule_term *whole_number(iso_arena *a, double n) { return rule_int(a, (int64_t)n); }

START_TEST(a_divisor_may_count_what_was_summed_up) {
  for (int k = 0; k < 8; k++) {
    const bool inverse = k == 1;
    begin_mean("a=2", inverse ? "aten::mul.Scalar" : "aten::div.Scalar",
               k == 2 ? whole_number : rule_float,
               inverse  ? 1.0 / 6
               : k == 3 ? 5
                        : 6);
    if (k == 4) set_whole(DATA, SHAPE(2, 3)); /* one rank alone has as many */
    if (k == 5) flag(SCALED, false, true, false);
    if (k == 6) flag(SCALED, false, false, true);
    if (k == 7) node[at[SCALED][0]].call = node[at[SCALED][1]].call = node[at[LAST][0]].call;
    const bool is = k < 3;
    ck_assert_msg(fabs(plc_may_count(&ranks, &tuple[SCALED]) - (is ? 6 : 0)) < 1e-9, "%d", k);
    ck_assert_ptr_eq(plc_count_behind(&ranks, &tuple[LAST]), is ? &tuple[SCALED] : NULL);
    end_tuples();
  }
}
END_TEST

/* The derivative of a mean: a number is divided first, and made many then. */
START_TEST(a_divisor_may_count_what_is_made_of_it) {
  for (int k = 0; k < 2; k++) {
    begin_tuples("a=2", N_TUPLES);
    const rule_term *const six = rule_float(&terms, 6);
    set_shape(DATA, SHAPE(1));
    set_whole(DATA, SHAPE(1));
    reads(SCALED, "aten::div.Scalar", (uint32_t[]){DATA}, 1, &six, 1);
    set_shape(SCALED, SHAPE(1));
    set_whole(SCALED, SHAPE(1));
    reads(LAST, "aten::expand", (uint32_t[]){SCALED}, 1, NULL, 0);
    set_whole(LAST, k ? SHAPE(2, 3) : SHAPE(4, 3));
    ck_assert_double_eq(plc_may_count(&ranks, &tuple[SCALED]), k ? 0 : 6);
    end_tuples();
  }
}
END_TEST

/* A result that is one through the ranks of an axis, or of all, times the right one. */
START_TEST(a_count_accounts_for_a_number_of_ranks) {
  static const struct {
    double scale;
    bool answers;
  } cases[] = {{1.0 / 2, true}, {1.0 / 3, true}, {1.0 / 6, true}, {1.0 / 4, false}, {1, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int k = 0; k < 2; k++) {
      begin_mean("a=2,b=3", "aten::div.Scalar", rule_float, k ? 5 : 6);
      ck_assert_msg(plc_count_answers(&ranks, &tuple[LAST], cases[i].scale) ==
                        (!k && cases[i].answers),
                    "%g", cases[i].scale);
      ck_assert_int_eq(ranks.undecided != NULL, !k && cases[i].answers);
      end_tuples();
    }
}
END_TEST

int main(void) {
  Suite *s = suite_create("counts");
  TCase *t = tcase_create("counts");
  tcase_add_test(t, a_count_of_elements_is_that_of_the_whole_if_one_answer_fits);
  tcase_add_test(t, a_broadcast_constant_counts_nothing);
  tcase_add_test(t, a_divisor_may_count_what_was_summed_up);
  tcase_add_test(t, a_divisor_may_count_what_is_made_of_it);
  tcase_add_test(t, a_count_accounts_for_a_number_of_ranks);
  suite_add_tcase(s, t);
  return run_suite(s);
}
