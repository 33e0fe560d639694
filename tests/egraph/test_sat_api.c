/* What a run of eg_sat offers its caller: schedulers, hooks, limits that name the rule, patterns of
 * several classes, rules in both directions, cost callbacks, terms looked up, explanations whose
 * steps are held against the rules; and misuse. */
#include <check.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/egraph.h"

static eg_sat *graph(bool log) {
  const eg_sat_options o = {.log = log};
  eg_sat *s;
  ck_assert_int_eq(eg_sat_new(&o, &s, NULL), ISO_OK);
  return s;
}
static eg_class term(eg_sat *s, const char *text) {
  eg_class c;
  iso_error err;
  ck_assert_msg(!eg_sat_add_term(s, text, strlen(text), &c, &err), "%s", err.msg);
  return c;
}
static eg_rules *rules(eg_sat *s, const eg_rule *rule, size_t n) {
  eg_rules *r;
  iso_error err;
  ck_assert_int_eq(eg_rules_new(s, &r, NULL), ISO_OK);
  for (size_t i = 0; i < n; i++) ck_assert_msg(!eg_rules_add(r, &rule[i], &err), "%s", err.msg);
  return r;
}
static bool equal(const eg_sat *s, eg_class a, eg_class b) {
  return eg_sat_find(s, a).i == eg_sat_find(s, b).i;
}
static bool has(eg_sat *s, const char *text, eg_class *c) {
  bool found;
  ck_assert_int_eq(eg_sat_lookup_term(s, text, strlen(text), &found, c, NULL), ISO_OK);
  return found;
}
static eg_run_report run(eg_sat *s, eg_rules *r, const eg_run_options *o) {
  eg_run_report report;
  iso_error err;
  ck_assert_msg(!eg_sat_run(s, r, o, &report, &err), "%s", err.msg);
  ck_assert_msg(!eg_sat_check(s, &err), "%s", err.msg);
  return report;
}

static const eg_rule sums[] = {
    {.name = "comm", .lhs = "(+ ?a ?b)", .rhs = "(+ ?b ?a)"},
    {.name = "assoc", .lhs = "(+ ?a (+ ?b ?c))", .rhs = "(+ (+ ?a ?b) ?c)"}};
static const char long_sum[] = "(+ a (+ b (+ c (+ d (+ e (+ f (+ g (+ h i))))))))";

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

/* A scheduler of one's own that does what backoff does. */
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

/* What a hook adds when nothing else is left to do is worked on, in incremental searches too. */
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

/* ---- costs ---- */

/* A product costs 4, but by a leaf "2" only 1; `ban` may not be chosen. */
static double price(const eg_sat *s, eg_row row) {
  const eg_op op = eg_sat_row_op(s, row);
  if (!strcmp(eg_sat_op_name(s, op), "ban")) return HUGE_VAL;
  if (strcmp(eg_sat_op_name(s, op), "*") != 0) return 1;
  for (eg_row r = eg_sat_first(s, eg_sat_row_child(s, row, 1)); r.i; r = eg_sat_next(s, r))
    if (!strcmp(eg_sat_op_name(s, eg_sat_row_op(s, r)), "2")) return 1;
  return 4;
}
static double tree_price(void *ctx, const eg_sat *s, eg_row row, const double *child, size_t n) {
  double sum = price(s, row);
  ck_assert(ctx == &price && n == eg_sat_op_arity(s, eg_sat_row_op(s, row)));
  for (size_t k = 0; k < n; k++) sum += child[k];
  return sum;
}
static double node_price(void *ctx, const eg_sat *s, eg_row row) {
  (void)ctx;
  ck_assert(eg_sat_find(s, eg_sat_row_class(s, row)).i == eg_sat_row_class(s, row).i);
  return price(s, row);
}

START_TEST(cost_sees_the_e_node) {
  eg_sat *s = graph(false);
  const eg_class c = term(s, "(* x 2)"), d = term(s, "(* y 3)");
  const char *others[] = {"(+ x x)", "(+ y (+ y y))", "ban"};
  ck_assert_int_eq(eg_sat_merge(s, c, term(s, others[0]), (eg_why){1, 0}, NULL), ISO_OK);
  ck_assert_int_eq(eg_sat_merge(s, d, term(s, others[1]), (eg_why){1, 0}, NULL), ISO_OK);
  ck_assert_int_eq(eg_sat_merge(s, d, term(s, others[2]), (eg_why){1, 0}, NULL), ISO_OK);
  ck_assert_int_eq(eg_sat_rebuild(s, NULL), ISO_OK);
  const eg_cost cost = {(void *)(uintptr_t)&price, tree_price, node_price};
  eg_extract *x;
  char *text;
  double dag;
  ck_assert_int_eq(eg_extract_new(s, &cost, &x, NULL), ISO_OK);
  ck_assert(eg_extract_cost(x, c) == 3 && eg_extract_cost(x, d) == 5);
  ck_assert_int_eq(eg_extract_text(x, d, &text, NULL), ISO_OK);
  ck_assert_str_eq(text, "(+ y (+ y y))");
  free(text);
  ck_assert_int_eq(eg_extract_dag_cost(x, d, &dag, NULL), ISO_OK);
  ck_assert(dag == 3); /* two sums and one y */
  eg_extract_free(x);
  eg_sat_free(s);
}
END_TEST

/* ---- explanations ---- */

static bool refuse(void *ctx, const eg_step *step) {
  (void)step;
  ++*(size_t *)ctx;
  return false;
}

START_TEST(terms_are_explained_as_written) {
  eg_sat *s = graph(true);
  const eg_class root = term(s, "(f (+ a (+ b c)))");
  eg_rules *r = rules(s, sums, 2);
  const eg_run_options o = eg_run_options_default();
  run(s, r, &o);
  eg_graph *g;
  eg_node *node, to, same;
  eg_step *step;
  size_t n;
  char *text;
  bool ok;
  const char *why_not;
  ck_assert_int_eq(eg_sat_replay(s, r, &g, &node, NULL), ISO_OK);
  const char *goal = "(f (+ (+ c b) a))";
  ck_assert_int_eq(eg_add_term(g, goal, strlen(goal), &to, NULL), ISO_OK);
  ck_assert_int_eq(eg_rebuild(g, NULL), ISO_OK);
  ck_assert(eg_equal(g, node[root.i], to) && node[root.i].i != to.i);
  ck_assert_int_eq(eg_node_text(g, to, &text, NULL), ISO_OK);
  ck_assert_str_eq(text, goal);
  free(text);
  const size_t added = eg_count_added(g), nodes = eg_count_nodes(g);
  ck_assert_int_eq(eg_add_term(g, goal, strlen(goal), &same, NULL), ISO_OK);
  ck_assert(same.i == to.i && eg_count_added(g) == added && eg_count_nodes(g) == nodes);
  ck_assert_int_eq(eg_check(g, NULL), ISO_OK);
  ck_assert_int_eq(eg_explain(g, node[root.i], to, &step, &n, NULL), ISO_OK);
  ck_assert_uint_ge(n, 3);
  eg_rule_check check = {g, r, NULL, NULL};
  ck_assert_int_eq(
      eg_proof_check(g, step, n, node[root.i], to, eg_rule_check_step, &check, &ok, &why_not, NULL),
      ISO_OK);
  ck_assert_msg(ok, "%s", why_not);
  /* A step of a rule that says it was another one, or that speaks of other terms, is no instance.
   */
  for (size_t i = 0; i < n; i++) {
    if (step[i].why.kind == EG_WHY_CONGRUENCE) continue;
    const eg_step keep = step[i];
    size_t asked = 0;
    check = (eg_rule_check){g, r, refuse, &asked};
    step[i].why.kind ^= 1; /* the other rule */
    ck_assert(!eg_rule_check_step(&check, &step[i]) && !asked);
    ck_assert_int_eq(
        eg_proof_check(g, step, n, node[root.i], to, eg_rule_check_step, &check, &ok, NULL, NULL),
        ISO_OK);
    ck_assert(!ok);
    step[i] = keep;
    step[i].to = step[i].from;
    ck_assert(!eg_rule_check_step(&check, &step[i]));
    step[i] = keep;
    step[i].why.kind = 77; /* not a rule: the caller is asked */
    ck_assert(!eg_rule_check_step(&check, &step[i]) && asked == 1);
    step[i] = keep;
    ck_assert(eg_rule_check_step(&check, &step[i]));
  }
  free(step);
  free(node);
  eg_free(g);
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

/* What a class is called is not to be read off a step: neither accepted nor refused by the library.
 */
START_TEST(names_of_classes_are_asked_about) {
  eg_sat *s = graph(true);
  const eg_rule rule[] = {{.name = "named", .lhs = "?v = (f ?x)", .rhs = "(g ?v)"},
                          {.name = "plain", .lhs = "?v = (g ?x)", .rhs = "?v = (h ?x)"}};
  const eg_class c = term(s, "(f a)");
  eg_rules *r = rules(s, rule, 2);
  eg_run_options o = eg_run_options_default();
  o.iteration_limit = 2;
  run(s, r, &o);
  eg_graph *g;
  eg_node *node, fa, gz, ha, ga;
  ck_assert_int_eq(eg_sat_replay(s, r, &g, &node, NULL), ISO_OK);
  ck_assert(!eg_add_term(g, "(f a)", 5, &fa, NULL) && !eg_add_term(g, "(g zzz)", 7, &gz, NULL));
  ck_assert(!eg_add_term(g, "(g a)", 5, &ga, NULL) && !eg_add_term(g, "(h a)", 5, &ha, NULL));
  size_t asked = 0;
  eg_rule_check check = {g, r, refuse, &asked};
  ck_assert(!eg_rule_check_step(&check, &(eg_step){fa, gz, {EG_WHY_RULE, 0}}) && asked == 1);
  ck_assert(!eg_rule_check_step(&check, &(eg_step){fa, fa, {EG_WHY_RULE, 0}}) && asked == 1);
  ck_assert(eg_rule_check_step(&check, &(eg_step){ga, ha, {EG_WHY_RULE + 1, 0}}) && asked == 1);
  ck_assert(eg_rule_check_step(&check, &(eg_step){ha, ga, {EG_WHY_RULE + 1, 0}}) && asked == 1);
  ck_assert(!eg_rule_check_step(&check, &(eg_step){gz, ha, {EG_WHY_RULE + 1, 0}}) && asked == 1);
  (void)c;
  free(node);
  eg_free(g);
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST

/* Equal e-nodes are told apart by how they are spelled, before and after a rebuild. */
START_TEST(congruent_terms_keep_their_spelling) {
  for (int rebuilt = 0; rebuilt < 2; rebuilt++) {
    eg_graph *g;
    eg_node n[4];
    const char *const text[] = {"(g a a)", "b", "(g b a)", "(g a b)"};
    ck_assert_int_eq(eg_new(NULL, &g, NULL), ISO_OK);
    for (int i = 0; i < 2; i++)
      ck_assert_int_eq(eg_add_term(g, text[i], strlen(text[i]), &n[i], NULL), ISO_OK);
    ck_assert_int_eq(
        eg_merge(g, (eg_node){eg_node_original(g, n[0], 0).i}, n[1], (eg_why){1, 0}, NULL), ISO_OK);
    if (rebuilt) ck_assert_int_eq(eg_rebuild(g, NULL), ISO_OK);
    for (int i = 2; i < 4; i++)
      ck_assert_int_eq(eg_add_term(g, text[i], strlen(text[i]), &n[i], NULL), ISO_OK);
    ck_assert_int_eq(eg_rebuild(g, NULL), ISO_OK);
    ck_assert_int_eq(eg_check(g, NULL), ISO_OK);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        eg_step *step;
        size_t k;
        bool ok;
        ck_assert_int_eq(eg_equal(g, n[i], n[j]), (i == 1) == (j == 1));
        if (!eg_equal(g, n[i], n[j])) continue;
        ck_assert(i == j || n[i].i != n[j].i);
        ck_assert_int_eq(eg_explain(g, n[i], n[j], &step, &k, NULL), ISO_OK);
        ck_assert_int_eq(eg_proof_check(g, step, k, n[i], n[j], NULL, NULL, &ok, NULL, NULL),
                         ISO_OK);
        ck_assert(ok && (k > 0) == (i != j));
        free(step);
      }
    ck_assert_uint_eq(eg_count_nodes(g), 3); /* a, b and one g */
    eg_free(g);
  }
}
END_TEST

/* ---- costs in files ---- */

static double listed(void *ctx, const eg_sat *s, eg_row row) {
  (void)s;
  return ((double *)ctx)[row.i];
}
static double listed_tree(void *ctx, const eg_sat *s, eg_row row, const double *child, size_t n) {
  double sum = listed(ctx, s, row);
  for (size_t k = 0; k < n; k++) sum += child[k];
  return sum;
}

START_TEST(costs_go_through_files) {
  static const char text[] =
      "{\"nodes\": {\"n0\": {\"op\": \"x\", \"children\": [], \"eclass\": \"p\", \"cost\": 2.5},"
      "\"n1\": {\"op\": \"y\", \"children\": [], \"eclass\": \"p\", \"cost\": 1e1, \"subsumed\": "
      "false},"
      "\"n2\": {\"op\": \"f\", \"children\": [\"n0\"], \"eclass\": \"q\", \"cost\": 7},"
      "\"n3\": {\"op\": \"f\", \"children\": [\"n1\"], \"eclass\": \"q\", \"cost\": 4},"
      "\"n4\": {\"op\": \"g\", \"children\": [\"n1\", \"n0\"], \"eclass\": \"q\"}},"
      "\"root_eclasses\": [\"q\"], \"class_data\": {\"p\": {\"type\": \"Math\"}}}";
  char *copy = (char *)(uintptr_t)text;
  size_t n = sizeof text - 1;
  for (int round = 0; round < 2; round++) {
    eg_sat *s = graph(false);
    eg_class *root;
    size_t n_roots;
    double *cost;
    iso_error err;
    eg_extract *x;
    ck_assert_msg(!eg_sat_read_json(s, copy, n, &root, &n_roots, &cost, &err), "%s", err.msg);
    if (round) free(copy);
    ck_assert(n_roots == 1 && eg_sat_count_nodes(s) == 4 && eg_sat_count_classes(s) == 2);
    const eg_cost c = {cost, listed_tree, listed};
    ck_assert_int_eq(eg_extract_new(s, &c, &x, NULL), ISO_OK);
    ck_assert(eg_extract_cost(x, root[0]) ==
              1 + 2.5 + 2.5); /* g, for which nothing is said; f has the least of its two */
    eg_extract_free(x);
    double least = HUGE_VAL;
    for (eg_row r = eg_sat_first(s, root[0]); r.i; r = eg_sat_next(s, r))
      if (!strcmp(eg_sat_op_name(s, eg_sat_row_op(s, r)), "f")) least = cost[r.i];
    ck_assert(least == 4);
    FILE *f = open_memstream(&copy, &n);
    ck_assert(f && eg_sat_write_json(s, &c, root, 1, f) && !fclose(f));
    if (round) free(copy);
    free(cost);
    free(root);
    eg_sat_free(s);
  }
  eg_sat *s = graph(false);
  static const char *const bad[] = {"-1", "\"2\"", "1e999", "", "nan", "1..2"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char file[200];
    sprintf(
        file,
        "{\"nodes\": {\"n\": {\"op\": \"x\", \"children\": [], \"eclass\": \"p\", \"cost\": %s}}}",
        bad[i]);
    ck_assert_msg(eg_sat_read_json(s, file, strlen(file), NULL, NULL, NULL, NULL) == ISO_FORMAT,
                  "%s", bad[i]);
  }
  eg_sat_free(s);
}
END_TEST

/* A tower whose top comes first. */
START_TEST(files_in_any_order) {
  enum { HEIGHT = 50000 };
  eg_sat *s = graph(false);
  char *text;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  ck_assert(f);
  fputs("{\"nodes\": {", f);
  for (int i = HEIGHT; i > 0; i--)
    fprintf(f, "\"n%d\": {\"op\": \"f\", \"children\": [\"n%d\"], \"eclass\": \"c%d\"},", i, i - 1,
            i);
  fputs("\"n0\": {\"op\": \"a\", \"children\": [], \"eclass\": \"c0\"}}}", f);
  ck_assert(!fclose(f));
  ck_assert_int_eq(eg_sat_read_json(s, text, n, NULL, NULL, NULL, NULL), ISO_OK);
  ck_assert_uint_eq(eg_sat_count_nodes(s), HEIGHT + 1);
  free(text);
  eg_sat_free(s);
}
END_TEST

/* A pruned class without a leaf has nothing to be named by: what is above it is left out. */
START_TEST(files_of_pruned_classes) {
  eg_sat *s = graph(false), *t = graph(false);
  const eg_class c = term(s, "(f (g a))");
  char *text;
  size_t n;
  eg_sat_prune(s, term(s, "(g a)"));
  FILE *f = open_memstream(&text, &n);
  ck_assert(f && eg_sat_write_json(s, NULL, NULL, 0, f) && !fclose(f));
  ck_assert_int_eq(eg_sat_read_json(t, text, n, NULL, NULL, NULL, NULL), ISO_OK);
  ck_assert_uint_eq(eg_sat_count_nodes(t), 1);
  (void)c;
  free(text);
  eg_sat_free(t);
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
  tcase_add_test(t, search_is_limited);
  tcase_add_test(t, guarded_search_is_limited);
  tcase_add_test(t, exploding_rule_is_named);
  tcase_add_test(t, cost_sees_the_e_node);
  tcase_add_test(t, terms_are_explained_as_written);
  tcase_add_test(t, names_of_classes_are_asked_about);
  tcase_add_test(t, congruent_terms_keep_their_spelling);
  tcase_add_test(t, costs_go_through_files);
  tcase_add_test(t, files_in_any_order);
  tcase_add_test(t, files_of_pruned_classes);
  tcase_add_test(t, misuse_is_an_error);
  tcase_add_test(t, replay_needs_its_rules);
  suite_add_tcase(suite, t);
  SRunner *r = srunner_create(suite);
  srunner_run_all(r, CK_ENV);
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
