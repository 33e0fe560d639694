/* A caller's means in a run of eg_sat: schedulers, hooks, limits that name the rule, patterns of
 * several classes, rules in both directions; and misuse. */
#include "tests/egraph/sat_api.h"
#include "tests/support/suite.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- several classes ---- */

typedef struct seen {
  eg_class v[8][5];
  size_t n, n_vars;
} seen;
static bool see(void *ctx, eg_class root, const eg_class *var) {
  seen *x = ctx;
  x->v[x->n][0] = root;
  for (size_t k = 0; k < x->n_vars; k++) x->v[x->n][1 + k] = var[k];
  return ++x->n < 8;
}
static seen match(eg_sat *s, const char *text) {
  eg_pattern *p;
  iso_error err;
  size_t n;
  ck_assert_msg(!eg_pattern_parse(s, text, strlen(text), &p, &err), "%s: %s", text, err.msg);
  seen x = {.n_vars = eg_pattern_count_vars(p)};
  ck_assert_int_eq(eg_sat_match(s, p, see, &x, &n, NULL), ISO_OK);
  ck_assert_uint_eq(n, x.n);
  eg_pattern_free(p);
  return x;
}

START_TEST(several_classes_match) {
  eg_sat *s = graph(false);
  const eg_class fa = term(s, "(f a)"), gab = term(s, "(g a b)"), a = term(s, "a"),
                 b = term(s, "b");
  term(s, "(f c)");
  seen x = match(s, "?v = (f ?x), ?w = (g ?x ?y)"); /* v x w y */
  ck_assert_uint_eq(x.n, 1);
  ck_assert(x.v[0][0].i == fa.i && x.v[0][1].i == fa.i && x.v[0][2].i == a.i &&
            x.v[0][3].i == gab.i);
  ck_assert_uint_eq(match(s, "(f ?x), (f ?y)").n, 4);
  ck_assert_uint_eq(match(s, "(f ?x), a").n, 2);
  ck_assert_uint_eq(match(s, "(f ?x), nothing").n, 0);
  x = match(s, "?y = a, (f ?y)");
  ck_assert(x.n == 1 && x.v[0][0].i == a.i);
  ck_assert_uint_eq(match(s, "?y = b, (g ?x ?y), (f ?x)").n, 1);
  ck_assert_uint_eq(match(s, "?y = (f ?x), (f ?y)").n, 0);
  (void)b;
  eg_sat_free(s);
}
END_TEST

/* Paths of a relation: an edge for every two that meet. */
START_TEST(several_classes_are_merged) {
  for (int log = 0; log < 2; log++) {
    static const eg_rule path[] = {
        {.name = "join", .lhs = "?e = (edge ?a ?b), ?f = (edge ?b ?c)", .rhs = "?e = (edge ?a ?c)"},
        {.name = "same", .lhs = "?p = (one ?x), ?q = (two ?x)", .rhs = "?p = ?q, ?x = (both ?p)"}};
    eg_sat *s = graph(log);
    eg_class c;
    const eg_class yes = term(s, "(edge n0 n1)"), one = term(s, "(one z)"),
                   two = term(s, "(two z)"), z = term(s, "z");
    char text[40];
    for (int i = 1; i < 6; i++) {
      sprintf(text, "(edge n%d n%d)", i, i + 1);
      ck_assert_int_eq(eg_sat_merge(s, yes, term(s, text), (eg_why){1, 0}, NULL), ISO_OK);
    }
    ck_assert_int_eq(eg_sat_rebuild(s, NULL), ISO_OK);
    eg_rules *r = rules(s, path, 2);
    const eg_run_options o = eg_run_options_default();
    ck_assert_int_eq(run(s, r, &o).stop, EG_SATURATED);
    for (int i = 0; i < 7; i++)
      for (int j = 0; j < 7; j++) {
        sprintf(text, "(edge n%d n%d)", i, j);
        ck_assert_int_eq(has(s, text, &c), i < j);
        if (i < j) ck_assert(equal(s, c, yes));
      }
    ck_assert(equal(s, one, two) && has(s, "(both (two z))", &c) && equal(s, c, z));
    if (log) {
      eg_graph *g;
      eg_node *node;
      ck_assert_int_eq(eg_sat_replay(s, r, &g, &node, NULL), ISO_OK);
      ck_assert(eg_equal(g, node[one.i], node[two.i]) && eg_equal(g, node[z.i], node[c.i]));
      free(node);
      eg_free(g);
    }
    eg_rules_free(r);
    eg_sat_free(s);
  }
}
END_TEST

START_TEST(malformed_sides) {
  static const char *const bad[][2] = {{"?a, (f ?a)", "?a"},
                                       {"(f ?a), ", "?a"},
                                       {"?a = ?b", "?a"},
                                       {"(f ?a)", "?b"},
                                       {"(f ?a)", "(g ?a), (f ?a)"},
                                       {"(f ?a)", "?a = (f ?a), ?a"},
                                       {"(f ?a) (f ?a)", "?a"},
                                       {"(f ?a", "?a"},
                                       {"(?f a)", "a"},
                                       {"", "a"},
                                       {"(f ?a),, (g ?a)", "?a"}};
  eg_sat *s = graph(false);
  eg_rules *r = rules(s, NULL, 0);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    const eg_rule rule = {.name = "bad", .lhs = bad[i][0], .rhs = bad[i][1]};
    iso_error err;
    ck_assert_msg(eg_rules_add(r, &rule, &err) == ISO_FORMAT, "%s => %s", bad[i][0], bad[i][1]);
    ck_assert_msg(!strncmp(err.msg, "rule bad: ", 10), "%s", err.msg);
  }
  ck_assert_uint_eq(eg_rules_count(r), 0);
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

START_TEST(both_directions) {
  eg_sat *s = graph(false);
  const eg_rule dist = {
      .name = "dist", .lhs = "(* ?a (+ ?b ?c))", .rhs = "(+ (* ?a ?b) (* ?a ?c))", .both = true};
  const eg_rule one_way = {.name = "drop", .lhs = "(+ ?a (* 0 ?b))", .rhs = "?a", .both = true};
  eg_rules *r = rules(s, &dist, 1);
  iso_error err;
  ck_assert_uint_eq(eg_rules_count(r), 2);
  ck_assert_str_eq(eg_rules_name(r, 1), "dist-rev");
  ck_assert_int_eq(eg_rules_add(r, &one_way, &err), ISO_FORMAT); /* ?b is nowhere on the right */
  ck_assert_uint_eq(eg_rules_count(r), 2);
  const eg_class a = term(s, "(* x (+ y z))"), b = term(s, "(+ (* u v) (* u w))");
  eg_class c;
  const eg_run_options o = eg_run_options_default();
  ck_assert_int_eq(run(s, r, &o).stop, EG_SATURATED);
  ck_assert(has(s, "(+ (* x y) (* x z))", &c) && equal(s, c, a));
  ck_assert(has(s, "(* u (+ v w))", &c) && equal(s, c, b));
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

/* ---- schedulers ---- */

typedef struct plan {
  size_t limit, n_limit, n_found, last_found, stays;
} plan;
static size_t plan_limit(void *ctx, const eg_sat *s, size_t iteration, size_t rule) {
  plan *p = ctx;
  (void)s;
  p->n_limit++;
  return rule == 1 ? 0 : iteration == 0 ? 0 : p->limit;
}
static void plan_found(void *ctx, size_t iteration, size_t rule, size_t n) {
  plan *p = ctx;
  ck_assert(iteration > 0 && rule == 0);
  p->n_found++;
  p->last_found = n;
}
static bool plan_may_stop(void *ctx, size_t iteration) {
  plan *p = ctx;
  return iteration >= p->stays;
}

START_TEST(own_scheduler) {
  for (size_t limit = 1; limit < 5; limit += 3) {
    eg_sat *s = graph(false);
    const eg_class c = term(s, "(+ a (+ b c))");
    eg_rules *r = rules(s, sums, 2);
    plan p = {.limit = limit, .stays = 4};
    eg_run_options o = eg_run_options_default();
    o.scheduler = EG_OWN;
    o.own = (eg_scheduler){&p, plan_limit, plan_found, plan_may_stop};
    const eg_run_report report = run(s, r, &o);
    eg_class d;
    ck_assert_int_eq(report.stop, EG_SATURATED);
    ck_assert_uint_eq(report.iterations, 5);
    ck_assert_uint_eq(p.n_limit, 2 * 5);
    ck_assert_uint_eq(p.n_found, 4);
    ck_assert_uint_eq(p.last_found,
                      limit == 1 ? 2 : 4); /* one more than the limit, and then all are dropped */
    ck_assert_int_eq(has(s, "(+ (+ c b) a)", &d), limit > 1);
    if (limit > 1) ck_assert(equal(s, c, d));
    ck_assert(!has(s, "(+ (+ a b) c)", &d)); /* the other rule was never searched */
    eg_rules_free(r);
    eg_sat_free(s);
  }
}
END_TEST

/* A scheduler written with callbacks that behaves as backoff does. */
typedef struct backoff {
  size_t times[2], until[2];
} backoff;
static size_t backoff_limit(void *ctx, const eg_sat *s, size_t iteration, size_t rule) {
  const backoff *b = ctx;
  (void)s;
  return iteration < b->until[rule] ? 0 : (size_t)20 << b->times[rule];
}
static void backoff_found(void *ctx, size_t iteration, size_t rule, size_t n) {
  backoff *b = ctx;
  if (n <= (size_t)20 << b->times[rule]) return;
  b->until[rule] = iteration + (2u << b->times[rule]);
  b->times[rule]++;
}
static bool backoff_may_stop(void *ctx, size_t iteration) {
  backoff *b = ctx;
  size_t least = SIZE_MAX;
  for (int k = 0; k < 2; k++)
    if (b->until[k] > iteration && b->until[k] - iteration < least) least = b->until[k] - iteration;
  for (int k = 0; k < 2; k++)
    if (b->until[k] > iteration) b->until[k] -= least;
  return least == SIZE_MAX;
}
static bool note_counts(void *ctx, eg_sat *s, size_t i, const eg_iteration *it) {
  size_t *at = ctx;
  (void)s;
  at[2 * i] = it->nodes;
  at[2 * i + 1] = it->matches;
  return true;
}

START_TEST(backoff_by_hand) {
  size_t counts[2][2 * 31] = {0};
  for (int own = 0; own < 2; own++) {
    eg_sat *s = graph(false);
    term(s, long_sum);
    eg_rules *r = rules(s, sums, 2);
    backoff b = {0};
    eg_run_options o = eg_run_options_default();
    o.iteration_limit = 12;
    o.scheduler = own ? EG_OWN : EG_BACKOFF;
    o.match_limit = 20;
    o.ban_length = 2;
    o.own = (eg_scheduler){&b, backoff_limit, backoff_found, backoff_may_stop};
    o.each = note_counts;
    o.ctx = counts[own];
    ck_assert_int_eq(run(s, r, &o).stop, EG_ITERATION_LIMIT);
    eg_rules_free(r);
    eg_sat_free(s);
  }
  ck_assert_mem_eq(counts[0], counts[1], sizeof *counts);
}
END_TEST

START_TEST(limits_of_a_rule) {
  for (int exempt = 0; exempt < 2; exempt++) {
    eg_sat *s = graph(false);
    term(s, long_sum);
    eg_rule rule[2] = {sums[0], sums[1]};
    rule[0].match_limit = exempt ? SIZE_MAX : 3;
    rule[0].ban_length = 1000;
    eg_rules *r = rules(s, rule, 2);
    eg_class c;
    eg_run_options o = eg_run_options_default();
    o.scheduler = EG_BACKOFF;
    o.iteration_limit = 2;
    run(s, r, &o);
    ck_assert_int_eq(has(s, "(+ i h)", &c), exempt);
    ck_assert(has(s, "(+ (+ g h) i)", &c));
    eg_rules_free(r);
    eg_sat_free(s);
  }
}
END_TEST

/* ---- hooks ---- */

static bool teach(void *ctx, eg_sat *s, size_t i, const eg_iteration *it) {
  (void)ctx, (void)it;
  if (i == 2)
    ck_assert_int_eq(eg_sat_merge(s, term(s, "x"), term(s, "(+ p q)"), (eg_why){1, 0}, NULL),
                     ISO_OK);
  return i < 20;
}

/* E-nodes that a hook adds when nothing else is left to do are worked on, in incremental searches
 * too. */
START_TEST(hook_changes_the_graph) {
  for (int full = 0; full < 2; full++) {
    eg_sat *s = graph(false);
    const eg_class c = term(s, "(f x)");
    eg_rules *r = rules(s,
                        (const eg_rule[]){sums[0],
                                          {.name = "f", .lhs = "(f (+ q ?y))", .rhs = "?y"},
                                          {.name = "g", .lhs = "(f ?x)", .rhs = "(g (f ?x))"}},
                        3);
    eg_run_options o = eg_run_options_default();
    o.full_search = full;
    o.each = teach;
    ck_assert_int_eq(run(s, r, &o).stop, EG_SATURATED);
    ck_assert(equal(s, c, term(s, "p")) && equal(s, term(s, "(g p)"), c));
    eg_rules_free(r);
    eg_sat_free(s);
  }
}
END_TEST

/* ---- limits ---- */

static void many_terms(eg_sat *s, int n) {
  char text[60];
  for (int i = 0; i < n; i++) {
    sprintf(text, "(+ k%d m%d)", i, i);
    term(s, text);
  }
}

/* A product of everything with everything explodes in the search. */
/* An analysis that adds (+ x y) when it first repairs a class: in the middle of an application. */
static void count_nothing(void *ctx, const eg_sat *s, eg_op op, const eg_class *child, size_t n,
                          void *data) {
  (void)ctx, (void)s, (void)op, (void)child, (void)n, (void)data;
}
static unsigned nothing_joins(void *ctx, const eg_sat *s, void *into, void *from) {
  (void)ctx, (void)s, (void)into, (void)from;
  return 0;
}
static iso_code adds_a_sum(void *ctx, eg_sat *s, eg_class c, iso_error *err) {
  int *left = ctx;
  (void)c;
  return *left > 0 && --*left == 0 ? eg_sat_add_term(s, "(+ x y)", 7, &c, err) : ISO_OK;
}
START_TEST(repair_adds_what_a_rule_has_to_see) {
  int left = 0;
  const eg_sat_options o = {.analysis = {.ctx = &left,
                                         .size = 4,
                                         .make = count_nothing,
                                         .join = nothing_joins,
                                         .repair = adds_a_sum}};
  eg_run_options once = eg_run_options_default();
  eg_sat *s;
  eg_class c;
  ck_assert_int_eq(eg_sat_new(&o, &s, NULL), ISO_OK);
  for (size_t i = 0; i < 2; i++) term(s, i ? "(+ c d)" : "(+ a b)");
  eg_rules *r = rules(s, sums, 1);
  left = _i;
  run(s, r, &once);
  ck_assert_int_eq(left, 0);
  ck_assert(has(s, "(+ x y)", &c) && has(s, "(+ y x)", &c));
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

START_TEST(search_is_limited) {
  static const eg_rule boom[] = {
      {.name = "good", .lhs = "(+ ?a ?b)", .rhs = "(+ ?b ?a)"},
      {.name = "boom", .lhs = "(+ ?a ?b), (+ ?c ?d), (+ ?e ?f)", .rhs = "(h ?a ?c ?e)"}};
  for (int by_time = 0; by_time < 2; by_time++) {
    eg_sat *s = graph(false);
    many_terms(s, 2000);
    eg_rules *r = rules(s, boom, 2);
    eg_run_options o = eg_run_options_default();
    if (by_time) o.time_limit_s = 0.05;
    else o.mem_limit_bytes = eg_sat_mem_bytes(s) + (8 << 20);
    const size_t nodes = eg_sat_count_nodes(s);
    const eg_run_report report = run(s, r, &o);
    ck_assert_int_eq(report.stop, by_time ? EG_TIME_LIMIT : EG_MEMORY_LIMIT);
    ck_assert_uint_eq(report.culprit, 1);
    ck_assert(report.culprit_matches > 0 && report.iterations == 0);
    ck_assert_uint_eq(eg_sat_count_nodes(s), nodes);
    /* It goes on without that rule, and misses nothing. */
    eg_rules *again = rules(s, boom, 1);
    eg_class c;
    o = eg_run_options_default();
    ck_assert_int_eq(run(s, again, &o).stop, EG_SATURATED);
    ck_assert(has(s, "(+ m7 k7)", &c));
    eg_rules_free(again);
    eg_rules_free(r);
    eg_sat_free(s);
  }
}
END_TEST

static bool never(void *ctx, const eg_sat *s, const eg_class *var) {
  (void)s, (void)var;
  ++*(size_t *)ctx;
  return false;
}
START_TEST(guarded_search_is_limited) {
  eg_sat *s = graph(false);
  many_terms(s, 2000);
  size_t asked = 0;
  const eg_rule rule = {.name = "boom",
                        .lhs = "(+ ?a ?b), (+ ?c ?d), (+ ?e ?f)",
                        .rhs = "?a",
                        .guard = never,
                        .ctx = &asked};
  eg_rules *r = rules(s, &rule, 1);
  eg_run_options o = eg_run_options_default();
  o.time_limit_s = 0.05;
  const eg_run_report report = run(s, r, &o);
  ck_assert(report.stop == EG_TIME_LIMIT && report.culprit == 0 && report.culprit_matches == 0 &&
            asked > 0);
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

/* `n` parts of one thing, each beside several others; the first others stand in one list. */
static void parts_of_one(eg_sat *s, size_t n, size_t others) {
  char text[2048], *at = text;
  for (size_t k = 0; k < n; k++)
    for (size_t j = 0; j < others; j++) {
      char one[64];
      snprintf(one, sizeof one, "(mul y%zu_%zu (part%zu t))", k, j, k);
      term(s, one);
    }
  at += snprintf(at, 64, "(all");
  for (size_t k = 0; k < n; k++) at += snprintf(at, 64, " (mul y%zu_0 (part%zu t))", k, k);
  snprintf(at, 64, ")");
  term(s, text);
}

START_TEST(parts_are_not_multiplied) {
  enum { PARTS = 16, OTHERS = 10 }; /* more than are joined */
  eg_sat *s = graph(false);
  char lhs[1024], *at = lhs;
  parts_of_one(s, PARTS, OTHERS);
  at += snprintf(at, 64, "(all");
  for (size_t k = 0; k < PARTS; k++) at += snprintf(at, 64, " (mul ?x%zu (part%zu ?t))", k, k);
  snprintf(at, 64, ")");
  const eg_rule rule = {.name = "parts", .lhs = lhs, .rhs = "(found ?t)"};
  eg_rules *r = rules(s, &rule, 1);
  eg_run_options o = eg_run_options_default();
  o.work_limit = 4096; /* the others make 10^16 combinations */
  const eg_run_report report = run(s, r, &o);
  ck_assert_uint_eq(report.n_left_out, 0);
  ck_assert(report.stop == EG_SATURATED && report.iterations == 2);
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

START_TEST(too_much_work_is_left_out) {
  eg_sat *s = graph(false);
  many_terms(s, 2000);
  size_t asked = 0;
  const eg_rule both[] = {{.name = "boom",
                           .lhs = "(+ ?a ?b), (+ ?c ?d), (+ ?e ?f)",
                           .rhs = "?a",
                           .guard = never,
                           .ctx = &asked},
                          {.name = "swap", .lhs = "(+ ?a ?b)", .rhs = "(plus ?b ?a)"}};
  eg_rules *r = rules(s, both, 2);
  eg_run_options o = eg_run_options_default();
  o.work_limit = 100000;
  const eg_run_report report = run(s, r, &o);
  ck_assert_uint_eq(report.n_left_out, 1);
  eg_class c;
  ck_assert(report.stop == EG_SATURATED && asked < 200000);
  ck_assert(has(s, "(plus m7 k7)", &c));
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

/* A run that nothing ends stops at a limit that has a name, and says which it was. */
START_TEST(default_limits_end_a_run) {
  const eg_run_options o = eg_run_options_default();
  ck_assert(o.iteration_limit == EG_DEFAULT_ITERATIONS && o.node_limit == EG_DEFAULT_NODES);
  ck_assert(o.mem_limit_bytes == EG_DEFAULT_MEM_BYTES && o.time_limit_s == 0);
  const eg_rule longer = {.name = "longer", .lhs = "(f ?x)", .rhs = "(f (g ?x))"};
  const eg_rule grow = {
      .name = "grow", .lhs = "(p ?a ?b)", .rhs = "(p (p ?a ?b) (q (p ?b ?a) ?a))"};
  for (int k = 0; k < 3; k++) {
    eg_sat *s = graph(false);
    eg_run_options own = o;
    if (k == 2) own.mem_limit_bytes = 1 << 22, own.node_limit = 0;
    term(s, k ? "(p a b)" : "(f a)");
    eg_rules *r = rules(s, k ? &grow : &longer, 1);
    const eg_run_report report = run(s, r, &own);
    ck_assert_int_eq(report.stop, k == 0   ? EG_ITERATION_LIMIT
                                  : k == 1 ? EG_NODE_LIMIT
                                           : EG_MEMORY_LIMIT);
    ck_assert(k || report.iterations == EG_DEFAULT_ITERATIONS);
    eg_rules_free(r);
    eg_sat_free(s);
  }
}
END_TEST

START_TEST(exploding_rule_is_named) {
  eg_sat *s = graph(false);
  term(s, long_sum);
  const eg_rule more[] = {sums[0],
                          {.name = "grow", .lhs = "(+ ?a ?b)", .rhs = "(+ (g ?a ?b) (g ?b ?a))"}};
  eg_rules *r = rules(s, more, 2);
  eg_run_options o = eg_run_options_default();
  o.node_limit = 60;
  const eg_run_report report = run(s, r, &o);
  ck_assert_int_eq(report.stop, EG_NODE_LIMIT);
  ck_assert_str_eq(eg_rules_name(r, report.culprit), "grow");
  ck_assert(report.culprit_nodes > 0 && !report.culprit_matches);
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

/* ---- misuse ---- */

static void make_nothing(void *ctx, const eg_sat *s, eg_op op, const eg_class *child, size_t n,
                         void *data) {
  (void)ctx, (void)s, (void)op, (void)child, (void)n, (void)data;
}
static iso_code fail_condition(void *ctx, eg_sat *s, const eg_class *var, bool *holds,
                               iso_error *err) {
  (void)ctx, (void)s, (void)var, (void)holds;
  return iso_fail(err, ISO_RANGE, "no");
}

START_TEST(misuse_is_an_error) {
  eg_sat *s = graph(false), *t = graph(false), *none;
  iso_error err;
  eg_class c;
  bool found;
  const eg_sat_options half = {.analysis = {.make = make_nothing}};
  ck_assert_int_eq(eg_sat_new(&half, &none, &err), ISO_USAGE);
  eg_rules *r = rules(s, sums, 2);
  eg_run_report report;
  eg_run_options o = eg_run_options_default();
  ck_assert_int_eq(eg_sat_run(t, r, &o, &report, &err), ISO_USAGE);
  ck_assert_int_eq(eg_rules_add(r, &(eg_rule){.name = "none"}, &err), ISO_USAGE);
  ck_assert_int_eq(
      eg_rules_add(r, &(eg_rule){.lhs = "a", .rhs = "b", .both = true, .condition = fail_condition},
                   &err),
      ISO_USAGE);
  const char *const bad[] = {"?x",     "(f ?x)", "(f",   ")",  "a b",     "",
                             "(f a))", "a = b",  "a, b", "()", "((f) a)", "\"x"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ck_assert_msg(eg_sat_add_term(s, bad[i], strlen(bad[i]), &c, &err) == ISO_FORMAT, "%s", bad[i]);
    ck_assert_msg(eg_sat_lookup_term(s, bad[i], strlen(bad[i]), &found, &c, &err) == ISO_FORMAT,
                  "%s", bad[i]);
  }
  /* An error of a callback ends the run; the graph can be used on. */
  term(s, "(+ a b)");
  eg_rules *failing =
      rules(s, &(eg_rule){.lhs = "(+ ?a ?b)", .rhs = "?a", .condition = fail_condition}, 1);
  ck_assert_int_eq(eg_sat_run(s, failing, &o, &report, &err), ISO_RANGE);
  ck_assert_str_eq(err.msg, "no");
  ck_assert_int_eq(run(s, r, &o).stop, EG_SATURATED);
  ck_assert(!has(s, "(+ a c)", &c) && has(s, "(+ b a)", &c));
  eg_graph *g;
  ck_assert_int_eq(eg_sat_replay(s, r, &g, NULL, &err), ISO_USAGE);
  eg_rules_free(failing);
  eg_sat_free(s);
  eg_rules_free(r); /* behind its e-graph */
  eg_sat_free(t);
}
END_TEST

START_TEST(replay_needs_its_rules) {
  eg_sat *s = graph(true);
  term(s, "(+ a b)");
  eg_rules *r = rules(s, sums, 2), *few = rules(s, NULL, 0);
  const eg_run_options o = eg_run_options_default();
  eg_graph *g;
  run(s, r, &o);
  ck_assert_int_eq(eg_sat_replay(s, NULL, &g, NULL, NULL), ISO_USAGE);
  ck_assert_int_eq(eg_sat_replay(s, few, &g, NULL, NULL), ISO_USAGE);
  ck_assert_int_eq(eg_sat_replay(s, r, &g, NULL, NULL), ISO_OK);
  eg_free(g);
  eg_rules_free(few);
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sat_api");
  TCase *t = tcase_create("sat_api");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, several_classes_match);
  tcase_add_test(t, several_classes_are_merged);
  tcase_add_test(t, malformed_sides);
  tcase_add_test(t, both_directions);
  tcase_add_test(t, own_scheduler);
  tcase_add_test(t, backoff_by_hand);
  tcase_add_test(t, limits_of_a_rule);
  tcase_add_test(t, hook_changes_the_graph);
  tcase_add_loop_test(t, repair_adds_what_a_rule_has_to_see, 1, 3);
  tcase_add_test(t, search_is_limited);
  tcase_add_test(t, guarded_search_is_limited);
  tcase_add_test(t, parts_are_not_multiplied);
  tcase_add_test(t, too_much_work_is_left_out);
  tcase_add_test(t, default_limits_end_a_run);
  tcase_add_test(t, exploding_rule_is_named);
  tcase_add_test(t, misuse_is_an_error);
  tcase_add_test(t, replay_needs_its_rules);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
