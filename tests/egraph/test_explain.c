/* Explanations by hand: order, direction, sharing, depth; and proofs that must be refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/egraph.h"
#include "tests/support/suite.h"

static eg_graph *g;
static eg_step *step;
static size_t n_steps;

static void setup(void) {
  ck_assert_int_eq(eg_new(NULL, &g, NULL), ISO_OK);
  step = NULL;
  n_steps = 0;
}
static void teardown(void) {
  free(step);
  eg_free(g);
}

static eg_node add(const char *name, size_t n, const eg_node *child) {
  eg_class c[4];
  eg_symbol s;
  eg_node out;
  for (size_t i = 0; i < n; i++) c[i] = eg_class_of(g, child[i]);
  ck_assert_int_eq(eg_intern(g, name, strlen(name), &s, NULL), ISO_OK);
  ck_assert_int_eq(eg_add(g, s, c, n, &out, NULL), ISO_OK);
  return out;
}
static eg_node leaf(const char *name) { return add(name, 0, NULL); }
static eg_node apply(const char *name, eg_node x) { return add(name, 1, &x); }
static void merge(eg_node a, eg_node b, uint32_t data) {
  ck_assert_int_eq(eg_merge(g, a, b, (eg_why){1, data}, NULL), ISO_OK);
}
static void rebuild(void) { ck_assert(!eg_rebuild(g, NULL) && !eg_check(g, NULL)); }
static void explain(eg_node a, eg_node b) {
  free(step);
  step = NULL;
  iso_error err;
  ck_assert_msg(!eg_explain(g, a, b, &step, &n_steps, &err), "%s", err.msg);
}
static const char *refusal(eg_node a, eg_node b) {
  bool ok;
  const char *why_not = NULL;
  ck_assert_int_eq(eg_proof_check(g, step, n_steps, a, b, NULL, NULL, &ok, &why_not, NULL), ISO_OK);
  ck_assert(ok == !why_not);
  return why_not;
}
static void is_step(size_t i, eg_node from, eg_node to, uint32_t kind) {
  ck_assert_msg(i < n_steps && step[i].from.i == from.i && step[i].to.i == to.i &&
                    step[i].why.kind == kind,
                "step %zu", i);
}

START_TEST(itself) {
  eg_node a = leaf("a");
  explain(a, a);
  ck_assert_uint_eq(n_steps, 0);
  ck_assert_ptr_null(refusal(a, a));
}
END_TEST

START_TEST(not_equal) {
  eg_node a = leaf("a"), b = leaf("b");
  iso_error err;
  ck_assert_int_eq(eg_explain(g, a, b, &step, &n_steps, &err), ISO_USAGE);
  ck_assert_str_eq(refusal(a, b), "the steps do not connect the two e-nodes");
}
END_TEST

START_TEST(chain_runs_both_ways) {
  eg_node a = leaf("a"), b = leaf("b"), c = leaf("c"), d = leaf("d");
  merge(c, b, 5);
  merge(d, c, 6);
  merge(a, b, 7);
  merge(a, d, 8); /* known already: never a reason */
  explain(a, d);
  ck_assert_uint_eq(n_steps, 3);
  is_step(0, a, b, 1);
  is_step(1, b, c, 1);
  is_step(2, c, d, 1);
  ck_assert(step[0].why.data == 7 && step[1].why.data == 5 && step[2].why.data == 6);
  ck_assert_ptr_null(refusal(a, d));
  explain(d, a);
  is_step(0, d, c, 1);
  is_step(2, b, a, 1);
}
END_TEST

START_TEST(premises_first) {
  eg_node a = leaf("a"), b = leaf("b"), fa = apply("f", a), fb = apply("f", b), ga = apply("g", fa),
          gb = apply("g", fb);
  merge(a, b, 0);
  rebuild();
  explain(ga, gb);
  ck_assert_uint_eq(n_steps, 3);
  is_step(0, a, b, 1);
  ck_assert(step[1].why.kind == EG_WHY_CONGRUENCE &&
            (step[1].from.i == fa.i || step[1].from.i == fb.i));
  is_step(2, ga, gb, EG_WHY_CONGRUENCE);
  ck_assert_ptr_null(refusal(ga, gb));
}
END_TEST

/* f(x, x) = f(y, y): the premise is used twice and stands once. */
START_TEST(shared_premise_once) {
  eg_node x = leaf("x"), y = leaf("y"), z = leaf("z");
  eg_node fx = add("f", 2, (eg_node[]){x, x}), fy = add("f", 2, (eg_node[]){y, y});
  merge(x, z, 1);
  merge(z, y, 2);
  rebuild();
  explain(fx, fy);
  ck_assert_uint_eq(n_steps, 3);
  is_step(2, fx, fy, EG_WHY_CONGRUENCE);
  ck_assert_ptr_null(refusal(fx, fy));
}
END_TEST

/* x = f(x), and f(x) = f(f(x)) needs the chain's own first step: it stands once, in the chain's
 * direction. */
START_TEST(chain_step_is_a_premise) {
  eg_node x = leaf("x"), f1 = apply("f", x), f2 = apply("f", f1), f3 = apply("f", f2);
  merge(f1, x, 3);
  rebuild();
  explain(x, f3);
  ck_assert_uint_eq(n_steps, 3);
  is_step(0, x, f1, 1);
  ck_assert_ptr_null(refusal(x, f3));
  explain(f3, x);
  ck_assert_ptr_null(refusal(f3, x));
}
END_TEST

/* Children merged before the e-node was added: the e-node that was found explains with its own
 * children. */
START_TEST(added_after_merge) {
  eg_node a = leaf("a"), b = leaf("b"), c = leaf("c"), fa = apply("f", a);
  merge(a, b, 1);
  ck_assert_uint_eq(apply("f", b).i, fa.i);
  eg_node gc = apply("g", c), gb = apply("g", b);
  merge(b, c, 2);
  rebuild();
  ck_assert(eg_equal(g, gc, gb));
  explain(gc, gb);
  ck_assert_ptr_null(refusal(gc, gb));
}
END_TEST

/* Deep terms: neither explaining nor checking recurses. */
START_TEST(deep) {
  enum { DEPTH = 100000 };
  eg_node x = leaf("x"), y = leaf("y"), a = x, b = y;
  for (int i = 0; i < DEPTH; i++) {
    a = apply("f", a);
    b = apply("f", b);
  }
  merge(x, y, 0);
  rebuild();
  explain(a, b);
  ck_assert_uint_eq(n_steps, DEPTH + 1);
  ck_assert_ptr_null(refusal(a, b));
}
END_TEST

/* A long chain below many congruences: cost stays near the proof's length. */
START_TEST(overlapping_premises) {
  enum { LENGTH = 20000 };
  static eg_node v[LENGTH], f[LENGTH];
  char name[16];
  for (int i = 0; i < LENGTH; i++) {
    snprintf(name, sizeof name, "v%d", i);
    v[i] = leaf(name);
  }
  for (int i = 0; i < LENGTH; i++) f[i] = add("h", 2, (eg_node[]){v[i], v[LENGTH - 1 - i]});
  for (int i = 0; i + 1 < LENGTH; i++) merge(v[i], v[i + 1], 0);
  rebuild();
  explain(f[0], f[LENGTH / 2]);
  ck_assert_uint_ge(n_steps, LENGTH);
  ck_assert_ptr_null(refusal(f[0], f[LENGTH / 2]));
}
END_TEST

START_TEST(forged_proofs) {
  eg_node a = leaf("a"), b = leaf("b"), fa = apply("f", a), fb = apply("f", b), ga = apply("g", a),
          fab;
  fab = add("f", 2, (eg_node[]){a, b});
  const eg_why c = {EG_WHY_CONGRUENCE, 0};
  const eg_step forged[] = {{fa, fb, c}, {fa, ga, c}, {fa, fab, c}, {a, {99}, {1, 0}}, {a, b, c}};
  const char *why_not[] = {"a congruence with children that are not equal yet",
                           "a congruence between different symbols",
                           "a congruence between different arities", "a step names no e-node",
                           "a congruence between different symbols"};
  step = malloc(2 * sizeof *step);
  for (size_t i = 0; i < 5; i++) {
    step[0] = forged[i];
    n_steps = 1;
    ck_assert_str_eq(refusal(forged[i].from, forged[i].to.i == 99 ? a : forged[i].to), why_not[i]);
  }
  /* The premise must come before its use. */
  step[0] = (eg_step){fa, fb, c};
  step[1] = (eg_step){a, b, {1, 0}};
  n_steps = 2;
  ck_assert_str_eq(refusal(fa, fb), why_not[0]);
  step[1] = step[0];
  step[0] = (eg_step){a, b, {1, 0}};
  ck_assert_ptr_null(refusal(fa, fb));
  ck_assert_str_eq(refusal((eg_node){99}, fb), "no such e-node");
}
END_TEST

static bool only_data_7(void *ctx, const eg_step *s) {
  ++*(int *)ctx;
  return s->why.data == 7;
}

START_TEST(reasons_are_asked_for) {
  eg_node a = leaf("a"), b = leaf("b"), fa = apply("f", a), fb = apply("f", b);
  merge(a, b, 7);
  rebuild();
  explain(fa, fb);
  int asked = 0;
  bool ok = false;
  ck_assert(!eg_proof_check(g, step, n_steps, fa, fb, only_data_7, &asked, &ok, NULL, NULL) && ok);
  ck_assert_int_eq(asked, 1); /* a congruence is not the caller's to accept */
  step[0].why.data = 8;
  ck_assert(!eg_proof_check(g, step, n_steps, fa, fb, only_data_7, &asked, &ok, NULL, NULL) && !ok);
}
END_TEST

int main(void) {
  Suite *s = suite_create("explanations");
  TCase *t = tcase_create("explain");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, itself);
  tcase_add_test(t, not_equal);
  tcase_add_test(t, chain_runs_both_ways);
  tcase_add_test(t, premises_first);
  tcase_add_test(t, shared_premise_once);
  tcase_add_test(t, chain_step_is_a_premise);
  tcase_add_test(t, added_after_merge);
  tcase_add_test(t, deep);
  tcase_add_test(t, overlapping_premises);
  tcase_add_test(t, forged_proofs);
  tcase_add_test(t, reasons_are_asked_for);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
