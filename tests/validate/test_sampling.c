/* How rules of a file are looked at (needs libtorch): the sizes, attributes and values that they
 * are sampled with, how small a counterexample becomes, and the verdict on rounding. */
#include "tests/support/suite.h"
#include "tests/validate/engine_test.h"
#include "validate/sample/instance_int.h"

static const rule *only_rule(rule_set **set, const char *text) {
  iso_error err = {0};
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", set, &err) == ISO_OK, "%s: %s", err.msg,
                text);
  return rule_set_at(*set, 0);
}

static val_finding check(const rule *r, uint64_t seed) {
  val_options o = val_options_default();
  val_engine *e = NULL;
  val_finding f;
  iso_error err = {0};
  o.seed = seed;
  ck_assert(val_new(&o, schemas, &e, &err) == ISO_OK);
  ck_assert_msg(val_check(e, r, &f, &err) == ISO_OK, "%s", err.msg);
  val_free(e);
  return f;
}

enum { SEEDS = 3 };

/* ---- counterexamples ---- */

static const struct {
  const char *rule;
  char what;
  int elements; /* at most, of all variables */
  double most;  /* the largest absolute value */
} small[] = {
    {"(rule r (var x f (N M)) (lhs (aten::relu x)) (rhs x))", 'v', 1, 1},
    {"(rule r (var x f (N M)) (var y f (N M)) (lhs (aten::sub.Tensor x y)) (rhs (aten::sub.Tensor "
     "y x)))",
     'v', 2, 1},
    {"(rule r (var x f (N)) (lhs (aten::roll x (list 1) (list 0))) (rhs x))", 'v', 2, 1},
    {"(rule r (var x f (N M)) (lhs (aten::t x)) (rhs (aten::reshape x (list M N))))", 'v', 4, 1},
    {"(rule r (var x f (A B C)) (lhs (aten::amax x (list 2))) (rhs (aten::amax (aten::relu x) "
     "(list 2))))",
     'v', 1, 1},
    {"(rule r (var x f (N)) (attr s float) (lhs (aten::mul.Scalar x s)) (rhs x))", 'v', 1, 1},
    {"(rule r (var x f (N)) (lhs (aten::mul.Scalar x 1.5)) (rhs x))", 'v', 1, 1},
    {"(rule r (var x f (N)) (lhs (aten::floor x)) (rhs x))", 'v', 1, 1},
    {"(rule r (var x f (N)) (lhs (aten::floor x)) (rhs (aten::trunc x)))", 'v', 1, 1},
    {"(rule r (var x f (N)) (lhs (aten::clamp_max x 5.0)) (rhs x))", 'v', 1, 11},
    {"(rule r (var x f (... K)) (lhs (aten::cumsum x -1)) (rhs x))", 'v', 2, 1},
    {"(rule r (var x f _) (lhs (aten::sum x)) (rhs (aten::mean x)))", 'v', 2, 1},
    {"(rule r (var x i (N)) (lhs (aten::remainder.Scalar x 3)) (rhs (aten::fmod.Scalar x 3)))", 'v',
     1, 1},
    {"(rule r (var x i (N)) (lhs (aten::to.dtype (aten::to.dtype x int8) int64)) (rhs x))", 'v', 1,
     255},
    {"(rule r (var x i (N)) (lhs (aten::abs x)) (rhs x))", 'v', 1, 1},
    {"(rule r (var x i (N)) (lhs (aten::mul.Tensor x x)) (rhs x) (where (in x 3 9)))", 'v', 1, 3},
    {"(rule r (var y f (N)) (var x i (N)) (lhs (aten::add.Tensor (aten::mul.Tensor x x) y)) (rhs "
     "(aten::add.Tensor x y)) (where (in x 3 9)))",
     'v', 2, 3},
    {"(rule r (var x f (_ _)) (lhs (aten::relu x)) (rhs x))", 'v', 1, 1},
    {"(rule r (var b b (N)) (lhs (aten::any b)) (rhs (aten::all b)))", 'v', 2, 1},
    {"(rule r (var w f (V D)) (var i i (N)) (lhs (aten::embedding w i)) (rhs (aten::neg "
     "(aten::embedding w i))))",
     'v', 2, 1},
    {"(rule r (var x f (N M)) (lhs (aten::sum.dim_IntList x (list 0))) (rhs (aten::sum.dim_IntList "
     "x (list 1))))",
     's', 2, 100},
    {"(rule r (var x f (N)) (lhs (aten::slice.Tensor x 0 0 K)) (rhs x) (where (divides N K) (> K "
     "-1)))",
     's', 1, 100},
    {"(rule r (var x f (N)) (lhs (aten::gt.Scalar x 0)) (rhs (aten::relu x)))", 'd', 1, 100},
};

START_TEST(counterexamples_are_small) {
  rule_set *set = NULL;
  const rule *r = only_rule(&set, small[_i].rule);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    val_finding f = check(r, seed);
    const val_counterexample *w = &f.counterexample;
    ck_assert_msg(f.verdict.status == RULE_REFUTED && w->found, "seed %d: %s (%s): %s", (int)seed,
                  rule_status_name(f.verdict.status), f.verdict.reason, small[_i].rule);
    ck_assert_msg(w->what == small[_i].what, "seed %d: differs in '%c': %s", (int)seed, w->what,
                  small[_i].rule);
    int64_t elements = 0;
    double most = 0;
    for (uint32_t v = 0; v < r->n_vars; v++) {
      elements += w->bind[v]->numel;
      for (int64_t i = 0; i < w->bind[v]->numel; i++)
        most = fmax(most, fabs(rule_tensor_get(w->bind[v], i)));
    }
    ck_assert_msg(elements <= small[_i].elements && most <= small[_i].most,
                  "seed %d: %d elements up to %g: %s", (int)seed, (int)elements, most,
                  small[_i].rule);
    val_finding_free(&f);
  }
  rule_set_free(set);
}
END_TEST

/* ---- sizes and attributes ---- */

static const struct {
  const char *rule;
  int at_least;      /* so many different first sizes of the first variable */
  int64_t low, high; /* all within these, and both met */
} sizes[] = {
    {"(rule r (var x f (N)) (lhs x) (rhs (aten::neg x)))", 5, 1, 8},
    {"(rule r (var x f (N)) (lhs x) (rhs (aten::neg x)) (where (= (mod N 2) 1) (< N 4)))", 2, 1, 3},
    {"(rule r (var x f (N)) (lhs x) (rhs (aten::neg x)) (where (= (mod N 3) 2)))", 3, 2, 14},
    {"(rule r (var x f (N)) (lhs x) (rhs (aten::neg x)) (where (= (* N N) 9)))", 1, 3, 3},
    {"(rule r (var x f (N)) (lhs x) (rhs (aten::neg x)) (where (= (+ (* N N) 6) (* 5 N))))", 2, 2,
     3},
    {"(rule r (var x f (N)) (lhs x) (rhs (aten::neg x)) (where (divides 4 N)))", 3, 4, 16},
    {"(rule r (var x f (N)) (lhs x) (rhs (aten::neg x)) (where (or (= N 2) (= N 7))))", 2, 2, 7},
    {"(rule r (var x f (N)) (lhs x) (rhs (aten::neg x)) (where (> N 100) (<= N 101)))", 1, 101,
     101},
    {"(rule r (var x f ((* 3 N))) (lhs x) (rhs (aten::neg x)) (where (< N 3)))", 2, 3, 6},
    {"(rule r (var x f (N)) (lhs x) (rhs (aten::narrow x 0 K 3)) (where (< N 6)))", 3, 3, 5},
};

START_TEST(sizes_meet_conditions_and_vary) {
  rule_set *set = NULL;
  const rule *r = only_rule(&set, sizes[_i].rule);
  bool seen[256] = {false};
  int different = 0;
  int64_t low = INT64_MAX, high = 0;
  val_problem *p = malloc(sizeof *p);
  iso_error err = {0};
  ck_assert(p != NULL);
  ck_assert_msg(val_problem_init(p, r, schemas, &err) == ISO_OK, "%s", err.msg);
  for (uint64_t seed = 0; seed < 150; seed++) {
    iso_rng rng = iso_rng_new(seed, 0);
    iso_arena a = {0};
    val_found at;
    ck_assert_msg(val_find_instance(engine, p, &rng, &a, &at, &err) == ISO_OK, "%s", err.msg);
    ck_assert_msg(at.found, "seed %d: no instance of %s: %s", (int)seed, sizes[_i].rule, at.why);
    const int64_t n = at.r.var[0].dim[0]->u.i;
    ck_assert_msg(n >= sizes[_i].low && n < 256, "size %d of %s", (int)n, sizes[_i].rule);
    different += !seen[n];
    seen[n] = true;
    low = n < low ? n : low;
    high = n > high ? n : high;
    iso_arena_fini(&a);
  }
  val_problem_fini(p);
  free(p);
  ck_assert_msg(different >= sizes[_i].at_least && low == sizes[_i].low &&
                    (high == sizes[_i].high || (high > sizes[_i].high && sizes[_i].high >= 8)),
                "%d sizes from %d to %d of %s", different, (int)low, (int)high, sizes[_i].rule);
  rule_set_free(set);
}
END_TEST

/* A rule that has no instance costs two searches, not a dozen; of one that has some, nearly
 * every seed gives one whose sizes differ and are not 1. */
START_TEST(an_instance_is_looked_for_within_bounds) {
  static const char never[] = "(rule r (var x f (N M)) (var y f (M N)) (lhs (aten::cat (list x "
                              "(aten::unsqueeze y 0)))) (rhs (aten::mm x y)))",
                    some[] = "(rule r (var x f (N M)) (var y f (M L)) (lhs (aten::mm x y)) (rhs "
                             "(aten::matmul x y)))";
  rule_set *set = NULL;
  rule_tensor *bind[2];
  iso_arena a = {0};
  iso_error err = {0};
  val_concrete at = {.bind = bind};
  const rule *r = only_rule(&set, never);
  iso_rng rng = iso_rng_new(1, 0);
  val_problem *p = malloc(sizeof *p);
  val_found found;
  ck_assert(p && val_problem_init(p, r, schemas, &err) == ISO_OK);
  ck_assert(val_find_instance(engine, p, &rng, &a, &found, &err) == ISO_OK && !found.found);
  ck_assert_uint_eq(found.tries, 400);
  val_problem_fini(p);
  free(p);
  ck_assert(val_instance(engine, r, 0, &a, &at, &err) == ISO_OK && !at.found);
  rule_set_free(set);
  int accidents = 0;
  r = only_rule(&set, some);
  for (uint64_t seed = 0; seed < 20; seed++) {
    ck_assert(val_instance(engine, r, seed, &a, &at, &err) == ISO_OK);
    ck_assert_msg(at.found, "seed %d", (int)seed);
    const rule_shape *x = &bind[0]->shape, *y = &bind[1]->shape;
    ck_assert(x->dim[1] == y->dim[0]);
    accidents += x->dim[0] == 1 || x->dim[1] == 1 || y->dim[1] == 1 || x->dim[0] == x->dim[1] ||
                 x->dim[0] == y->dim[1] || x->dim[1] == y->dim[1];
    rule_tensor_unref(bind[0]);
    rule_tensor_unref(bind[1]);
  }
  ck_assert_int_le(accidents, 4);
  iso_arena_fini(&a);
  rule_set_free(set);
}
END_TEST

/* Wrong in a part of the range that the conditions leave, which a draw would seldom meet. */
static const char *const narrow[] = {
    "(rule r (var x f (N)) (attr s float) (lhs (aten::add.Scalar x s)) (rhs x) (where (< (* s s) "
    "1e-12)))",
    "(rule r (var x f (N)) (attr s float) (lhs (aten::clamp x s)) (rhs (aten::relu x)) (where (<= "
    "(* s s) 1e-9)))",
    "(rule r (var x f (N)) (attr s float) (lhs (aten::mul.Scalar x s)) (rhs (aten::mul.Scalar x "
    "0.31)) (where (> s 0.3) (< s 0.4)))",
    "(rule r (var x f (N)) (attr s float) (lhs (aten::mul.Scalar x s)) (rhs x) (where (= (* s s) "
    "1)))",
    "(rule r (var x f (N)) (attr k int) (lhs (aten::mul.Scalar x k)) (rhs (aten::mul.Scalar x -1)) "
    "(where (= (mod k -3) -1) (< k 3) (> k -3)))",
    "(rule r (var x f (N M)) (lhs (aten::t x)) (rhs (aten::reshape x (list M N))) (where (= (mod N "
    "2) 1) (< N 4)))",
    "(rule r (var x f (N)) (lhs (aten::slice.Tensor x 0 0 K)) (rhs x) (where (>= K (- N 1))))",
    "(rule r (var x f (N)) (attr k int) (lhs (aten::add.Scalar x (* k k))) (rhs (aten::add.Scalar "
    "x k)) (where (<= (* k k) (+ k 2))))",
    "(rule r (var x f (N)) (lhs (aten::mul.Scalar x s)) (rhs x) (where (= s (/ N 4)) (< N 4)))",
    "(rule r (var w f (V)) (var i i (N)) (lhs (aten::take w i)) (rhs (aten::take w (aten::clamp i "
    "0))))",
    "(rule r (var w f (V)) (var i i (N)) (lhs (aten::index_select w 0 i)) (rhs (aten::index_select "
    "w 0 (aten::clamp_max i (- V 2)))) (where (> V 1)))",
    "(rule r (var x i (N)) (lhs (aten::remainder.Scalar x 10)) (rhs x) (where (in x 0 11)))",
    "(rule r (var x f (N)) (var y f (M)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor x "
    "(aten::slice.Tensor y 0 0 1))))",
};

START_TEST(what_is_seldom_wrong_is_refuted) {
  rule_set *set = NULL;
  const rule *r = only_rule(&set, narrow[_i]);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    val_finding f = check(r, seed);
    ck_assert_msg(f.verdict.status == RULE_REFUTED, "seed %d: %s (%s): %s", (int)seed,
                  rule_status_name(f.verdict.status), f.verdict.reason, narrow[_i]);
    val_finding_free(&f);
  }
  rule_set_free(set);
}
END_TEST

/* True only of the numbers that the names stand for: an integer that an equation defines, a real
 * number, a size that is none below 1. */
static const char *const right[] = {
    "(rule r (var x i (N)) (lhs (aten::mul.Scalar x k)) (rhs (aten::add.Tensor x x)) (where (= k "
    "(+ 1 1))))",
    "(rule r (var x i (N)) (attr k float) (lhs (aten::mul.Scalar x k)) (rhs (aten::mul.Scalar x "
    "2.0)) (where (= k 2)))",
    "(rule r (var x f (N)) (lhs (aten::neg x)) (rhs (aten::mul.Scalar x (- 0 N))) (where (= (* N "
    "N) 1)))",
};

START_TEST(names_are_of_their_kind) {
  rule_set *set = NULL;
  const rule *r = only_rule(&set, right[_i]);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    val_finding f = check(r, seed);
    ck_assert_msg(f.verdict.status == RULE_PROVED || f.verdict.status == RULE_TESTED,
                  "seed %d: %s (%s): %s", (int)seed, rule_status_name(f.verdict.status),
                  f.verdict.reason, right[_i]);
    val_finding_free(&f);
  }
  rule_set_free(set);
}
END_TEST

/* ---- rounding ---- */

static const struct {
  const char *want, *lhs, *rhs;
} floats[] = {
    {"exact", "(aten::add.Tensor x y)", "(aten::add.Tensor y x)"},
    {"exact", "(aten::neg (aten::neg x))", "x"},
    {"exact", "(aten::mul.Scalar x 0.5)", "(aten::div.Scalar x 2.0)"},
    {"exact", "(aten::gt.Tensor x y)", "(aten::lt.Tensor y x)"},
    {"exact", "(aten::t (aten::t (aten::gelu x)))", "(aten::gelu x)"},
    {"rounding", "(aten::add.Tensor (aten::add.Tensor x y) z)",
     "(aten::add.Tensor x (aten::add.Tensor y z))"},
    {"rounding", "(aten::mul.Scalar (aten::mul.Scalar x 0.3) 3.0)",
     "(aten::mul.Scalar (aten::mul.Scalar x 3.0) 0.3)"},
    {"rounding", "(aten::sum.dim_IntList x (list 1))",
     "(aten::sum.dim_IntList (aten::flip x (list 1)) (list 1))"},
    {"rounding", "(aten::gelu (aten::cat (list x y) 1))",
     "(aten::cat (list (aten::gelu x) (aten::gelu y)) 1)"},
    {"unsafe", "(aten::div.Tensor (aten::mul.Tensor x x) x)", "x"},
    {"unsafe", "(aten::exp (aten::log x))", "x"},
    {"unsafe", "(aten::log (aten::exp x))", "x"},
    {"unsafe", "(aten::sub.Tensor (aten::add.Tensor x y) y)", "x"},
    {"unsafe", "(aten::sqrt (aten::mul.Tensor x x))", "(aten::abs x)"},
    {"unsafe", "(aten::expm1 x)", "(aten::sub.Scalar (aten::exp x) 1)"},
    {"unsafe", "(aten::gt.Scalar (aten::sub.Tensor x y) 0)",
     "(aten::gt.Scalar (aten::mul.Scalar (aten::sub.Tensor x y) 1e-300) 0)"},
    {"unsafe", "(aten::div.Tensor (aten::add.Tensor x y) z)",
     "(aten::add.Tensor (aten::div.Tensor x z) (aten::div.Tensor y z))"},
    {"unsafe",
     "(aten::div.Tensor (aten::exp x) (aten::sum.dim_IntList (aten::exp x) (list 1) true))",
     "(aten::softmax.int x 1)"},
};

START_TEST(rounding_is_told_apart) {
  char text[1000];
  snprintf(text, sizeof text,
           "(rule r (var x f (N M)) (var y f (N M)) (var z f (N M)) (lhs %s) (rhs %s))",
           floats[_i].lhs, floats[_i].rhs);
  rule_set *set = NULL;
  const rule *r = only_rule(&set, text);
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    val_finding f = check(r, seed);
    ck_assert_msg(f.float_class && !strcmp(f.float_class, floats[_i].want),
                  "seed %d: %s, float %s: %s", (int)seed, rule_status_name(f.verdict.status),
                  f.float_class ? f.float_class : "none", text);
    val_finding_free(&f);
  }
  rule_set_free(set);
}
END_TEST

#define N(list) (int)(sizeof list / sizeof *list)

int main(void) {
  Suite *s = suite_create("sampling");
  TCase *t = tcase_create("sampling");
  tcase_add_checked_fixture(t, engine_setup, engine_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, counterexamples_are_small, 0, N(small));
  tcase_add_test(t, an_instance_is_looked_for_within_bounds);
  tcase_add_loop_test(t, sizes_meet_conditions_and_vary, 0, N(sizes));
  tcase_add_loop_test(t, what_is_seldom_wrong_is_refuted, 0, N(narrow));
  tcase_add_loop_test(t, names_are_of_their_kind, 0, N(right));
  tcase_add_loop_test(t, rounding_is_told_apart, 0, N(floats));
  suite_add_tcase(s, t);
  /* One process: starting libtorch for each rule would take minutes. */
  return run_suite_here(s);
}
