/* Saturation in a comparison: outputs that only several rules join, through terms that stand in
 * neither graph. The oracle decides the rules that are given and none that the search proposes, so
 * that nothing else can join them. */
#include "tests/synth/small_graphs.h"
#include "tests/support/suite.h"

#define AB(v) "(var " v " f (A B)) "
#define RULE(name, vars, l, r) "(rule given-" name " " vars "(lhs " l ") (rhs " r "))\n"
#define ADD(x, y) "(aten::add.Tensor " x " " y ")"
#define MUL(x, y) "(aten::mul.Tensor " x " " y ")"
#define NEG(x) "(aten::neg " x ")"
#define RELU(x) "(aten::relu " x ")"

#define COMMUTE_ADD RULE("commute-add", AB("x") AB("y"), ADD("x", "y"), ADD("y", "x"))
#define COMMUTE_MUL RULE("commute-mul", AB("x") AB("y"), MUL("x", "y"), MUL("y", "x"))
#define ASSOC_ADD \
  RULE("assoc-add", AB("x") AB("y") AB("z"), ADD(ADD("x", "y"), "z"), ADD("x", ADD("y", "z")))
#define ASSOC_MUL \
  RULE("assoc-mul", AB("x") AB("y") AB("z"), MUL(MUL("x", "y"), "z"), MUL("x", MUL("y", "z")))
#define DISTRIBUTE \
  RULE("distribute", AB("x") AB("y") AB("z"), MUL("x", ADD("y", "z")), \
       ADD(MUL("x", "y"), MUL("x", "z")))
#define MINUS_ONE RULE("proved-minus-one", AB("x"), NEG("x"), MUL("x", "-1"))
#define SCALE_SUM \
  RULE("scale-sum", AB("x") AB("y"), MUL(ADD("x", "y"), "-1"), ADD(MUL("x", "-1"), MUL("y", "-1")))
#define TRUE_RULES COMMUTE_ADD COMMUTE_MUL ASSOC_ADD ASSOC_MUL DISTRIBUTE MINUS_ONE SCALE_SUM

static void given(const char *rules) {
  rule_set_free(w.known);
  w.known = parse(rules);
  w.oracle.judge = JUDGE_GIVEN;
}

/* -(x + b) against -x + -b: a product with -1 stands in neither. */
static void negated_sum(void) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(4, 3), 0, 1);
  const uint32_t lx = input(&w.l, x), lb = weight(&w.l, "b", b);
  output(&w.l, "y", neg(&w.l, add(&w.l, lx, lb)));
  const uint32_t rx = input(&w.r, x), rb = weight(&w.r, "b", b);
  output(&w.r, "y", add(&w.r, neg(&w.r, rx), neg(&w.r, rb)));
}

START_TEST(outputs_meet_through_terms_of_neither_graph) {
  given(MINUS_ONE SCALE_SUM);
  negated_sum();
  expect(SYNTH_EQUIVALENT);
  ck_assert_uint_eq(w.res->n_saturated, 1);
  ck_assert_uint_gt(w.res->n_grown, 0);
  ck_assert_uint_eq(n_needed(), 2);
}
END_TEST

START_TEST(the_weakest_rule_is_the_evidence) {
  given(MINUS_ONE RULE("proved-scale-sum", AB("x") AB("y"), MUL(ADD("x", "y"), "-1"),
                       ADD(MUL("x", "-1"), MUL("y", "-1"))));
  negated_sum();
  expect(SYNTH_EQUIVALENT);
  ck_assert_int_eq(w.res->evidence, RULE_PROVED);
  given(MINUS_ONE SCALE_SUM);
  expect(SYNTH_EQUIVALENT);
  ck_assert_int_eq(w.res->evidence, RULE_TESTED);
  w.options.require_proved = true;
  expect(SYNTH_UNDECIDED);
}
END_TEST

START_TEST(without_saturation_nothing_joins_them) {
  given(MINUS_ONE SCALE_SUM);
  negated_sum();
  w.options.disable = SYNTH_SATURATE;
  expect(SYNTH_UNDECIDED);
  ck_assert_uint_eq(w.res->n_grown, 0);
}
END_TEST

START_TEST(a_missing_step_leaves_a_gap) {
  given(SCALE_SUM COMMUTE_ADD COMMUTE_MUL);
  negated_sum();
  expect(SYNTH_UNDECIDED);
  given(MINUS_ONE);
  expect(SYNTH_UNDECIDED);
}
END_TEST

START_TEST(rules_of_other_shapes_do_not_apply) {
  given(MINUS_ONE "(rule given-other (var x f (2 2)) (var y f (2 2)) (lhs " MUL(
      ADD("x", "y"), "-1") ") (rhs " ADD(MUL("x", "-1"), MUL("y", "-1")) "))");
  negated_sum();
  expect(SYNTH_UNDECIDED);
}
END_TEST

START_TEST(conditions_are_asked_at_each_step) {
  given(MINUS_ONE "(rule given-if (var x f (A B)) (var y f (A B)) (where (= A B)) (lhs " MUL(
      ADD("x", "y"), "-1") ") (rhs " ADD(MUL("x", "-1"), MUL("y", "-1")) "))");
  negated_sum();
  expect(SYNTH_UNDECIDED);
  given(MINUS_ONE "(rule given-if (var x f (A B)) (var y f (A B)) (where (= A (+ B 1))) (lhs " MUL(
      ADD("x", "y"), "-1") ") (rhs " ADD(MUL("x", "-1"), MUL("y", "-1")) "))");
  expect(SYNTH_EQUIVALENT);
}
END_TEST

START_TEST(limits_are_named) {
  given(TRUE_RULES);
  negated_sum();
  w.options.saturate_nodes = 1;
  expect(SYNTH_UNDECIDED);
  ck_assert_ptr_nonnull(strstr(w.res->reason, "limit of e-nodes"));
  w.options.saturate_nodes = 1000;
  w.options.saturate_iterations = 1;
  expect(SYNTH_UNDECIDED);
  ck_assert_ptr_nonnull(strstr(w.res->reason, "limit of iterations"));
}
END_TEST

/* Equal for all numbers, and joined by a rule that is false: it must not be used. */
START_TEST(a_false_rule_joins_nothing) {
  given(RULE("false", AB("x"), RELU("x"), "x"));
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1);
  const uint32_t lx = input(&w.l, x), rx = input(&w.r, x);
  output(&w.l, "y", neg(&w.l, relu(&w.l, mul(&w.l, lx, lx))));
  output(&w.r, "y", neg(&w.r, mul(&w.r, rx, rx)));
  expect(SYNTH_UNDECIDED);
}
END_TEST

START_TEST(false_rules_beside_true_ones_are_left_out) {
  given(RULE("false-1", AB("x"), NEG("x"), "x")
            RULE("false-2", AB("x") AB("y"), ADD("x", "y"), MUL("x", "y")) MINUS_ONE SCALE_SUM);
  negated_sum();
  expect(SYNTH_EQUIVALENT);
  for (size_t i = 0; i < w.res->n_rules; i++)
    ck_assert(!w.res->rule[i].needed || !strstr(w.res->rule[i].what->name, "false"));
}
END_TEST

/* ---- expressions: true pairs by steps of rules, false ones by a slip ---- */

enum { LEAF_A, LEAF_B, LEAF_C, E_NEG, E_MINUS, E_RELU, E_ADD, E_MUL };
typedef struct ex {
  int op;
  const struct ex *a, *b;
} ex;

static const ex *node(int op, const ex *a, const ex *b) {
  ex *e = iso_arena_alloc(&w.arena, sizeof *e);
  *e = (ex){op, a, b};
  return e;
}

static size_t size_of(const ex *e) {
  return e->op < E_NEG ? 0 : 1 + size_of(e->a) + (e->b ? size_of(e->b) : 0);
}

static double eval(const ex *e, const double *at) {
  const double a = e->a ? eval(e->a, at) : 0, b = e->b ? eval(e->b, at) : 0;
  switch (e->op) {
  case E_NEG:
  case E_MINUS: return -a;
  case E_RELU: return a > 0 ? a : 0;
  case E_ADD: return a + b;
  case E_MUL: return a * b;
  default: return at[e->op];
  }
}

static const ex *random_ex(iso_rng *r, size_t ops) {
  if (ops == 0) return node((int)iso_rng_below(r, 3), NULL, NULL);
  const int op = iso_rng_below(r, 4) ? E_ADD + (int)(iso_rng_below(r, 3) == 0)
                                     : E_NEG + (int)iso_rng_below(r, 3);
  if (op < E_ADD) return node(op, random_ex(r, ops - 1), NULL);
  const size_t left = iso_rng_below(r, ops);
  return node(op, random_ex(r, left), random_ex(r, ops - 1 - left));
}

/* One rule at the top, if one fits. */
static const ex *rewrite(const ex *e, uint64_t which) {
  const ex *a = e->a, *b = e->b;
  const bool two = e->op == E_ADD || e->op == E_MUL;
  switch (which) {
  case 0: return two ? node(e->op, b, a) : e;
  case 1: return two && a->op == e->op ? node(e->op, a->a, node(e->op, a->b, b)) : e;
  case 2: return two && b->op == e->op ? node(e->op, node(e->op, a, b->a), b->b) : e;
  case 3: return e->op == E_NEG ? node(E_MINUS, a, NULL) : e;
  case 4: return e->op == E_MINUS ? node(E_NEG, a, NULL) : e;
  case 5:
    return e->op == E_MUL && b->op == E_ADD
               ? node(E_ADD, node(E_MUL, a, b->a), node(E_MUL, a, b->b))
               : e;
  case 6:
    return e->op == E_MINUS && a->op == E_ADD
               ? node(E_ADD, node(E_MINUS, a->a, NULL), node(E_MINUS, a->b, NULL))
               : e;
  default: return e;
  }
}

static const ex *rewrite_at(const ex *e, size_t at, uint64_t which) {
  if (at == 0) return rewrite(e, which);
  if (e->op < E_NEG) return e;
  const size_t left = size_of(e->a);
  if (at - 1 < left || !e->b) return node(e->op, rewrite_at(e->a, at - 1, which), e->b);
  return node(e->op, e->a, rewrite_at(e->b, at - 1 - left, which));
}

/* One operator over the terms from `from` on, in this order. */
static const ex *random_tree(iso_rng *r, int op, const ex *const *term, size_t n) {
  if (n == 1) return term[0];
  const size_t left = 1 + iso_rng_below(r, n - 1);
  return node(op, random_tree(r, op, term, left), random_tree(r, op, term + left, n - left));
}

/* A sum or a product, and the same in another order. */
static void shuffled(iso_rng *r, const ex **left, const ex **right) {
  enum { MOST_TERMS = 5 };
  const size_t n = 3 + iso_rng_below(r, MOST_TERMS - 2);
  const int op = iso_rng_below(r, 2) ? E_ADD : E_MUL;
  const ex *term[MOST_TERMS];
  for (size_t i = 0; i < n; i++) {
    term[i] = node((int)(i % 3), NULL, NULL);
    if (i >= 3) term[i] = node(E_RELU, term[i], NULL);
  }
  *left = random_tree(r, op, term, n);
  for (size_t i = n; i > 1; i--) {
    const size_t k = iso_rng_below(r, i);
    const ex *t = term[k];
    term[k] = term[i - 1];
    term[i - 1] = t;
  }
  *right = random_tree(r, op, term, n);
}

/* The other side of a pair, by random steps of rules. */
static const ex *by_steps(iso_rng *rng, const ex *l) {
  enum { MOST = 11, STEPS = 8, TRIES = 20 };
  const ex *r = l;
  for (uint64_t step = 2 + iso_rng_below(rng, STEPS); step > 0; step--) {
    const ex *next = r;
    for (int tries = 0; tries < TRIES && next == r; tries++) {
      const size_t at = iso_rng_below(rng, size_of(r));
      next = rewrite_at(r, at, iso_rng_below(rng, 7));
    }
    if (size_of(next) <= MOST) r = next;
  }
  return r;
}

static uint32_t build(graph *g, const ex *e, const uint32_t *leaf) {
  const uint32_t a = e->a ? build(g, e->a, leaf) : 0, b = e->b ? build(g, e->b, leaf) : 0;
  switch (e->op) {
  case E_NEG: return neg(g, a);
  case E_MINUS: return op(g, "aten::mul.Tensor", v(a), num(-1), NULL);
  case E_RELU: return relu(g, a);
  case E_ADD: return add(g, a, b);
  case E_MUL: return mul(g, a, b);
  default: return leaf[e->op];
  }
}

static void put(graph *g, const ex *e) {
  static const char *const name[] = {"", "b", "c"};
  uint32_t leaf[3];
  for (uint64_t k = 0; k < 3; k++) {
    rule_tensor *t = noise(10 + k, SHAPE(3, 2), 0, 1);
    leaf[k] = k ? weight(g, name[k], t) : input(g, t);
  }
  output(g, "y", build(g, e, leaf));
}

/* Whether the two are one function, as far as eight points tell. */
static bool equal_at_points(const ex *l, const ex *r) {
  iso_rng rng = iso_rng_new(5, 5);
  for (int k = 0; k < 8; k++) {
    const double at[3] = {iso_rng_normal(&rng), iso_rng_normal(&rng), iso_rng_normal(&rng)};
    const double x = eval(l, at), y = eval(r, at);
    if (fabs(x - y) > 1e-9 * (fabs(x) + fabs(y) + 1)) return false;
  }
  return true;
}

static synth_verdict verdict_of(const ex *l, const ex *r) {
  iso_error err = {0};
  graph_init(&w.l, "left.json");
  graph_init(&w.r, "right.json");
  put(&w.l, l);
  put(&w.r, r);
  ck_assert_msg(try_compare(&w.l, &w.r, &err) == ISO_OK, "%s", err.msg);
  const synth_verdict verdict = w.res->verdict;
  for (size_t i = 0; i < w.n_tensors; i++) rule_tensor_unref(w.tensor[i]);
  w.n_tensors = 0;
  return verdict;
}

/* A leaf or an operator becomes another one. */
static const ex *slip(iso_rng *r, const ex *e) {
  if (e->op < E_NEG) return node((e->op + 1) % 3, NULL, NULL);
  if (e->b && iso_rng_below(r, 3) == 0) return node(e->op == E_ADD ? E_MUL : E_ADD, e->a, e->b);
  if (e->b && iso_rng_below(r, 2)) return node(e->op, e->a, slip(r, e->b));
  return node(e->op, slip(r, e->a), e->b);
}

/* The sides' terms are too large for the oracle, which decides the given rules alone. */
START_TEST(steps_of_rules_are_found_and_slips_are_not_joined) {
  enum { CASES = 1000, OPS = 5 };
  given(TRUE_RULES RULE("false", AB("x") AB("y") AB("z"), MUL("x", ADD("y", "z")),
                        ADD(MUL("x", "y"), "z")));
  iso_rng rng = iso_rng_new(2024, 1);
  size_t joined = 0, grown = 0, twins = 0;
  for (int k = 0; k < CASES; k++) {
    const ex *l, *r;
    if (k % 2) shuffled(&rng, &l, &r);
    else r = by_steps(&rng, l = random_ex(&rng, 3 + iso_rng_below(&rng, OPS - 2)));
    const synth_verdict got = verdict_of(l, r);
    ck_assert_msg(got == SYNTH_EQUIVALENT, "case %d: %s: %s", k, verdict_name(got), w.res->reason);
    joined += w.res->n_saturated > 0;
    grown += w.res->n_grown;
    const ex *wrong = slip(&rng, r);
    if (equal_at_points(l, wrong)) continue;
    twins++;
    ck_assert_msg(verdict_of(l, wrong) != SYNTH_EQUIVALENT, "case %d: a slip is equivalent", k);
  }
  ck_assert_uint_gt(joined, CASES / 4); /* of the others each step joins tensors of the graphs */
  ck_assert_uint_gt(grown, 0);
  ck_assert_uint_gt(twins, CASES / 2);
}
END_TEST

int main(void) {
  Suite *s = suite_create("saturate");
  TCase *t = tcase_create("saturate");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, outputs_meet_through_terms_of_neither_graph);
  tcase_add_test(t, the_weakest_rule_is_the_evidence);
  tcase_add_test(t, without_saturation_nothing_joins_them);
  tcase_add_test(t, a_missing_step_leaves_a_gap);
  tcase_add_test(t, rules_of_other_shapes_do_not_apply);
  tcase_add_test(t, conditions_are_asked_at_each_step);
  tcase_add_test(t, limits_are_named);
  tcase_add_test(t, a_false_rule_joins_nothing);
  tcase_add_test(t, false_rules_beside_true_ones_are_left_out);
  tcase_add_test(t, steps_of_rules_are_found_and_slips_are_not_joined);
  suite_add_tcase(s, t);
  return run_suite(s);
}
