/* Fails the n-th allocation for n = 0, 1, 2, ... of adding, running rules, matching, extracting and
 * explaining, until all of it succeeds. Each time an error comes back, the graph can be rebuilt and
 * used on or freed, and nothing leaks. */
#include "tests/support/failalloc.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "egraph/egraph.h"
#include "egraph/sat/query_int.h"
#include "egraph/workload.h"
#include "tests/support/suite.h"

static const char text[] =
    "(workload (rules (rule comm (+ ?a ?b) (+ ?b ?a)) (rule assoc (+ ?a (+ ?b ?c)) (+ (+ ?a ?b) "
    "?c))"
    " (rule zero (+ ?a 0) ?a) (rule more ?a (+ ?a 0)) (rule dist (* ?a (+ ?b ?c)) (+ (* ?a ?b) (* "
    "?a ?c))))"
    " (start (let $t (* x (+ y (+ z 0)))) (term (f $t $t)) (union (* x x) (g y)))"
    " (measure (run (scheduler simple) (iteration-limit 3))))";

static void make(void *ctx, const eg_sat *s, eg_op op, const eg_class *child, size_t n,
                 void *data) {
  (void)ctx, (void)s, (void)op;
  int least = (int)n;
  for (size_t k = 0; k < n; k++) least += *(int *)eg_sat_data(s, child[k]);
  *(int *)data = least;
}
static unsigned join(void *ctx, const eg_sat *s, void *into, void *from) {
  (void)ctx, (void)s;
  int *a = into, b = *(int *)from;
  if (b == *a) return 0;
  if (b > *a) return EG_FROM_DIFFERS;
  *a = b;
  return EG_INTO_CHANGED;
}
static iso_code repair(void *ctx, eg_sat *s, eg_class c, iso_error *err) {
  (void)ctx;
  eg_op op;
  eg_class made;
  if (*(int *)eg_sat_data(s, c) != 2) return ISO_OK;
  iso_code code = eg_sat_op(s, "two", 3, 0, &op, err);
  if (!code) code = eg_sat_add(s, op, NULL, &made, err);
  return code;
}

static bool given(void *ctx, const eg_step *step) {
  (void)ctx;
  return step->why.kind == EG_WHY_GIVEN ||
         step->why.kind == EG_WHY_RULE + 5; /* the rule of several classes */
}

static bool count(void *ctx, eg_class root, const eg_class *var) {
  (void)root, (void)var;
  ++*(size_t *)ctx;
  return true;
}

/* Why the smallest term is equal to the one that was added, the steps held against the rules. */
static iso_code explain(eg_sat *s, const eg_rules *r, eg_class root, const char *term, eg_graph **g,
                        iso_error *err) {
  eg_node *node = NULL, to = {0};
  eg_step *step = NULL;
  char *back = NULL;
  size_t n = 0;
  bool ok = true;
  iso_code code = eg_sat_replay(s, r, g, &node, err);
  eg_rule_check check = {*g, r, given, NULL};
  if (!code) code = eg_add_term(*g, term, strlen(term), &to, err);
  if (!code) code = eg_rebuild(*g, err);
  if (!code) code = eg_node_text(*g, to, &back, err);
  if (!code) code = eg_explain(*g, node[root.i], to, &step, &n, err);
  if (!code)
    code =
        eg_proof_check(*g, step, n, node[root.i], to, eg_rule_check_step, &check, &ok, NULL, err);
  if (!code && (!ok || strcmp(back, term) != 0)) abort();
  free(step);
  free(back);
  free(node);
  return code;
}

static const char file[] = "{\"nodes\": {\"n\": {\"op\": \"f\", \"children\": [\"m\", \"m\"], "
                           "\"eclass\": \"p\", \"cost\": 2},"
                           "\"m\": {\"op\": \"a\", \"children\": [], \"eclass\": \"q\", \"cost\": "
                           "3}}, \"root_eclasses\": [\"p\"]}";
static iso_code read_file(iso_error *err) {
  eg_sat *s;
  eg_class *root = NULL;
  double *cost = NULL;
  size_t n;
  iso_code code = eg_sat_new(NULL, &s, err);
  if (code) return code;
  code = eg_sat_read_json(s, file, sizeof file - 1, &root, &n, &cost, err);
  if (!code && cost[eg_sat_first(s, root[0]).i] != 2) abort();
  free(root);
  free(cost);
  eg_sat_free(s);
  return code;
}

/* Everything once. Returns: the first error. */
static iso_code all(int mode, eg_sat **s, size_t *nodes, iso_error *err) {
  const eg_sat_options so = {.log = mode == 1,
                             .analysis = {.size = mode == 2 ? sizeof(int) : 0,
                                          .make = mode == 2 ? make : NULL,
                                          .join = join,
                                          .repair = repair}};
  eg_workload *w = NULL;
  eg_rules *r = NULL;
  eg_pattern *p = NULL;
  eg_extract *x = NULL;
  eg_graph *g = NULL;
  char *term = NULL;
  size_t n = 0, calls = 0;
  eg_class root[3];
  eg_run_report report;
  eg_run_options o = eg_run_options_default();
  o.iteration_limit = 3;
  if (mode == 3) o.scheduler = EG_BACKOFF, o.match_limit = 4;
  iso_code code = eg_sat_new(&so, s, err);
  if (!code) code = eg_workload_parse(text, sizeof text - 1, "text", &w, err);
  if (!code) code = eg_workload_start(w, *s, root, err);
  if (!code) code = eg_rules_new(*s, &r, err);
  for (size_t i = 0; !code && i < w->n_rules; i++) {
    const eg_rule rule = {.name = w->rule[i].name, .lhs = w->rule[i].lhs, .rhs = w->rule[i].rhs};
    code = eg_rules_add(r, &rule, err);
  }
  static const eg_rule more[] = {
      {.name = "several",
       .lhs = "?p = (f ?x ?y), ?q = (g ?z)",
       .rhs = "?q = (f ?y ?x), ?p = (f ?p ?z)"},
      {.name = "both", .lhs = "(* ?a ?b)", .rhs = "(* ?b ?a)", .both = true}};
  for (size_t i = 0; !code && i < 2; i++) code = eg_rules_add(r, &more[i], err);
  for (size_t i = 0; !code && mode == 4 && i < eg_rules_count(r); i++)
    if (egi_join_can(r->rule[i].query)) r->rule[i].query->patience = 0;
  bool found = false;
  if (!code) code = eg_sat_lookup_term(*s, "(* x (+ y (+ z 0)))", 19, &found, &root[2], err);
  if (!code && !found) abort();
  if (!code && mode == 1) code = read_file(err);
  if (!code) code = eg_sat_run(*s, r, &o, &report, err);
  if (!code) code = eg_pattern_parse(*s, "(+ ?a (+ ?b ?a))", 16, &p, err);
  if (!code) code = eg_sat_match(*s, p, count, &calls, &n, err);
  if (!code && n != calls) abort(); /* Check allocates */
  if (!code) code = eg_extract_new(*s, NULL, &x, err);
  if (!code) code = eg_extract_dag(x, root[1], err);
  eg_dag dag;
  if (!code) code = eg_extract_dag_all(x, root, 2, 1000, &dag, err);
  if (!code) code = eg_extract_text(x, root[1], &term, err);
  if (!code && mode == 1) code = explain(*s, r, root[1], term, &g, err);
  if (!code) *nodes = eg_sat_count_nodes(*s);
  free(term);
  eg_free(g);
  eg_extract_free(x);
  eg_pattern_free(p);
  eg_rules_free(r);
  eg_workload_free(w);
  return code;
}

START_TEST(every_allocation_may_fail) {
  size_t expected = 0, nodes = 0;
  eg_sat *s = NULL;
  ck_assert_int_eq(all(_i, &s, &expected, NULL), ISO_OK);
  eg_sat_free(s);
  for (long n = 0;; n++) {
    const long live = fail_live;
    iso_error err = {0};
    s = NULL;
    fail_arm(n);
    const iso_code code = all(_i, &s, &nodes, &err);
    const bool failed = fail_disarm();
    if (code) {
      ck_assert_int_eq(code, ISO_NOMEM);
      ck_assert(failed && err.msg[0]);
    } else {
      ck_assert_uint_eq(
          nodes, expected); /* what is not needed may be left out, the result may not differ */
    }
    if (s && code) {
      eg_class c;
      ck_assert_int_eq(eg_sat_rebuild(s, NULL), ISO_OK);
      ck_assert_msg(!eg_sat_check(s, &err), "allocation %ld: %s", n, err.msg);
      ck_assert_int_eq(eg_sat_add_term(s, "(late (+ x 0))", 14, &c, NULL), ISO_OK);
    }
    eg_sat_free(s);
    ck_assert_msg(fail_live == live, "allocation %ld: %ld blocks leak", n, fail_live - live);
    if (!failed) break;
  }
}
END_TEST

/* Large arrays are mappings, which the failing allocator does not see: here the address space ends.
 */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static size_t address_space(void) {
  unsigned long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f) {
    if (fscanf(f, "%lu", &pages) != 1) pages = 0;
    fclose(f);
  }
  return pages * 4096;
}

START_TEST(address_space_may_end) {
  static const eg_rule rules[] = {
      {.name = "comm", .lhs = "(+ ?a ?b)", .rhs = "(+ ?b ?a)"},
      {.name = "more", .lhs = "(+ ?a ?b)", .rhs = "(+ (+ ?a (g ?b)) (h ?a))"},
      {.name = "assoc", .lhs = "(+ ?a (+ ?b ?c))", .rhs = "(+ (+ ?a ?b) ?c)"}};
  eg_sat *s = NULL;
  eg_rules *r = NULL;
  eg_class c;
  eg_run_report report;
  iso_error err = {0};
  const eg_run_options o = {.scheduler = EG_SIMPLE};
  const size_t now = address_space();
  ck_assert_uint_gt(now, 0);
  ck_assert(!eg_sat_new(NULL, &s, &err) &&
            !eg_sat_add_term(s, "(+ a (+ b (+ c d)))", 19, &c, &err));
  ck_assert(!eg_rules_new(s, &r, &err));
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    ck_assert(!eg_rules_add(r, &rules[i], &err));
  const struct rlimit limit = {now + ((size_t)(5 + 3 * _i) << 20),
                               now + ((size_t)(5 + 3 * _i) << 20)};
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
  const iso_code code = eg_sat_run(s, r, &o, &report, &err);
  ck_assert_int_eq(code, ISO_NOMEM);
  ck_assert(err.msg[0]);
  ck_assert_int_eq(eg_sat_rebuild(s, NULL), ISO_OK);
  ck_assert_msg(!eg_sat_check(s, &err), "%s", err.msg);
  ck_assert_uint_gt(eg_sat_count_nodes(s), 1000);
  eg_rules_free(r);
  eg_sat_free(s);
}
END_TEST
#endif

int main(void) {
  Suite *suite = suite_create("sat_oom");
  TCase *t = tcase_create("oom");
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, every_allocation_may_fail, 0, 5);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  tcase_add_loop_test(t, address_space_may_end, 0, 6);
#endif
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
