/* Outputs that are said to be equal are so on other inputs and parameters, too: random graphs that
 * agree where they were captured; and differences that rounding explains. */
#include <check.h>
#include <stdio.h>

#include "check/redrawn_int.h"
#include "egraph/base/rng.h"
#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

static const rule_term *real(double x) { return rule_float(&report.arena, x); }

/* The input x and the weight b of both sides. */
static void add_leaves(rule_tensor *x, rule_tensor *b) {
  for (int s = 0; s < 2; s++) {
    leaf(s, CAP_INPUT, "x", x);
    leaf(s, CAP_PARAMETER, "b", b);
  }
}

/* Both outputs are claimed to be equal. Returns: whether that is taken. */
static bool claimed_equal(uint32_t l, uint32_t r) {
  result(LEFT, "y", l);
  result(RIGHT, "y", r);
  add_captures();
  for (uint32_t i = 0; i < 2; i++) add_step(CHK_LEAF, at(RIGHT, i), i);
  begin();
  for (uint32_t i = 0; i < 2; i++) unite(at(RIGHT, i), i);
  add_output("y", "y", l, at(RIGHT, r));
  iso_code c = chk_run(&k);
  if (!c && !chk_settled(&k)) c = chk_redrawn(&k);
  return accepted(c);
}

/* ---- graphs at random ---- */

enum { OPERATORS = 6 };

/* Each operator reads the one before it, and perhaps an earlier one; number `changed` is another
 * one. With `turned`, sums and products have their operands in the other order. */
static uint32_t random_graph(int s, uint64_t seed, int changed, bool turned) {
  iso_rng rng = iso_rng_new(seed, 4);
  uint32_t last = 0;
  for (int i = 0; i < OPERATORS; i++) {
    uint32_t other = (uint32_t)iso_rng_below(&rng, side[s].g.n_nodes);
    uint64_t kind = iso_rng_below(&rng, 4);
    if (i == 0) kind = 0, other = 1;
    if (i == changed) kind ^= 1;
    const rule_term *a = v(turned ? other : last), *b = v(turned ? last : other);
    last = op(s, kind == 0   ? CALL("aten::add.Tensor", a, b)
                 : kind == 1 ? CALL("aten::mul.Tensor", a, b)
                 : kind == 2 ? CALL("aten::relu", v(last))
                             : CALL("aten::neg", v(last)));
  }
  return last;
}

/* The value of a node where x and b are these. Owns. */
static rule_tensor *value_at(int s, uint32_t node, rule_tensor *x, rule_tensor *b) {
  rule_tensor *value[MAX_NODES] = {rule_tensor_ref(x), rule_tensor_ref(b)};
  for (uint32_t i = 2; i <= node; i++) value[i] = run_op(side[s].node[i].call, value);
  for (uint32_t i = 0; i < node; i++) rule_tensor_unref(value[i]);
  return value[node];
}

/* Numbers with the mean and the deviation of t's. Owns. */
static rule_tensor *drawn_like(const rule_tensor *t, iso_rng *rng) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < t->numel; i++) sum += rule_tensor_get(t, i);
  const double mean = sum / (double)t->numel;
  for (int64_t i = 0; i < t->numel; i++) squares += pow(rule_tensor_get(t, i) - mean, 2);
  rule_tensor *r = make(t->shape);
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(r, i, mean + sqrt(squares / (double)t->numel) * iso_rng_normal(rng));
  return r;
}

/* On how many of 40 draws that are like the captured numbers the nodes are far apart. */
static int count_apart(uint32_t l, uint32_t r) {
  int n = 0;
  for (uint64_t draw = 0; draw < 40; draw++) {
    iso_rng rng = iso_rng_new(draw, 9);
    rule_tensor *x = drawn_like(side[LEFT].node[0].value, &rng),
                *b = drawn_like(side[LEFT].node[1].value, &rng);
    rule_tensor *p = value_at(LEFT, l, x, b), *q = value_at(RIGHT, r, x, b);
    n += !small_compare(NULL, p, q, 1e-3).equal;
    rule_tensor_unref(p);
    rule_tensor_unref(q);
    rule_tensor_unref(x);
    rule_tensor_unref(b);
  }
  return n;
}

/* Captured numbers are above 0, so that many a relu does nothing there. */
static rule_tensor *above_zero(iso_rng *rng, rule_shape s) {
  rule_tensor *t = noise(rng, s);
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, 0.1 + fabs(rule_tensor_get(t, i)));
  return t;
}

START_TEST(graphs_that_differ_elsewhere_are_refused) {
  size_t n_equal = 0, n_hidden = 0, n_apart = 0;
  for (uint64_t seed = 0; seed < 800; seed++) {
    iso_rng rng = iso_rng_new(seed, 5);
    const int changed = seed % 2 ? (int)(seed / 2 % OPERATORS) : -1;
    setup();
    add_leaves(above_zero(&rng, SHAPE(4, 3)), above_zero(&rng, SHAPE(3)));
    const uint32_t l = random_graph(LEFT, seed / 2, -1, false),
                   r = random_graph(RIGHT, seed / 2, changed, true);
    rule_tensor *x = side[LEFT].node[0].value, *b = side[LEFT].node[1].value,
                *p = value_at(LEFT, l, x, b), *q = value_at(RIGHT, r, x, b);
    const bool hidden = small_compare(NULL, p, q, 1e-9).equal;
    const int apart = count_apart(l, r);
    const bool fine = claimed_equal(l, r);
    if (changed < 0) ck_assert_msg(fine, "seed %d: %s", (int)seed, report.reason);
    if (apart > 12) ck_assert_msg(!fine, "seed %d: taken though apart", (int)seed);
    n_equal += changed < 0;
    n_apart += apart > 12;
    n_hidden += hidden && apart > 12;
    rule_tensor_unref(p);
    rule_tensor_unref(q);
    teardown();
  }
  ck_assert_uint_ge(n_equal, 400);
  ck_assert_msg(n_apart > 240 && n_hidden > 10, "%zu apart, %zu of them hidden", n_apart, n_hidden);
}
END_TEST

/* x / x is 1 but where x is 0. */
START_TEST(outputs_are_no_number_together) {
  for (int both = 0; both < 2; both++) {
    setup();
    iso_rng rng = iso_rng_new(1, 6);
    add_leaves(above_zero(&rng, SHAPE(4, 3)), above_zero(&rng, SHAPE(3)));
    uint32_t y[2];
    for (int s = 0; s < 2; s++) {
      const uint32_t one = op(s, CALL("aten::div.Tensor", v(0), v(0)));
      y[s] = op(s, CALL("aten::mul.Tensor", v(s ? one : 1), v(s ? 1 : one)));
      if (s && !both) y[s] = op(s, CALL("aten::add.Tensor", v(1), num(0)));
    }
    if (!both) { /* of the same shape */
      rule_tensor *x = side[LEFT].node[0].value;
      side[RIGHT].g.n_nodes = 2;
      const int64_t size[] = {4, 3};
      const uint32_t ones = op(RIGHT, CALL("aten::full", sizes(size, 2), real(1),
                                           rule_dtype_term(&report.arena, RULE_F64)));
      y[RIGHT] = op(RIGHT, CALL("aten::mul.Tensor", v(1), v(ones)));
      ck_assert_int_eq(x->numel, 12);
    }
    ck_assert_msg(claimed_equal(y[LEFT], y[RIGHT]) == both, "%d: %s", both, report.reason);
    if (!both) ck_assert_ptr_nonnull(strstr(report.reason, "NaN"));
    teardown();
  }
}
END_TEST

/* d / d with another number for 0 / 0: the two are equal but where d = x + c is 0, which no draw
 * meets by chance. */
START_TEST(guards_are_tried_where_they_are_needed) {
  static const double number[] = {0, 0.3, -7, 2.5, 1e-3};
  for (size_t n = 0; n < sizeof number / sizeof *number; n++)
    for (int other = 0; other < 2; other++) {
      setup();
      iso_rng rng = iso_rng_new(n, 6);
      add_leaves(above_zero(&rng, SHAPE(4, 3)), above_zero(&rng, SHAPE(3)));
      uint32_t y[2];
      for (int s = 0; s < 2; s++) {
        const uint32_t d = op(s, CALL("aten::add.Tensor", v(0), real(number[n])));
        y[s] = op(s, CALL("aten::div.Tensor", v(d), v(d)));
        y[s] = op(s, CALL("aten::nan_to_num", v(y[s]), real(other && s ? 2 : 0)));
        y[s] = op(s, CALL("aten::mul.Tensor", v(y[s]), v(1)));
      }
      ck_assert_msg(claimed_equal(y[LEFT], y[RIGHT]) == !other, "%g, %d: %s", number[n], other,
                    report.reason);
      teardown();
    }
}
END_TEST

/* Whether the matrix that was drawn is the same along a dimension, and not along the other. */
static bool same_along(look *x, int64_t dim, const int64_t size[2]) {
  bool same = true, other = true;
  for (int64_t i = 0; i < size[0] * size[1]; i++) {
    const double y = x->value[chk_element(&x->elements, 0, i)],
                 up = x->value[chk_element(&x->elements, 0, i % size[1])],
                 left = x->value[chk_element(&x->elements, 0, i / size[1] * size[1])];
    same &= y == (dim == 0 ? up : left);
    other &= y == (dim == 0 ? left : up);
  }
  return same && !other;
}

START_TEST(poles_are_drawn_along_rows_and_columns) {
  enum { DRAWS = 24 };
  const int64_t size[2] = {16, 5};
  const draw_kind captured = {CAPTURED, CAPTURED, 1};
  size_t n[2] = {0};
  setup();
  iso_rng rng = iso_rng_new(3, 6);
  add_leaves(above_zero(&rng, SHAPE(16, 5)), above_zero(&rng, SHAPE(3)));
  ck_assert(
      claimed_equal(op(LEFT, CALL("aten::alias", v(0))), op(RIGHT, CALL("aten::alias", v(0)))));
  look x = {.at_poles = true, .poles = {.value = {0, 1, -1}, .n = 3}};
  ck_assert(chk_elements_new(&k, INT64_MAX, &x.elements) == ISO_OK);
  x.value = calloc(x.elements.n, sizeof *x.value);
  x.is_drawn = calloc(x.elements.n, 1);
  for (x.pole = x.poles.n; x.pole < x.poles.n + DRAWS; x.pole++) {
    memset(x.is_drawn, 0, x.elements.n);
    chk_draw_elements(&k, &x, 0, &captured, &rng);
    for (int64_t d = 0; d < 2; d++) n[d] += same_along(&x, d, size);
  }
  ck_assert_msg(n[0] > 0 && n[1] > 0, "%zu, %zu", n[0], n[1]);
  free(x.value);
  free(x.is_drawn);
  chk_elements_free(&x.elements);
  teardown();
}
END_TEST

/* relu(x) is x where the domain has no numbers below 0. */
START_TEST(inputs_are_drawn_inside_their_domain) {
  for (int low = -1; low <= 1; low++) {
    rule_domain d = rule_domain_all("x");
    d.low = low;
    setup();
    iso_rng rng = iso_rng_new(1, 7);
    rule_tensor *x = above_zero(&rng, SHAPE(4, 3));
    for (int64_t i = 0; i < x->numel; i++) rule_tensor_set(x, i, 1 + rule_tensor_get(x, i));
    add_leaves(x, x);
    for (int s = 0; s < 2; s++) side[s].node[0].domain = &d;
    const uint32_t l = op(LEFT, CALL("aten::relu", v(0))), r = op(RIGHT, CALL("aten::alias", v(0)));
    ck_assert_msg(claimed_equal(l, r) == (low >= 0), "%d: %s", low, report.reason);
    teardown();
  }
}
END_TEST

/* ---- masks ---- */

/* relu(1 - 64 / (relu(-x) + 1)): 1 where x is minus infinity, 0 where it is a small number. */
static uint32_t is_hidden(uint32_t x) {
  uint32_t y = op(RIGHT, CALL("aten::neg", v(x)));
  y = op(RIGHT, CALL("aten::relu", v(y)));
  y = op(RIGHT, CALL("aten::add.Tensor", v(y), num(1)));
  y = op(RIGHT, CALL("aten::div.Tensor", real(-64), v(y)));
  y = op(RIGHT, CALL("aten::add.Tensor", v(y), num(1)));
  return op(RIGHT, CALL("aten::relu", v(y)));
}

/* What hides where the captured mask does not is seen on masks at other places alone: small numbers
 * hide nothing, and where the mask was captured both sides are one. */
START_TEST(masks_are_put_at_other_places) {
  for (uint64_t seed = 0; seed < 40; seed++)
    for (int apart = 0; apart < 2; apart++) {
      setup();
      iso_rng rng = iso_rng_new(seed, 11);
      rule_tensor *x = above_zero(&rng, SHAPE(4, 3)), *b = above_zero(&rng, SHAPE(4, 3));
      for (int64_t i = 0, hidden = (int64_t)iso_rng_below(&rng, 12); i < 12; i++) {
        const bool hides = i == hidden || iso_rng_below(&rng, 4) == 0;
        if (hides) rule_tensor_set(x, i, -INFINITY);
        rule_tensor_set(b, i, hides || !apart ? 0 : 50);
      }
      add_leaves(x, b);
      const uint32_t l =
          op(LEFT, CALL("aten::relu", v(op(LEFT, CALL("aten::add.Tensor", v(0), num(100))))));
      uint32_t r = op(RIGHT, CALL("aten::add.Tensor", num(100), v(0)));
      r = op(RIGHT, CALL("aten::relu", v(r)));
      if (apart)
        r = op(RIGHT, CALL("aten::add.Tensor", v(r),
                           v(op(RIGHT, CALL("aten::mul.Tensor", v(1), v(is_hidden(0)))))));
      ck_assert_msg(claimed_equal(l, r) == !apart, "%d, %d: %s", (int)seed, apart, report.reason);
      teardown();
    }
}
END_TEST

/* ---- rounding ---- */

/* (x + big) - big is x but for rounding; x + off is another number where `off` is large beside it.
 */
START_TEST(a_difference_is_excused_as_far_as_rounding_goes) {
  for (int power = 11; power <= 14; power++)
    for (int off = 0; off < 2; off++) {
      const double big = pow(10, power), far = off ? big * 0x1p-50 * 400 : 0;
      setup();
      iso_rng rng = iso_rng_new(1, 8);
      rule_tensor *x = above_zero(&rng, SHAPE(4, 3));
      add_leaves(x, x);
      uint32_t l = op(LEFT, CALL("aten::add.Tensor", v(0), real(big)));
      l = op(LEFT, CALL("aten::add.Tensor", v(l), real(-big)));
      const uint32_t r = op(RIGHT, CALL("aten::add.Tensor", v(0), real(far)));
      const bool fine = claimed_equal(l, r);
      ck_assert_msg(fine == !off, "1e%d, off by %g: %s", power, far, report.reason);
      if (fine) ck_assert_int_eq(k.used.assumption[0].kind, RULE_ASSUMES_ROUNDING);
      teardown();
    }
}
END_TEST

/* ---- edges ---- */

typedef struct function {
  int kind[4];
  double c[4];
  int n;
} function;

static double applied(const function *f, double x) {
  for (int i = 0; i < f->n; i++) {
    const double c = f->c[i];
    switch (f->kind[i]) {
    case 0: x += c; break;
    case 1: x -= c; break;
    case 2: x = c - x; break;
    case 3: x *= c; break;
    case 4: x /= c; break;
    case 5: x = -x; break;
    default: x = fabs(x);
    }
  }
  return x;
}

static uint32_t written(const function *f, uint32_t x) {
  static const char *const name[] = {"aten::add.Scalar", "aten::sub.Scalar", "aten::rsub.Scalar",
                                     "aten::mul.Scalar", "aten::div.Scalar", "aten::neg",
                                     "aten::abs"};
  for (int i = 0; i < f->n; i++) {
    const rule_term *arg[] = {v(x), real(f->c[i]), num(1)};
    const uint32_t n = f->kind[i] >= 5 ? 1 : f->kind[i] >= 3 ? 2 : 3;
    x = shaped(LEFT, rule_op(&report.arena, name[f->kind[i]], arg, n), RULE_F64, SHAPE(2));
  }
  return x;
}

/* A comparison of a function of x with a number that it takes: draws fall on both sides of it. */
START_TEST(draws_fall_on_both_sides_of_a_comparison) {
  for (uint64_t seed = 0; seed < 500; seed++) {
    iso_rng rng = iso_rng_new(seed, 10);
    function f = {.n = (int)iso_rng_below(&rng, 5)};
    for (int i = 0; i < f.n; i++) {
      f.kind[i] = (int)iso_rng_below(&rng, 7);
      f.c[i] = (iso_rng_below(&rng, 2) ? 1 : -1) * (0.5 + 3 * iso_rng_uniform(&rng));
    }
    const double number = applied(&f, 20 * iso_rng_normal(&rng));
    setup();
    const uint32_t x = leaf(LEFT, CAP_INPUT, "x", noise(&rng, SHAPE(2)));
    const rule_term *arg[] = {v(written(&f, x)), real(number)};
    shaped(LEFT, rule_op(&report.arena, "aten::gt.Scalar", arg, 2), RULE_BOOL, SHAPE(2));
    leaf(RIGHT, CAP_INPUT, "x", side[LEFT].node[x].value);
    add_captures();
    begin();
    bool need[MAX_TERMS];
    memset(need, true, sizeof need);
    chk_edges *e = NULL;
    ck_assert(chk_edges_new(&k, need, &e) == ISO_OK);
    ck_assert(chk_any_edges(e) && chk_has_edges(&k, e, x));
    int above = 0, below = 0;
    for (size_t draw = 0; draw < 64; draw++) {
      const double y = applied(&f, chk_draw_edge(&k, e, x, draw, 0, &rng));
      above += y > number;
      below += y < number;
    }
    ck_assert_msg(above > 3 && below > 3, "seed %d: %d above, %d below", (int)seed, above, below);
    chk_edges_free(e);
    teardown();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("redrawn");
  TCase *t = tcase_create("redrawn");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, graphs_that_differ_elsewhere_are_refused);
  tcase_add_test(t, outputs_are_no_number_together);
  tcase_add_test(t, guards_are_tried_where_they_are_needed);
  tcase_add_test(t, poles_are_drawn_along_rows_and_columns);
  tcase_add_test(t, inputs_are_drawn_inside_their_domain);
  tcase_add_test(t, masks_are_put_at_other_places);
  tcase_add_test(t, a_difference_is_excused_as_far_as_rounding_goes);
  tcase_add_test(t, draws_fall_on_both_sides_of_a_comparison);
  suite_add_tcase(s, t);
  return run_suite(s);
}
