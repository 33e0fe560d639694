/* Domains of inputs: draws are inside, an intersection is inside both, and violations are named. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "rules/domain.h"
#include "tests/support/suite.h"

static const rule_dtype dtypes[] = {RULE_I64, RULE_I32, RULE_I8, RULE_BOOL, RULE_F32, RULE_F64};

typedef struct drawn {
  rule_domain d;
  double exclude[8];
  rule_dtype dtype;
  rule_shape shape;
} drawn;

/* A domain that is drawn; whether anything is inside. */
static bool draw_domain(iso_rng *rng, drawn *x, rule_dtype dtype, const rule_shape *shape) {
  char why[128] = "";
  x->d = rule_domain_all("here");
  x->dtype = dtype;
  x->shape = *shape;
  if (iso_rng_below(rng, 4)) {
    x->d.low = (double)iso_rng_below(rng, 20) - 8;
    x->d.high = x->d.low + (double)iso_rng_below(rng, 24) + (iso_rng_below(rng, 2) ? 0.5 : 0);
  }
  for (x->d.n_exclude = 0; x->d.n_exclude < iso_rng_below(rng, 8);)
    x->exclude[x->d.n_exclude++] = (double)iso_rng_below(rng, 30) - 10;
  x->d.exclude = x->exclude;
  x->d.distinct = iso_rng_below(rng, 3) == 0;
  x->d.sorted = iso_rng_below(rng, 3) == 0;
  if (iso_rng_below(rng, 5) == 0) {
    x->d = rule_domain_all("here");
    x->d.mask = RULE_MASK | (unsigned)iso_rng_below(rng, 4) * RULE_MASK_LEFT;
  }
  const bool inside = rule_domain_settle(&x->d, x->exclude, dtype, shape, why, sizeof why);
  ck_assert(inside || *why);
  return inside;
}

static rule_shape draw_shape(iso_rng *rng) {
  rule_shape s = {.rank = (uint32_t)iso_rng_below(rng, 3)};
  for (uint32_t i = 0; i < s.rank; i++) s.dim[i] = 1 + (int64_t)iso_rng_below(rng, 5);
  return s;
}

START_TEST(what_is_drawn_is_inside) {
  iso_rng rng = iso_rng_new(1, (uint64_t)_i);
  const rule_shape shape = draw_shape(&rng);
  const rule_dtype dtype = dtypes[iso_rng_below(&rng, sizeof dtypes / sizeof *dtypes)];
  drawn x;
  rule_tensor *t;
  char why[160] = "", says[256];
  if (!draw_domain(&rng, &x, dtype, &shape)) return;
  ck_assert_int_eq(rule_tensor_new(dtype, &shape, &t, NULL), ISO_OK);
  for (unsigned k = 0; k < 12; k++) {
    for (int64_t i = 0; i < t->numel; i++)
      rule_tensor_set(t, i, (double)iso_rng_below(&rng, 60) - 30);
    const bool put = k % 2 ? rule_domain_draw(&x.d, -6, 20, k, &rng, t)
                           : rule_domain_fit(&x.d, -INFINITY, INFINITY, k, &rng, t);
    ck_assert_msg(put && rule_domain_admits(&x.d, t, why, sizeof why), "%d: %s: %s", _i,
                  rule_domain_print(&x.d, says, sizeof says), why);
  }
  rule_tensor_unref(t);
}
END_TEST

START_TEST(both_hold_of_what_is_inside_both) {
  iso_rng rng = iso_rng_new(2, (uint64_t)_i);
  const rule_shape shape = draw_shape(&rng);
  const rule_dtype dtype = dtypes[iso_rng_below(&rng, sizeof dtypes / sizeof *dtypes)];
  drawn x, y;
  bool empty;
  iso_arena arena;
  rule_tensor *t;
  if (!draw_domain(&rng, &x, dtype, &shape) || !draw_domain(&rng, &y, dtype, &shape)) return;
  iso_arena_init(&arena);
  const rule_domain *both = rule_domain_meet(&arena, &x.d, &y.d, dtype, &shape, &empty);
  ck_assert_int_eq(rule_tensor_new(dtype, &shape, &t, NULL), ISO_OK);
  if (!empty && !(both->mask && both->distinct)) { /* of two elements: not drawn */
    char says[256];
    ck_assert_msg(rule_domain_draw(both, -6, 20, (unsigned)_i, &rng, t), "%d: %s %s", _i,
                  rule_dtype_name(dtype), rule_domain_print(both, says, sizeof says));
    ck_assert(rule_domain_admits(&x.d, t, NULL, 0) && rule_domain_admits(&y.d, t, NULL, 0));
  }
  /* And nothing else: a small tensor inside both is inside their intersection. */
  for (int k = 0; k < 200; k++) {
    for (int64_t i = 0; i < t->numel; i++)
      rule_tensor_set(t, i, (double)iso_rng_below(&rng, 8) - 2);
    const bool inside =
        rule_domain_admits(&x.d, t, NULL, 0) && rule_domain_admits(&y.d, t, NULL, 0);
    ck_assert_int_eq(inside, !empty && rule_domain_admits(both, t, NULL, 0));
  }
  rule_tensor_unref(t);
  iso_arena_fini(&arena);
}
END_TEST

/* Where doubles are further apart than steps are long, looking for the next number ends all the
 * same. */
START_TEST(steps_end_where_doubles_are_far_apart) {
  double exclude[] = {0x1p60, 0x1.0000000000001p60, 1e300};
  const rule_shape shape = {.rank = 1, .dim = {3}};
  iso_rng rng = iso_rng_new(1, 7);
  for (int whole = 0; whole < 2; whole++) {
    rule_domain d = rule_domain_all("here");
    char why[128];
    rule_tensor *t;
    d.low = 0x1p60, d.high = whole ? 0x1p62 : 1e300, d.n_exclude = 3, d.distinct = true;
    const rule_dtype dtype = whole ? RULE_I64 : RULE_F64;
    ck_assert(rule_domain_settle(&d, exclude, dtype, &shape, why, sizeof why));
    ck_assert_int_eq(rule_tensor_new(dtype, &shape, &t, NULL), ISO_OK);
    for (int64_t i = 0; i < 3; i++) rule_tensor_set(t, i, 0x1p60);
    if (rule_domain_draw(&d, 0x1p60, 0x1p60, 0, &rng, t))
      ck_assert(rule_domain_admits(&d, t, NULL, 0));
    rule_tensor_unref(t);
  }
}
END_TEST

START_TEST(nothing_inside_is_said) {
  const rule_shape four = {.rank = 1, .dim = {4}};
  char why[128];
  double exclude[2] = {1, 2};
  rule_domain d = rule_domain_all("here");
  d.low = 1, d.high = 2, d.exclude = exclude, d.n_exclude = 2;
  ck_assert(!rule_domain_settle(&d, exclude, RULE_I64, &four, why, sizeof why));
  ck_assert_str_eq(why, "no value is left");
  d = rule_domain_all("here");
  d.low = 0, d.high = 2, d.distinct = true;
  ck_assert(!rule_domain_settle(&d, NULL, RULE_I32, &four, why, sizeof why));
  ck_assert_str_eq(why, "4 distinct elements are wanted of 3 values");
  d = rule_domain_all("here");
  d.mask = RULE_MASK, d.high = 0;
  ck_assert(!rule_domain_settle(&d, NULL, RULE_I32, &four, why, sizeof why));
  d = rule_domain_all("here");
  d.low = 2, d.high = 1;
  ck_assert(!rule_domain_settle(&d, NULL, RULE_F32, &four, why, sizeof why));
}
END_TEST

int main(void) {
  Suite *s = suite_create("domains of inputs");
  TCase *t = tcase_create("domain");
  tcase_add_loop_test(t, what_is_drawn_is_inside, 0, 400);
  tcase_add_loop_test(t, both_hold_of_what_is_inside_both, 0, 400);
  tcase_add_test(t, steps_end_where_doubles_are_far_apart);
  tcase_add_test(t, nothing_inside_is_said);
  suite_add_tcase(s, t);
  return run_suite(s);
}
