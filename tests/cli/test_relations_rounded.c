/* Whether a parameter was rounded from the value of a term: what was is taken, whatever dtypes the
 * loader computed in; a number, an operand or an element that is another one is not. */
#include <float.h>

#include "cli/config/relations.h"
#include "egraph/base/rng.h"
#include "rules/names.h"
#include "tests/support/small_operators.h"
#include "tests/support/suite.h"

enum { SEEDS = 12, SIDE = 48, ALL = SIDE * SIDE };
static const rule_dtype dtypes[] = {RULE_BF16, RULE_F16, RULE_F32};

/* parameters: those of rule_oracle.call. */
static iso_code run_call(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                         rule_tensor **out, size_t cap, size_t *n_out, iso_error *err) {
  (void)ctx, (void)float64, (void)cap, (void)err;
  out[0] = run_op(call, bind);
  *n_out = 1;
  return out[0] ? ISO_OK : ISO_UNSUPPORTED;
}

/* stored = scale * w * v + shift * w, of two captured parameters and two numbers. */
typedef struct fold {
  iso_arena arena;
  rule_dtype dtype;
  rule_tensor *value[2], *exact, *stored;
  double scale, shift;
  const rule_term *term;
} fold;

static double in_dtype(rule_dtype d, double x) {
  rule_tensor *t = make_as(d, (rule_shape){0});
  rule_tensor_set(t, 0, x);
  const double y = rule_tensor_get(t, 0);
  rule_tensor_unref(t);
  return y;
}

static const rule_term *term_of(fold *f) {
  iso_arena *a = &f->arena;
  const rule_term *w = rule_var(a, 0), *one = rule_int(a, 1);
  const rule_term *wv[2] = {w, rule_var(a, 1)}, *shifted[2] = {w, rule_float(a, f->shift)};
  const rule_term *scaled[2] = {rule_op(a, OP_MUL_TENSOR, wv, 2), rule_float(a, f->scale)};
  const rule_term *sum[3] = {rule_op(a, OP_MUL_TENSOR, scaled, 2),
                             rule_op(a, OP_MUL_TENSOR, shifted, 2), one};
  return rule_op(a, OP_ADD_TENSOR, sum, 3);
}

static double at(const fold *f, double scale, double shift, int64_t i) {
  const double w = rule_tensor_get(f->value[0], i), v = rule_tensor_get(f->value[1], i);
  return scale * w * v + shift * w;
}

static void begin(fold *f, rule_dtype dtype, iso_rng *rng) {
  *f = (fold){.dtype = dtype};
  iso_arena_init(&f->arena);
  f->scale = 0.3 + iso_rng_uniform(rng);
  f->shift = 0.1 + iso_rng_uniform(rng);
  for (int k = 0; k < 2; k++) {
    f->value[k] = make(SHAPE(SIDE, SIDE));
    for (int64_t i = 0; i < ALL; i++)
      rule_tensor_set(f->value[k], i, in_dtype(dtype, iso_rng_normal(rng)));
  }
  f->exact = make(SHAPE(SIDE, SIDE));
  f->stored = make_as(dtype, SHAPE(SIDE, SIDE));
  f->term = term_of(f);
  for (int64_t i = 0; i < ALL; i++) {
    const double x = at(f, f->scale, f->shift, i);
    rule_tensor_set(f->exact, i, x);
    rule_tensor_set(f->stored, i, x);
  }
}

static void end(fold *f) {
  for (int k = 0; k < 2; k++) rule_tensor_unref(f->value[k]);
  rule_tensor_unref(f->exact);
  rule_tensor_unref(f->stored);
  iso_arena_fini(&f->arena);
}

static bool may_be_rounded(const fold *f, double *off) {
  cap_node node[2] = {{.kind = CAP_PARAMETER}, {.kind = CAP_PARAMETER}};
  cap_graph g = {.node = node, .n_nodes = 2};
  const rule_oracle oracle = {.call = run_call};
  const relations_held h = {&g, f->term, f->value, &oracle};
  iso_error err;
  bool fine;
  ck_assert_msg(relations_rounded(&h, f->stored, f->exact, &fine, off, &err) == ISO_OK, "%s",
                err.msg);
  return fine;
}

/* The largest distance, of the largest element. */
static double distance(const fold *f) {
  double far = 0, most = 0;
  for (int64_t i = 0; i < ALL; i++) {
    const double x = rule_tensor_get(f->stored, i);
    far = fmax(far, fabs(x - rule_tensor_get(f->exact, i)));
    most = fmax(most, fabs(x));
  }
  return far / most;
}

static void ask(const fold *f, bool want, const char *what) {
  double off;
  const bool fine = may_be_rounded(f, &off);
  ck_assert_msg(fine == want, "%s in %s is %s", what, rule_dtype_name(f->dtype),
                fine ? "taken" : "refused");
  if (!fine) ck_assert_double_le(fabs(off - distance(f)), 1e-12);
}

#define EACH_FOLD(f, rng) \
  fold f; \
  iso_rng rng = iso_rng_new((uint64_t)_i, 3); \
  begin(&f, dtypes[_i % 3], &rng)

START_TEST(what_was_rounded_once_is_taken) {
  EACH_FOLD(f, rng);
  ask(&f, true, "a value that was rounded once");
  end(&f);
}
END_TEST

/* Every step rounded to the dtype, numbers too or not. */
START_TEST(what_was_computed_in_its_dtype_is_taken) {
  for (int numbers = 0; numbers < 2; numbers++) {
    EACH_FOLD(f, rng);
    const rule_dtype d = f.dtype;
    const double scale = numbers ? in_dtype(d, f.scale) : f.scale,
                 shift = numbers ? in_dtype(d, f.shift) : f.shift;
    for (int64_t i = 0; i < ALL; i++) {
      const double w = rule_tensor_get(f.value[0], i), v = rule_tensor_get(f.value[1], i);
      const double wv = in_dtype(d, in_dtype(d, w * v) * scale), ws = in_dtype(d, w * shift);
      rule_tensor_set(f.stored, i, wv + ws);
    }
    ask(&f, true, numbers ? "a value of rounded numbers" : "a value of rounded steps");
    end(&f);
  }
}
END_TEST

/* By as much as hides in each element of bfloat16, or far less in wider dtypes. */
START_TEST(another_number_is_refused) {
  for (int which = 0; which < 2; which++) {
    EACH_FOLD(f, rng);
    const double by = f.dtype == RULE_F32 ? 1 + 1e-5 : 1.01;
    for (int64_t i = 0; i < ALL; i++)
      rule_tensor_set(f.stored, i,
                      at(&f, which ? f.scale : f.scale * by, which ? f.shift * by : f.shift, i));
    ask(&f, false, which ? "another shift" : "another scale");
    end(&f);
  }
}
END_TEST

START_TEST(another_operand_is_refused) {
  EACH_FOLD(f, rng);
  for (int64_t i = 0; i < ALL; i++) {
    const double w = rule_tensor_get(f.value[0], i),
                 v = rule_tensor_get(f.value[1], i) * (f.dtype == RULE_F32 ? 1 + 1e-5 : 1.01);
    rule_tensor_set(f.stored, i, f.scale * w * v + f.shift * w);
  }
  ask(&f, false, "another operand");
  end(&f);
}
END_TEST

/* One of them by a dozen roundings; and one that is no number. */
START_TEST(another_element_is_refused) {
  EACH_FOLD(f, rng);
  const int64_t i = (int64_t)iso_rng_below(&rng, ALL);
  const double x = rule_tensor_get(f.stored, i);
  rule_tensor_set(f.stored, i, x + 24 * rule_dtype_unit(f.dtype, fabs(x) + 1));
  ask(&f, false, "another element");
  rule_tensor_set(f.stored, i, NAN);
  double off;
  ck_assert(!may_be_rounded(&f, &off));
  end(&f);
}
END_TEST

START_TEST(other_numbers_are_refused) {
  EACH_FOLD(f, rng);
  for (int64_t i = 0; i < ALL; i++) rule_tensor_set(f.stored, i, iso_rng_normal(&rng));
  ask(&f, false, "noise");
  rule_tensor *few = make_as(f.dtype, SHAPE(SIDE)), *was = f.stored;
  double off;
  f.stored = few;
  ck_assert(!may_be_rounded(&f, &off));
  f.stored = was;
  rule_tensor_unref(few);
  end(&f);
}
END_TEST

int main(void) {
  Suite *s = suite_create("relations_rounded");
  TCase *c = tcase_create("relations_rounded");
  tcase_add_loop_test(c, what_was_rounded_once_is_taken, 0, SEEDS);
  tcase_add_loop_test(c, what_was_computed_in_its_dtype_is_taken, 0, SEEDS);
  tcase_add_loop_test(c, another_number_is_refused, 0, SEEDS);
  tcase_add_loop_test(c, another_operand_is_refused, 0, SEEDS);
  tcase_add_loop_test(c, another_element_is_refused, 0, SEEDS);
  tcase_add_loop_test(c, other_numbers_are_refused, 0, SEEDS);
  suite_add_tcase(s, c);
  return run_suite(s);
}
