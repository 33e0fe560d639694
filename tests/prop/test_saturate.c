/* Random traces of calls to eg_sat (add, merge, rebuild, match, extract, explain), compared with a
 * naive congruence closure, the invariants checked after every rebuild. TRACES=N in the environment
 * runs more of them. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "egraph/egraph.h"
#include "egraph/sat/query_int.h"
#include "tests/support/naive.h"
#include "tests/support/suite.h"

enum {
  N_TRACES = 20000,
  N_CALLS = 18,
  N_OPS = 5,
  N_RUNS = 400,
  MAX_FOUND = 1 << 16,
  PER_TEST = 1000
};

static const struct {
  const char *name;
  uint32_t arity;
} ops[N_OPS] = {{"a", 0}, {"b", 0}, {"f", 1}, {"g", 2}, {"h", 3}};

/* Patterns as texts and as terms in prefix order: an operator, or -1 - variable. The roots are
 * matched in one class, from APART on each in any. */
typedef struct pat {
  const char *text;
  int n_vars, n_roots, term[64];
} pat;
enum { A, B, F, G, H, X = -1, Y = -2, Z = -3 };
static const pat pats[] = {
    {"?x", 1, 1, {X}},
    {"a", 0, 1, {A}},
    {"(f ?x)", 1, 1, {F, X}},
    {"(g ?x ?x)", 1, 1, {G, X, X}},
    {"(g ?x (f ?y))", 2, 1, {G, X, F, Y}},
    {"(g (f ?x) (f ?x))", 1, 1, {G, F, X, F, X}},
    {"(f (f (f ?x)))", 1, 1, {F, F, F, X}},
    {"(g a ?x)", 1, 1, {G, A, X}},
    {"(f (g ?x (f b)))", 1, 1, {F, G, X, F, B}},
    {"(h ?x (g ?y ?x) ?y)", 2, 1, {H, X, G, Y, X, Y}},
    {"(g (g ?x ?y) (g ?y ?z))", 3, 1, {G, G, X, Y, G, Y, Z}},
    {"(f ?x) = (g ?y ?z)", 3, 2, {F, X, G, Y, Z}},
    {"?x = (f ?x)", 1, 1, {F, X}}, /* the class has a name: see roots */
    {"(g ?x a) = (f ?x)", 1, 2, {G, X, A, F, X}},
    {"(f ?x), (g ?x ?y)", 2, 2, {F, X, G, X, Y}},
    {"(f ?x), (g ?y ?z)", 3, 2, {F, X, G, Y, Z}},
    {"(g a ?x), (f (f ?x))", 1, 2, {G, A, X, F, F, X}},
    {"(h ?x ?y ?x), b", 2, 2, {H, X, Y, X, B}},
};
enum { N_PATS = sizeof pats / sizeof *pats, NAMED = 12, APART = 14 };

typedef struct tuple {
  uint32_t v[4];
} tuple;
typedef struct found {
  tuple t[MAX_FOUND];
  size_t n;
} found;

typedef struct trace {
  eg_sat *s;
  naive n;
  eg_op op[N_OPS];
  eg_class cls[NAIVE_MAX_TERMS]; /* of each naive term */
  eg_pattern *p[N_PATS];
  bool rebuilt;
  uint32_t block_of[4 * NAIVE_MAX_TERMS]; /* per class id: block of the term it came from */
  int n_vars;
  found mine, naive;
  iso_rng rng;
} trace;

static uint32_t below(trace *t, uint64_t n) { return (uint32_t)iso_rng_below(&t->rng, n); }

static void trace_init(trace *t, uint64_t seed) {
  memset(t, 0, sizeof *t);
  t->rng = iso_rng_new(seed, 7);
  t->rebuilt = true;
  const eg_sat_options o = {.log = true};
  ck_assert_int_eq(eg_sat_new(&o, &t->s, NULL), ISO_OK);
  for (int i = 0; i < N_OPS; i++)
    ck_assert_int_eq(
        eg_sat_op(t->s, ops[i].name, strlen(ops[i].name), ops[i].arity, &t->op[i], NULL), ISO_OK);
}

static void trace_fini(trace *t) {
  for (int i = 0; i < N_PATS; i++) eg_pattern_free(t->p[i]);
  eg_sat_free(t->s);
}

static void call_add(trace *t) {
  const uint32_t op = t->n.n ? below(t, N_OPS) : A;
  uint32_t ids[3] = {0};
  eg_class kid[3];
  for (uint32_t k = 0; k < ops[op].arity; k++) {
    ids[k] = below(t, t->n.n);
    kid[k] = below(t, 2) ? t->cls[ids[k]] : eg_sat_find(t->s, t->cls[ids[k]]);
  }
  const uint32_t id = naive_add(&t->n, op, ids, ops[op].arity);
  ck_assert_int_eq(eg_sat_add(t->s, t->op[op], kid, &t->cls[id], NULL), ISO_OK);
  naive_close(&t->n);
}

static void call_merge(trace *t) {
  if (!t->n.n) return;
  const uint32_t a = below(t, t->n.n), b = below(t, t->n.n);
  ck_assert_int_eq(
      eg_sat_merge(t->s, t->cls[a], t->cls[b], (eg_why){1, a * NAIVE_MAX_TERMS + b}, NULL), ISO_OK);
  naive_merge(&t->n, a, b);
  naive_close(&t->n);
  t->rebuilt = false;
}

static void compare(trace *t) {
  iso_error err;
  for (uint32_t i = 0; i < t->n.n; i++)
    for (uint32_t j = 0; j < i; j++) {
      const bool equal = eg_sat_find(t->s, t->cls[i]).i == eg_sat_find(t->s, t->cls[j]).i;
      if (equal || t->rebuilt)
        ck_assert_msg(equal == (t->n.block[i] == t->n.block[j]), "terms %u and %u", j, i);
    }
  if (!t->rebuilt) return;
  ck_assert_msg(!eg_sat_check(t->s, &err), "%s", err.msg);
  ck_assert_uint_eq(eg_sat_count_classes(t->s), naive_count_blocks(&t->n));
  ck_assert_uint_eq(eg_sat_count_nodes(t->s), naive_count_nodes(&t->n));
}

/* ---- matching by enumeration ---- */

static bool first_of_its_kind(const naive *n, uint32_t id) {
  for (uint32_t i = 0; i < id; i++)
    if (naive_congruent(n, i, id)) return false;
  return true;
}

/* Terms yet to match are (position in the pattern, block) pairs on a stack. */
typedef struct todo {
  int at;
  uint32_t block;
  const struct todo *next;
} todo;

static int skip_term(const pat *p, int at) {
  if (p->term[at] < 0) return at + 1;
  int next = at + 1;
  for (uint32_t k = 0; k < ops[p->term[at]].arity; k++) next = skip_term(p, next);
  return next;
}

static void enumerate(trace *t, const pat *p, const todo *d, tuple *m) {
  if (!d) {
    ck_assert(t->naive.n < MAX_FOUND);
    t->naive.t[t->naive.n++] = *m;
    return;
  }
  const int op = p->term[d->at];
  if (op < 0) {
    uint32_t *v = &m->v[-op];
    const uint32_t old = *v;
    if (old != EG_NONE && old != d->block) return;
    *v = d->block;
    enumerate(t, p, d->next, m);
    *v = old;
    return;
  }
  for (uint32_t i = 0; i < t->n.n; i++) {
    if (t->n.term[i].symbol != (uint32_t)op || t->n.block[i] != d->block ||
        !first_of_its_kind(&t->n, i))
      continue;
    todo kid[3];
    const todo *rest = d->next;
    int at[4] = {d->at + 1};
    for (uint32_t k = 0; k < ops[op].arity; k++) at[k + 1] = skip_term(p, at[k]);
    for (uint32_t k = ops[op].arity; k-- > 0; rest = &kid[k])
      kid[k] = (todo){at[k], t->n.block[t->n.term[i].child[k]], rest};
    enumerate(t, p, rest, m);
  }
}

static bool collect(void *ctx, eg_class root, const eg_class *var) {
  trace *t = ctx;
  tuple m = {{t->block_of[root.i], EG_NONE, EG_NONE, EG_NONE}};
  for (int k = 0; k < t->n_vars; k++) m.v[1 + k] = t->block_of[var[k].i];
  ck_assert(t->mine.n < MAX_FOUND);
  t->mine.t[t->mine.n++] = m;
  return true;
}

static int by_value(const void *a, const void *b) { return memcmp(a, b, sizeof(tuple)); }

static void expect_matches(trace *t, const eg_pattern *p, const char *text) {
  size_t n;
  t->mine.n = 0;
  t->n_vars = (int)eg_pattern_count_vars(p);
  for (uint32_t i = 0; i < t->n.n; i++) t->block_of[eg_sat_find(t->s, t->cls[i]).i] = t->n.block[i];
  ck_assert_int_eq(eg_sat_match(t->s, p, collect, t, &n, NULL), ISO_OK);
  ck_assert_uint_eq(n, t->mine.n);
  qsort(t->mine.t, t->mine.n, sizeof(tuple), by_value);
  ck_assert_msg(t->mine.n == t->naive.n && !memcmp(t->mine.t, t->naive.t, n * sizeof(tuple)),
                "%s: %zu matches, %zu expected", text, t->mine.n, t->naive.n);
}

/* By its program; by that, given up soon; and joined at once. */
static void expect_all_ways(trace *t, eg_pattern *p, const char *text) {
  const size_t patience = p->query->patience, least = p->query->least;
  qsort(t->naive.t, t->naive.n, sizeof(tuple), by_value);
  expect_matches(t, p, text);
  for (size_t k = 2; egi_join_can(p->query) && k-- > 0;) {
    p->query->patience = k;
    p->query->least = 0;
    expect_matches(t, p, text);
  }
  p->query->patience = patience;
  p->query->least = least;
}

static void call_match(trace *t) {
  if (!t->rebuilt) return;
  const uint32_t k = below(t, N_PATS);
  const pat *p = &pats[k];
  if (!t->p[k])
    ck_assert_int_eq(eg_pattern_parse(t->s, p->text, strlen(p->text), &t->p[k], NULL), ISO_OK);
  ck_assert_uint_eq(eg_pattern_count_vars(t->p[k]), (size_t)p->n_vars);
  t->naive.n = 0;
  for (uint32_t b = 0; b < t->n.n; b++) {
    if (t->n.block[b] != b) continue;
    tuple m = {{b, EG_NONE, EG_NONE, EG_NONE}};
    if (k == NAMED) m.v[1] = b;
    todo second = {skip_term(p, 0), b, NULL};
    for (second.block = k >= APART ? 0 : b; second.block < t->n.n; second.block++) {
      if (t->n.block[second.block] == second.block)
        enumerate(t, p, &(todo){0, b, p->n_roots == 2 ? &second : NULL}, &m);
      if (k < APART) break;
    }
  }
  expect_all_ways(t, t->p[k], p->text);
}

/* ---- drawn patterns of several classes, which share variables as they come: circles, stars ----
 */

enum { MAX_PARTS = 4 };
typedef struct drawn {
  pat p;
  char text[256];
  size_t n_text;
  int n_terms, seen[3]; /* variables by first occurrence; -1 */
  int root[MAX_PARTS], name[MAX_PARTS];
} drawn;

static int drawn_var(drawn *d, int v) {
  if (d->seen[v] < 0) d->seen[v] = d->p.n_vars++;
  d->n_text += (size_t)sprintf(d->text + d->n_text, "?%c", "xyz"[v]);
  return X - d->seen[v];
}

static void drawn_term(trace *t, drawn *d, uint32_t op, int depth) {
  d->p.term[d->n_terms++] = (int)op;
  if (!ops[op].arity) {
    d->n_text += (size_t)sprintf(d->text + d->n_text, "%s", ops[op].name);
    return;
  }
  d->n_text += (size_t)sprintf(d->text + d->n_text, "(%s", ops[op].name);
  for (uint32_t k = 0; k < ops[op].arity; k++) {
    d->text[d->n_text++] = ' ';
    const uint32_t what = below(t, 8);
    if (what == 0 || (what == 1 && depth))
      drawn_term(t, d, what ? F + below(t, 2) : below(t, 2), depth - 1);
    else d->p.term[d->n_terms++] = drawn_var(d, (int)below(t, 3));
  }
  d->text[d->n_text++] = ')';
}

static void draw_pattern(trace *t, drawn *d) {
  *d = (drawn){.seen = {-1, -1, -1}, .p.n_roots = 2 + (int)below(t, MAX_PARTS - 1)};
  for (int i = 0; i < d->p.n_roots; i++) {
    d->name[i] = 0;
    if (i) d->n_text += (size_t)sprintf(d->text + d->n_text, ", ");
    if (below(t, 4) == 0) {
      d->name[i] = drawn_var(d, (int)below(t, 3));
      d->n_text += (size_t)sprintf(d->text + d->n_text, " = ");
    }
    d->root[i] = d->n_terms;
    drawn_term(t, d, below(t, 8) ? F + below(t, 3) : below(t, 2), 1);
  }
  d->text[d->n_text] = 0;
}

/* Each part in any class; its name is bound to that as a variable within it is. */
static void enumerate_parts(trace *t, drawn *d, int part, const todo *rest, tuple *m) {
  if (part < 0) {
    enumerate(t, &d->p, rest, m);
    return;
  }
  const int op = d->p.term[d->root[part]];
  for (uint32_t b = 0; b < t->n.n; b++) {
    bool has = false;
    for (uint32_t i = 0; i < t->n.n; i++)
      has = has || (t->n.block[i] == b && t->n.term[i].symbol == (uint32_t)op);
    uint32_t *v = &m->v[d->name[part] ? -d->name[part] : 0];
    const uint32_t old = *v;
    if (!has || (d->name[part] && old != EG_NONE && old != b)) continue;
    if (d->name[part] || !part) *v = b;
    if (!part) m->v[0] = b;
    enumerate_parts(t, d, part - 1, &(todo){d->root[part], b, rest}, m);
    *v = old;
  }
}

static void call_match_drawn(trace *t) {
  static drawn d;
  eg_pattern *p;
  if (!t->rebuilt) return;
  draw_pattern(t, &d);
  d.p.text = d.text;
  ck_assert_msg(!eg_pattern_parse(t->s, d.text, d.n_text, &p, NULL), "%s", d.text);
  ck_assert_uint_eq(eg_pattern_count_vars(p), (size_t)d.p.n_vars);
  t->naive.n = 0;
  tuple m = {{EG_NONE, EG_NONE, EG_NONE, EG_NONE}};
  enumerate_parts(t, &d, d.p.n_roots - 1, NULL, &m);
  expect_all_ways(t, p, d.text);
  eg_pattern_free(p);
}

/* ---- extraction by iterating to a fixed point ---- */

static void call_extract(trace *t) {
  if (!t->rebuilt || !t->n.n) return;
  double cost[NAIVE_MAX_TERMS];
  for (uint32_t i = 0; i < t->n.n; i++) cost[i] = HUGE_VAL;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < t->n.n; i++) {
      double c = 1;
      for (uint32_t k = 0; k < t->n.term[i].arity; k++)
        c += cost[t->n.block[t->n.term[i].child[k]]];
      if (c < cost[t->n.block[i]]) cost[t->n.block[i]] = c, changed = true;
    }
  }
  eg_extract *x;
  char *text;
  double dag, after;
  ck_assert_int_eq(eg_extract_new(t->s, NULL, &x, NULL), ISO_OK);
  for (uint32_t i = 0; i < t->n.n; i++)
    ck_assert(eg_extract_cost(x, t->cls[i]) == cost[t->n.block[i]]);
  const eg_class c = t->cls[below(t, t->n.n)];
  eg_class again;
  const uint64_t version = eg_sat_version(t->s);
  ck_assert_int_eq(eg_extract_dag_cost(x, c, &dag, NULL), ISO_OK);
  ck_assert(dag <= eg_extract_cost(x, c));
  ck_assert_int_eq(eg_extract_dag(x, c, NULL), ISO_OK);
  ck_assert_int_eq(eg_extract_dag_cost(x, c, &after, NULL), ISO_OK);
  ck_assert(after <= dag);
  /* An extracted term is there already, and in this class. */
  ck_assert_int_eq(eg_extract_text(x, c, &text, NULL), ISO_OK);
  ck_assert_int_eq(eg_sat_add_term(t->s, text, strlen(text), &again, NULL), ISO_OK);
  ck_assert(eg_sat_version(t->s) == version && eg_sat_find(t->s, c).i == again.i);
  free(text);
  eg_extract_free(x);
}

/* ---- explanations ---- */

static bool accept(void *ctx, const eg_step *s) {
  (void)ctx;
  return s->why.kind == 1;
}

static void call_explain(trace *t) {
  if (!t->rebuilt || !t->n.n) return;
  eg_graph *g;
  eg_node *node;
  eg_step *step = NULL;
  size_t n = 0;
  bool ok = false;
  ck_assert_int_eq(eg_sat_replay(t->s, NULL, &g, &node, NULL), ISO_OK);
  const uint32_t a = below(t, t->n.n), b = below(t, t->n.n);
  const eg_node x = node[t->cls[a].i], y = node[t->cls[b].i];
  ck_assert(eg_equal(g, x, y) == (t->n.block[a] == t->n.block[b]));
  if (eg_equal(g, x, y)) {
    ck_assert_int_eq(eg_explain(g, x, y, &step, &n, NULL), ISO_OK);
    ck_assert_int_eq(eg_proof_check(g, step, n, x, y, accept, t, &ok, NULL, NULL), ISO_OK);
    ck_assert(ok);
  }
  free(step);
  free(node);
  eg_free(g);
}

static void trace_step(trace *t) {
  const uint32_t what = below(t, 16);
  if (what < 7) call_add(t);
  else if (what < 10) call_merge(t);
  else if (what < 12) {
    ck_assert_int_eq(eg_sat_rebuild(t->s, NULL), ISO_OK);
    t->rebuilt = true;
  } else if (what < 14) call_match(t);
  else if (what < 15) call_extract(t);
  else call_explain(t);
  compare(t);
}

static size_t n_traces(void) {
  const char *s = getenv("TRACES");
  return s ? strtoul(s, NULL, 10) : N_TRACES;
}

START_TEST(traces_agree_with_naive_closure) {
  static trace t;
  for (size_t i = (size_t)_i * PER_TEST; i < (size_t)(_i + 1) * PER_TEST && i < n_traces(); i++) {
    trace_init(&t, i);
    for (int k = 0; k < N_CALLS; k++) trace_step(&t);
    ck_assert_int_eq(eg_sat_rebuild(t.s, NULL), ISO_OK);
    t.rebuilt = true;
    compare(&t);
    call_match(&t);
    call_match_drawn(&t);
    trace_fini(&t);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("saturate");
  TCase *t = tcase_create("traces");
  tcase_set_timeout(t, 3600);
  tcase_add_loop_test(t, traces_agree_with_naive_closure, 0,
                      (int)((n_traces() + PER_TEST - 1) / PER_TEST));
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
