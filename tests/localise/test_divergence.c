/* Where two graphs part: the operator at fault is named, once for each change, with its attribute
 * and a picture of the difference. */
#include "tests/synth/small_graphs.h"
#include "tests/support/suite.h"

START_TEST(another_operator_is_named) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b);
  const uint32_t l = add(&w.l, neg(&w.l, a), lb);
  output(&w.l, "y", neg(&w.l, relu(&w.l, l)));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b);
  const uint32_t r = mul(&w.r, neg(&w.r, c), rb);
  output(&w.r, "y", neg(&w.r, relu(&w.r, r)));
  expect(SYNTH_DIFFERENT);
  ck_assert(!w.res->redrawn);
  ck_assert_int_eq(w.res->divergence[0].left, l);
  ck_assert_int_eq(w.res->divergence[0].right, r);
  ck_assert(w.res->divergence[0].max_abs > 0);
}
END_TEST

START_TEST(another_attribute_is_named) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b);
  output(&w.l, "y", relu(&w.l, add(&w.l, a, lb)));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b);
  output(&w.r, "y", relu(&w.r, op(&w.r, "aten::add.Tensor", v(c), v(rb), num(2))));
  expect(SYNTH_DIFFERENT);
  ck_assert_int_eq(w.res->divergence[0].left, 2);
  ck_assert_int_eq(w.res->divergence[0].right, 2);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_str_eq(w.res->divergence[0].hint, "alpha is 1 on the left and 2 on the right");
}
END_TEST

START_TEST(an_output_that_is_not_updated_is_named) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(4, 3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b), l = add(&w.l, lb, a);
  output(&w.l, "y", relu(&w.l, a));
  output(&w.l, "updated.b", l);
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b);
  output(&w.r, "y", relu(&w.r, c));
  output(&w.r, "updated.b", rb);
  expect(SYNTH_DIFFERENT);
  ck_assert_int_eq(w.res->divergence[0].left, l);
  ck_assert_int_eq(w.res->divergence[0].right, rb);
  ck_assert_str_eq(w.res->divergence[0].hint,
                   "output `updated.b` gives `b` as it was: it is not updated");
}
END_TEST

START_TEST(one_change_in_two_places_is_named_once) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1),
              *e = noise(3, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b), le = weight(&w.l, "e", e);
  const uint32_t first = relu(&w.l, add(&w.l, a, lb)), second = relu(&w.l, add(&w.l, a, le));
  output(&w.l, "y", mul(&w.l, first, second));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b), re = weight(&w.r, "e", e);
  const uint32_t one = add(&w.r, c, rb);
  output(&w.r, "y", mul(&w.r, one, add(&w.r, c, re)));
  expect(SYNTH_DIFFERENT);
  ck_assert_uint_eq(w.res->n_divergences, 1);
  ck_assert_int_eq(w.res->divergence[0].left, first);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_str_eq(
      w.res->divergence[0].hint,
      iso_arena_printf(
          &w.arena, "on the left relu is applied, and on the right it is not; the same at \"%s\"",
          w.l.node[second].id));
}
END_TEST

/* relu(x * w), to which the left also applies `more`; the hint names that. */
static void lacks(uint32_t (*more)(graph *g, uint32_t x, uint32_t h), const char *hint) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *f = noise(2, SHAPE(3), 0, 1);
  const uint32_t a = input(&w.l, x), lh = relu(&w.l, mul(&w.l, a, weight(&w.l, "w", f)));
  output(&w.l, "y", relu(&w.l, more(&w.l, a, lh)));
  const uint32_t c = input(&w.r, x), rh = relu(&w.r, mul(&w.r, c, weight(&w.r, "w", f)));
  output(&w.r, "y", relu(&w.r, rh));
  expect(SYNTH_DIFFERENT);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_str_eq(w.res->divergence[0].hint, hint);
}

static uint32_t plus_input(graph *g, uint32_t x, uint32_t h) { return add(g, h, x); }
static uint32_t scaled(graph *g, uint32_t x, uint32_t h) { return mul(g, h, x); }
static uint32_t negated(graph *g, uint32_t x, uint32_t h) {
  (void)x;
  return neg(g, h);
}

START_TEST(what_one_side_does_besides_is_named) {
  lacks(plus_input, "on the left the residual \"x\" is added, and on the right it is not");
}
END_TEST
START_TEST(a_factor_besides_is_named) {
  lacks(scaled, "on the left it is multiplied by \"x\", and on the right it is not");
}
END_TEST
START_TEST(an_operator_besides_is_named) {
  lacks(negated, "on the left neg is applied, and on the right it is not");
}
END_TEST

/* What one side takes besides, and the other one does by itself or elsewhere, is not named. */
static void not_named(const char *step) {
  expect(SYNTH_DIFFERENT);
  for (size_t i = 0; i < w.res->n_divergences; i++) {
    const char *const hint = w.res->divergence[i].hint;
    ck_assert_msg(hint && !strstr(hint, step), "%s", hint);
  }
}
START_TEST(a_copy_that_a_reader_makes_by_itself_is_not_named) {
  rule_tensor *x = noise(1, SHAPE(2, 2, 3), 0, 1), *f = noise(2, SHAPE(2, 3), 0, 1);
  const rule_term *const size[2] = {num(4), num(3)}, *const times[2] = {num(2), num(1)};
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const rule_term *const flat = rule_list(&w.arena, size, 2);
    const uint32_t a = neg(g, input(g, x)), b = neg(g, weight(g, "w", f));
    const uint32_t q = side ? op(g, "aten::transpose.int", v(a), num(0), num(1))
                            : op(g, "aten::reshape", v(a), flat, NULL);
    const uint32_t h = side ? b : op(g, "aten::repeat", v(b), rule_list(&w.arena, times, 2), NULL);
    output(g, "y", op(g, "aten::reshape", v(relu(g, mul(g, q, h))), flat, NULL));
  }
  not_named("repeat is applied");
}
END_TEST
START_TEST(a_step_that_stands_elsewhere_is_not_named) {
  rule_tensor *x = noise(1, SHAPE(4, 3), 0, 1), *f = positive(2, SHAPE(3), 1);
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t a = input(g, x), b = weight(g, "w", f), h = side ? a : relu(g, a);
    const uint32_t m = mul(g, mul(g, h, b), b);
    output(g, "y", side ? relu(g, add(g, m, b)) : m);
  }
  not_named("relu is applied");
}
END_TEST

/* Two tensors of x, which `use` makes one of. */
static uint32_t of_two(graph *g, bool other,
                       uint32_t (*use)(graph *g, uint32_t p, uint32_t q, uint32_t b, bool other)) {
  const uint32_t a = input(g, w.tensor[0]), b = weight(g, "b", w.tensor[1]);
  const uint32_t p = neg(g, a), q = relu(g, a);
  return relu(g, use(g, p, q, b, other));
}
static uint32_t read_twice(graph *g, uint32_t p, uint32_t q, uint32_t b, bool other) {
  return mul(g, add(g, other ? q : p, b), mul(g, p, q));
}
static uint32_t read_crosswise(graph *g, uint32_t p, uint32_t q, uint32_t b, bool other) {
  const uint32_t sum = add(g, other ? q : p, b);
  return mul(g, neg(g, sum), other ? p : q);
}
static uint32_t in_two_orders(graph *g, uint32_t p, uint32_t q, uint32_t b, bool other) {
  const uint32_t h = mul(g, p, q);
  return other ? add(g, neg(g, h), b) : neg(g, add(g, h, b));
}

/* The hint of a pair that differs as `use` says. */
static void wired(uint32_t (*use)(graph *g, uint32_t p, uint32_t q, uint32_t b, bool other),
                  const char *hint) {
  noise(1, SHAPE(4, 3), 0, 1), noise(2, SHAPE(3), 0, 1);
  output(&w.l, "y", of_two(&w.l, false, use));
  output(&w.r, "y", of_two(&w.r, true, use));
  expect(SYNTH_DIFFERENT);
  ck_assert_ptr_nonnull(w.res->divergence[0].hint);
  ck_assert_str_eq(w.res->divergence[0].hint, hint);
}

START_TEST(another_operand_is_named) {
  wired(read_twice, "the right reads \"l3\" where the left reads \"l2\"");
}
END_TEST
START_TEST(exchanged_operands_are_named) {
  wired(read_crosswise, "\"l2\" and \"l3\" are exchanged");
}
END_TEST
START_TEST(another_order_is_named) {
  wired(in_two_orders, "on the left the bias \"b\" is added before neg, and on the right after it");
}
END_TEST

START_TEST(where_tensors_differ_is_pictured) {
  rule_tensor *x = noise(1, SHAPE(2, 60, 3), 0, 1), *b = noise(2, SHAPE(3), 0, 1);
  rule_tensor_set(b, 1, 0);
  const uint32_t a = input(&w.l, x), lb = weight(&w.l, "b", b), l = add(&w.l, a, lb);
  output(&w.l, "y", relu(&w.l, l));
  const uint32_t c = input(&w.r, x), rb = weight(&w.r, "b", b),
                 r = op(&w.r, "aten::add.Tensor", v(c), v(rb), num(2));
  output(&w.r, "y", relu(&w.r, r));
  expect(SYNTH_DIFFERENT);
  stands(0, l, SYNTH_ALONE);
  stands(1, r, SYNTH_ALONE);
  stands(1, r + 1, SYNTH_ALONE);
  const synth_divergence *d = &w.res->divergence[0];
  ck_assert_int_eq(d->at[0], l);
  ck_assert_int_eq(d->at[1], r);
  const synth_picture *p = d->picture;
  ck_assert_ptr_nonnull(p);
  /* 120 rows of 3 in 40 cells of 3 rows each; alpha is 2 instead of 1, so that they differ by b. */
  ck_assert_int_eq(p->n_rows, 120);
  ck_assert_int_eq(p->row_step, 3);
  ck_assert_uint_eq(p->rows, 40);
  ck_assert_uint_eq(p->columns, 3);
  ck_assert(!w.res->redrawn);
  for (uint32_t i = 0; i < p->rows * p->columns; i++)
    ck_assert_double_eq_tol((double)p->cell[i], fabs(rule_tensor_get(b, i % 3)), 1e-6);
  ck_assert_int_eq(p->n_differ, 240);
  ck_assert_double_eq_tol(fabs(p->left - p->right), d->max_abs, 1e-12);
  ck_assert_int_ne(p->index % 3, 1);
}
END_TEST

/* ---- random graphs with one operator changed ---- */

enum { OPERATORS = 8 };

/* Operators over two inputs, each reading the one before it and perhaps an earlier one, so that all
 * are needed; operator `changed` is another one. Returns: its node. */
static uint32_t random_graph(graph *g, uint64_t seed, int changed) {
  iso_rng rng = iso_rng_new(seed, 4);
  uint32_t last = input(g, w.tensor[0]), at = 0;
  const uint32_t first = weight(g, "b", w.tensor[1]);
  for (int i = 0; i < OPERATORS; i++) {
    const uint32_t other = (uint32_t)iso_rng_below(&rng, g->g.n_nodes);
    uint64_t kind = i == 0 ? 0 : iso_rng_below(&rng, 4);
    if (i == changed) kind ^= 1;
    last = kind == 0   ? add(g, last, i == 0 ? first : other)
           : kind == 1 ? mul(g, last, i == 0 ? first : other)
           : kind == 2 ? relu(g, last)
                       : neg(g, last);
    if (i == changed) at = last;
  }
  output(g, "y", last);
  return at;
}

static bool outputs_agree(void) {
  const rule_tensor *x = w.l.value[w.l.out[0].node][0], *y = w.r.value[w.r.out[0].node][0];
  return small_compare(NULL, x, y, 1e-6).equal;
}

/* Whether `i` is `at`, or reads it, or is read by it. */
static bool beside(const graph *g, int64_t i, uint32_t at) {
  if (i < 0 || i == at) return i == at;
  const uint32_t low = i < at ? (uint32_t)i : at, high = i < at ? at : (uint32_t)i;
  const rule_term *call = g->node[high].call;
  bool reads = false;
  for (uint32_t k = 0; call && k < call->n; k++)
    reads |= call->child[k]->kind == RULE_VAR && call->child[k]->u.i == low;
  return reads;
}

/* Where the graphs part is said first to be at the changed operator, or at one beside it: of a sign
 * that the next operator drops, either may be called wrong. */
START_TEST(the_changed_operator_is_found) {
  int n_different = 0, n_named = 0, n_beside = 0;
  for (uint64_t seed = 0; seed < 150; seed++) {
    iso_error err = {0};
    setup();
    noise(2 * seed, SHAPE(4, 3), 0, 1);
    noise(2 * seed + 1, SHAPE(4, 3), 0, 1);
    random_graph(&w.l, seed, -1);
    const uint32_t at = random_graph(&w.r, seed, (int)(seed % OPERATORS));
    const bool agree = outputs_agree();
    ck_assert_msg(try_compare(&w.l, &w.r, &err) == ISO_OK, "%s", err.msg);
    ck_assert_msg(agree || w.res->verdict != SYNTH_EQUIVALENT, "seed %d", (int)seed);
    if (w.res->verdict == SYNTH_DIFFERENT) {
      const synth_divergence *d = &w.res->divergence[0];
      ck_assert_uint_gt(w.res->n_divergences, 0);
      n_different++;
      n_named += d->left == at && d->right == at;
      n_beside += beside(&w.l, d->left, at) || beside(&w.r, d->right, at);
    }
    teardown();
  }
  ck_assert_int_gt(n_different, 110);
  ck_assert_msg(10 * n_named > 7 * n_different && 100 * n_beside > 85 * n_different,
                "of %d %d are named and %d more are named beside it", n_different, n_named,
                n_beside - n_named);
}
END_TEST

/* ---- random graphs with other faults ---- */

typedef enum fault { ATTRIBUTE, LEFT_OUT, ADDED, OPERAND, FAULTS } fault;
static const char *const fault_name[] = {"attribute", "left out", "added", "operand"};

/* Operators as in random_graph, none of which forgets a sign or takes its argument twice. Behind
 * operator `at` stands the fault; a graph without has `at` -1. Returns: the node nearest to it. */
static uint32_t faulty_graph(graph *g, uint64_t seed, fault how, int at) {
  iso_rng rng = iso_rng_new(seed, 5);
  uint32_t node[OPERATORS + 1] = {input(g, w.tensor[0])}, found = 0;
  const uint32_t a = weight(g, "a", w.tensor[1]), b = weight(g, "b", w.tensor[2]);
  for (int i = 0; i < OPERATORS; i++) {
    uint32_t last = node[i], other = i % 2 ? a : b;
    const bool here = i == at, sum = iso_rng_below(&rng, 2);
    if (here && how == OPERAND) other = i % 2 ? b : a;
    if (here && how == LEFT_OUT) {
      node[i + 1] = found = last;
      continue;
    }
    if (here && how == ADDED) last = found = neg(g, last);
    node[i + 1] = here && how == ATTRIBUTE && sum
                      ? op(g, "aten::add.Tensor", v(last), v(other), num(2))
                  : sum ? add(g, last, other)
                        : mul(g, last, other);
    if (here && how != ADDED) found = node[i + 1];
  }
  output(g, "y", node[OPERATORS]);
  return found;
}

/* How many operators two nodes of a graph are apart; they stand in a row. */
static int64_t apart(int64_t a, int64_t b) { return a < b ? b - a : a - b; }

START_TEST(other_faults_are_found) {
  int n_different = 0, n_near = 0, n_hints = 0;
  for (uint64_t seed = 0; seed < 60; seed++) {
    iso_error err = {0};
    setup();
    for (uint64_t i = 0; i < 3; i++) noise(3 * seed + i, i ? SHAPE(3) : SHAPE(4, 3), 0, 1);
    faulty_graph(&w.l, seed, (fault)_i, -1);
    const uint32_t at = faulty_graph(&w.r, seed, (fault)_i, (int)(seed % OPERATORS));
    const bool agree = outputs_agree();
    ck_assert_msg(try_compare(&w.l, &w.r, &err) == ISO_OK, "%s", err.msg);
    ck_assert_msg(agree || w.res->verdict != SYNTH_EQUIVALENT, "seed %d", (int)seed);
    if (w.res->verdict == SYNTH_DIFFERENT) {
      const synth_divergence *d = &w.res->divergence[0];
      n_different++;
      const int64_t missing = 3 + (int64_t)(seed % OPERATORS); /* behind three leaves */
      n_near += (_i == LEFT_OUT ? apart(d->left, missing) : apart(d->right, at)) <= 1;
      n_hints += d->hint != NULL;
    }
    teardown();
  }
  ck_assert_int_gt(n_different, _i == ATTRIBUTE ? 20 : 45);
  ck_assert_msg(100 * n_near > 80 * n_different && 100 * n_hints > 85 * n_different,
                "%s: of %d %d are named or next to it, %d have a hint", fault_name[_i], n_different,
                n_near, n_hints);
}
END_TEST

int main(void) {
  Suite *s = suite_create("divergence");
  TCase *t = tcase_create("divergence");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, another_operator_is_named);
  tcase_add_test(t, another_attribute_is_named);
  tcase_add_test(t, an_output_that_is_not_updated_is_named);
  tcase_add_test(t, one_change_in_two_places_is_named_once);
  tcase_add_test(t, what_one_side_does_besides_is_named);
  tcase_add_test(t, a_factor_besides_is_named);
  tcase_add_test(t, an_operator_besides_is_named);
  tcase_add_test(t, a_copy_that_a_reader_makes_by_itself_is_not_named);
  tcase_add_test(t, a_step_that_stands_elsewhere_is_not_named);
  tcase_add_test(t, another_operand_is_named);
  tcase_add_test(t, exchanged_operands_are_named);
  tcase_add_test(t, another_order_is_named);
  tcase_add_test(t, where_tensors_differ_is_pictured);
  TCase *random = tcase_create("random");
  tcase_set_timeout(random, 60);
  tcase_add_test(random, the_changed_operator_is_found);
  tcase_add_loop_test(random, other_faults_are_found, 0, FAULTS);
  suite_add_tcase(s, t);
  suite_add_tcase(s, random);
  return run_suite(s);
}
