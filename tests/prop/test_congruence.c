/* Random traces of add, merge and rebuild, compared after each call with a naive congruence
 * closure. At the end of a trace every equal pair is explained, and every proof is checked, then
 * damaged and refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "egraph/egraph.h"
#include "tests/support/naive.h"
#include "tests/support/suite.h"

enum { N_TRACES = 400, N_CALLS = 70, N_SYMBOLS = 4 };

typedef struct merge_call {
  uint32_t a, b;
} merge_call;

typedef struct trace {
  eg_graph *g;
  naive s;
  bool rebuilt;
  eg_symbol symbol[N_SYMBOLS];
  merge_call merge[N_CALLS];
  uint32_t n_merges;
  iso_rng rng;
} trace;

static bool same(const trace *t, uint32_t a, uint32_t b) { return t->s.block[a] == t->s.block[b]; }

static void call_add(trace *t) {
  eg_class child[NAIVE_MAX_ARITY];
  uint32_t ids[NAIVE_MAX_ARITY];
  const size_t arity = t->s.n ? (size_t)iso_rng_below(&t->rng, 4) : 0,
               before = eg_count_added(t->g);
  const uint32_t op = (uint32_t)iso_rng_below(&t->rng, N_SYMBOLS);
  for (size_t k = 0; k < arity; k++) {
    ids[k] = (uint32_t)iso_rng_below(&t->rng, t->s.n);
    /* A class id may be stale when it is used. */
    child[k] =
        iso_rng_below(&t->rng, 2) ? eg_class_of(t->g, (eg_node){ids[k]}) : (eg_class){ids[k]};
  }
  eg_node n;
  ck_assert_int_eq(eg_add(t->g, t->symbol[op], child, arity, &n, NULL), ISO_OK);
  const uint32_t id = naive_add(&t->s, op, ids, arity);
  uint32_t twin = EG_NONE;
  for (uint32_t i = 0; i < id && twin == EG_NONE; i++)
    if (naive_congruent(&t->s, i, id)) twin = i;
  if (eg_count_added(t->g) == before) {
    ck_assert(n.i < id && naive_congruent(&t->s, n.i, id));
    t->s.n--;
    return;
  }
  ck_assert_uint_eq(n.i, before);
  if (t->rebuilt) ck_assert_msg(twin == EG_NONE, "an equal e-node was added again");
  for (size_t k = 0; k < arity; k++) {
    ck_assert_uint_eq(eg_node_original(t->g, n, k).i, child[k].i);
    ck_assert_uint_eq(eg_node_child(t->g, n, k).i, eg_find(t->g, child[k]).i);
  }
  naive_close(&t->s);
}

static void call_merge(trace *t) {
  if (!t->s.n) return;
  const uint32_t a = (uint32_t)iso_rng_below(&t->rng, t->s.n),
                 b = (uint32_t)iso_rng_below(&t->rng, t->s.n);
  ck_assert_int_eq(eg_merge(t->g, (eg_node){a}, (eg_node){b}, (eg_why){1, t->n_merges}, NULL),
                   ISO_OK);
  t->merge[t->n_merges++] = (merge_call){a, b};
  naive_merge(&t->s, a, b);
  naive_close(&t->s);
  t->rebuilt = false;
}

static void compare_class(trace *t, uint32_t block) {
  const eg_node *list;
  const eg_class c = eg_class_of(t->g, (eg_node){block});
  size_t n = eg_class_nodes(t->g, c, &list), k = 0;
  for (uint32_t i = 0; i < t->s.n; i++)
    if (t->s.block[i] == block) ck_assert(k < n && list[k++].i == i);
  ck_assert_uint_eq(k, n);
  n = eg_class_parents(t->g, c, &list);
  k = 0;
  for (uint32_t i = 0; i < t->s.n; i++)
    if (naive_is_parent(&t->s, i, block)) ck_assert(k < n && list[k++].i == i);
  ck_assert_uint_eq(k, n);
}

/* Not rebuilt: nothing false is found. Rebuilt: nothing is missing. */
static void compare(trace *t) {
  for (uint32_t i = 0; i < t->s.n; i++)
    for (uint32_t j = 0; j < i; j++) {
      const bool equal = eg_equal(t->g, (eg_node){i}, (eg_node){j});
      if (equal || t->rebuilt) ck_assert_msg(equal == same(t, i, j), "e-nodes %u and %u", j, i);
    }
  if (!t->rebuilt) return;
  iso_error err;
  ck_assert_msg(!eg_check(t->g, &err), "%s", err.msg);
  ck_assert_uint_eq(eg_count_classes(t->g), naive_count_blocks(&t->s));
  ck_assert_uint_eq(eg_count_nodes(t->g), naive_count_nodes(&t->s));
  for (uint32_t i = 0; i < t->s.n; i++)
    if (t->s.block[i] == i) compare_class(t, i);
}

/* A step's reason must be a merge that was called, in either direction. */
static bool accept(void *ctx, const eg_step *s) {
  const trace *t = ctx;
  if (s->why.kind != 1 || s->why.data >= t->n_merges) return false;
  const merge_call *m = &t->merge[s->why.data];
  return (s->from.i == m->a && s->to.i == m->b) || (s->from.i == m->b && s->to.i == m->a);
}

static bool holds(trace *t, const eg_step *step, size_t n, uint32_t a, uint32_t b) {
  bool ok = false;
  const char *why_not = NULL;
  ck_assert_int_eq(
      eg_proof_check(t->g, step, n, (eg_node){a}, (eg_node){b}, accept, t, &ok, &why_not, NULL),
      ISO_OK);
  ck_assert(ok == !why_not);
  return ok;
}

/* No proof goes without any of its steps, nor with one that states something else. */
static void damage(trace *t, const eg_step *step, size_t n, uint32_t a, uint32_t b) {
  eg_step *bad = malloc((n + 1) * sizeof *bad);
  for (size_t i = 0; i < n; i++) {
    memcpy(bad, step, i * sizeof *bad);
    memcpy(bad + i, step + i + 1, (n - i - 1) * sizeof *bad);
    ck_assert_msg(!holds(t, bad, n - 1, a, b), "without step %zu of %zu", i, n);
    memcpy(bad, step, n * sizeof *bad);
    bad[i].why.kind = step[i].why.kind == EG_WHY_CONGRUENCE ? 1 : 2;
    bad[i].why.data = step[i].why.kind == EG_WHY_CONGRUENCE ? t->n_merges : bad[i].why.data;
    ck_assert_msg(!holds(t, bad, n, a, b), "reason of step %zu of %zu", i, n);
    bad[i] = step[i];
    const uint32_t other = (uint32_t)iso_rng_below(&t->rng, t->s.n);
    bad[i].to.i = other;
    if (!same(t, step[i].from.i, other))
      ck_assert_msg(!holds(t, bad, n, a, b), "end of step %zu of %zu", i, n);
    bad[i].to.i = (uint32_t)t->s.n;
    ck_assert_msg(!holds(t, bad, n, a, b), "step %zu of %zu names no e-node", i, n);
  }
  const uint32_t other = (uint32_t)iso_rng_below(&t->rng, t->s.n);
  if (!same(t, a, other)) ck_assert(!holds(t, step, n, a, other));
  free(bad);
}

/* Whether steps lead from a to b, each in its direction. */
static bool runs_from_to(const eg_step *step, size_t n, uint32_t a, uint32_t b) {
  bool reached[NAIVE_MAX_TERMS] = {false};
  reached[a] = true;
  for (size_t round = 0; round < n; round++)
    for (size_t i = 0; i < n; i++)
      if (reached[step[i].from.i]) reached[step[i].to.i] = true;
  return reached[b];
}

static void explain_pair(trace *t, uint32_t a, uint32_t b, bool thorough) {
  eg_step *step = NULL;
  size_t n = 0;
  const iso_code code = eg_explain(t->g, (eg_node){a}, (eg_node){b}, &step, &n, NULL);
  if (!eg_equal(t->g, (eg_node){a}, (eg_node){b})) {
    ck_assert_int_eq(code, ISO_USAGE);
    return;
  }
  ck_assert_int_eq(code, ISO_OK);
  ck_assert_msg(holds(t, step, n, a, b), "proof of e-nodes %u and %u", a, b);
  ck_assert(runs_from_to(step, n, a, b));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++)
      ck_assert(!(step[i].from.i == step[j].from.i && step[i].to.i == step[j].to.i) &&
                !(step[i].from.i == step[j].to.i && step[i].to.i == step[j].from.i));
  if (thorough) damage(t, step, n, a, b);
  free(step);
}

static void trace_init(trace *t, uint64_t seed) {
  *t = (trace){.rng = iso_rng_new(seed, 1), .rebuilt = true};
  ck_assert_int_eq(eg_new(NULL, &t->g, NULL), ISO_OK);
  for (uint32_t i = 0; i < N_SYMBOLS; i++) {
    const char name = (char)('a' + i);
    ck_assert_int_eq(eg_intern(t->g, &name, 1, &t->symbol[i], NULL), ISO_OK);
    ck_assert_uint_eq(t->symbol[i].i, i);
  }
}

static void trace_step(trace *t) {
  const uint64_t what = iso_rng_below(&t->rng, 10);
  if (what < 6) {
    call_add(t);
  } else if (what < 8) {
    call_merge(t);
  } else {
    ck_assert_int_eq(eg_rebuild(t->g, NULL), ISO_OK);
    t->rebuilt = true;
  }
  compare(t);
}

START_TEST(traces_agree_with_naive_closure) {
  trace t;
  trace_init(&t, (uint64_t)_i);
  for (size_t k = 0; k < N_CALLS; k++) trace_step(&t);
  ck_assert_int_eq(eg_rebuild(t.g, NULL), ISO_OK);
  t.rebuilt = true;
  compare(&t);
  eg_free(t.g);
}
END_TEST

START_TEST(every_equality_is_explained) {
  trace t;
  trace_init(&t, (uint64_t)_i);
  for (size_t k = 0; k < N_CALLS; k++) trace_step(&t);
  if (_i % 2)
    ck_assert_int_eq(eg_rebuild(t.g, NULL), ISO_OK); /* else also between merge and rebuild */
  for (uint32_t a = 0; a < t.s.n; a++)
    for (uint32_t b = 0; b < t.s.n; b++) explain_pair(&t, a, b, (a + b) % 7 == 0);
  eg_free(t.g);
}
END_TEST

int main(void) {
  Suite *s = suite_create("congruence");
  TCase *t = tcase_create("traces");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, traces_agree_with_naive_closure, 0, N_TRACES);
  tcase_add_loop_test(t, every_equality_is_explained, 0, N_TRACES);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
