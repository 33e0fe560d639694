/* Different integers as places in an order: of any numbers the places are different integers of the
 * domain, and of such integers numbers are made whose places they are. */
#include <string.h>

#include "rules/permutation.h"
#include "tests/support/small_operators.h"
#include "tests/support/suite.h"

enum { SEEDS = 400 };

static iso_arena arena;
static rule_schemas *schemas;
static iso_error err;

/* The numbers of a term over one tensor, whatever its shape; `n`: how many. */
static double *numbers(const rule_term *t, const double *x, size_t of, size_t *n) {
  const char *op = t->kind == RULE_OP ? t->u.s : "";
  if (t->kind == RULE_VAR) return *n = of, (double *)(uintptr_t)x;
  double *out = iso_arena_alloc(&arena, 256 * sizeof *out);
  if (strcmp(op, "aten::arange.start") == 0) {
    *n = 0;
    for (int64_t i = t->child[0]->u.i; i < t->child[1]->u.i; i++) out[(*n)++] = (double)i;
    return out;
  }
  const double *own = numbers(t->child[0], x, of, n);
  memcpy(out, own, *n * sizeof *out);
  if (strcmp(op, "aten::argsort") == 0)
    for (size_t i = 0; i < *n; i++) {
      size_t before = 0;
      for (size_t k = 0; k < *n; k++) before += own[k] < own[i] || (own[k] == own[i] && k < i);
      out[before] = (double)i;
    }
  else if (strcmp(op, "aten::slice.Tensor") == 0) *n = (size_t)t->child[3]->u.i;
  else if (strcmp(op, "aten::add.Scalar") == 0)
    for (size_t i = 0; i < *n; i++) out[i] += (double)t->child[1]->u.i;
  else if (strcmp(op, "aten::scatter.src") == 0) {
    size_t n_at, n_src;
    const double *at = numbers(t->child[2], x, of, &n_at),
                 *src = numbers(t->child[3], x, of, &n_src);
    ck_assert_uint_eq(n_at, n_src);
    for (size_t i = 0; i < n_at; i++) {
      ck_assert(at[i] >= 0 && at[i] < (double)*n);
      out[(size_t)at[i]] = src[i];
    }
  } else ck_assert_msg(strcmp(op, "aten::reshape") == 0, "%s", op);
  return out;
}

static void setup(void) {
  iso_arena_init(&arena);
  ck_assert(rule_schemas_new(&schemas, &err) == ISO_OK);
}

static void teardown(void) {
  rule_schemas_free(schemas);
  iso_arena_fini(&arena);
}

/* A domain of so many integers, and a shape of some of them. */
static rule_domain draw(iso_rng *rng, rule_shape *shape, int64_t *n) {
  const int64_t low = (int64_t)iso_rng_below(rng, 7) - 3,
                span = 1 + (int64_t)iso_rng_below(rng, 12);
  *n = 1 + (int64_t)iso_rng_below(rng, (uint64_t)span);
  *shape = *n % 2 == 0 && iso_rng_below(rng, 2) ? SHAPE(2, *n / 2) : SHAPE(*n);
  return (rule_domain){.low = (double)low, .high = (double)(low + span - 1), .distinct = true};
}

START_TEST(places_are_different_integers_of_the_domain) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    rule_shape shape;
    int64_t n;
    size_t made;
    double w[16];
    bool seen[16] = {false};
    const rule_term *t;
    const rule_domain d = draw(&rng, &shape, &n);
    const int64_t span = rule_domain_span(&d);
    for (int64_t i = 0; i < span; i++) w[i] = iso_rng_normal(&rng);
    ck_assert_msg(rule_places(&arena, schemas, &d, &shape, rule_var(&arena, 0), &t, &err) == ISO_OK,
                  "%s", err.msg);
    const double *x = numbers(t, w, (size_t)span, &made);
    ck_assert_uint_eq(made, n);
    for (int64_t i = 0; i < n; i++) {
      const int64_t k = (int64_t)(x[i] - d.low);
      ck_assert(k >= 0 && k < span && !seen[k]);
      seen[k] = true;
      ck_assert(i == 0 || w[k] >= w[(int64_t)(x[i - 1] - d.low)]); /* in their order */
    }
  }
}
END_TEST

START_TEST(integers_are_the_places_of_their_order) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 2);
    rule_shape shape;
    int64_t n;
    size_t made, again;
    double input[16];
    int64_t all[16];
    const rule_term *order, *back;
    const rule_domain d = draw(&rng, &shape, &n);
    const int64_t span = rule_domain_span(&d);
    for (int64_t i = 0; i < span; i++) {
      const int64_t k = (int64_t)iso_rng_below(&rng, (uint64_t)i + 1);
      all[i] = all[k];
      all[k] = i;
    }
    for (int64_t i = 0; i < n; i++) input[i] = d.low + (double)all[i];
    ck_assert(rule_order(&arena, schemas, &d, &shape, rule_var(&arena, 0), &order, &err) == ISO_OK);
    const double *w = numbers(order, input, (size_t)n, &made);
    ck_assert_uint_eq(made, span);
    ck_assert(rule_places(&arena, schemas, &d, &shape, rule_var(&arena, 0), &back, &err) == ISO_OK);
    const double *x = numbers(back, w, made, &again);
    ck_assert_uint_eq(again, n);
    for (int64_t i = 0; i < n; i++) ck_assert_double_eq(x[i], input[i]);
  }
}
END_TEST

/* Only integers that are different, in any order, none left out, and not too many. */
START_TEST(only_different_integers_permute) {
  for (int k = 0; k < 7; k++) {
    rule_domain d = {.low = 0, .high = k == 1 ? 4096 : 4095, .distinct = k != 2};
    d.sorted = k == 3;
    d.mask = k == 4;
    d.n_exclude = k == 5;
    ck_assert_msg(rule_domain_permutes(&d, k == 6 ? RULE_F32 : RULE_I64) == (k == 0), "%d", k);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("permutation");
  TCase *t = tcase_create("permutation");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, places_are_different_integers_of_the_domain);
  tcase_add_test(t, integers_are_the_places_of_their_order);
  tcase_add_test(t, only_different_integers_permute);
  suite_add_tcase(s, t);
  return run_suite(s);
}
