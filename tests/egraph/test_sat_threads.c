/* Several e-graphs in several threads at once: each must have the result of one alone. `make tsan`
 * runs this under -fsanitize=thread, where anything that two e-graphs share is an error. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/egraph.h"
#include "tests/support/suite.h"

enum { THREADS = 4, ROUNDS = 3 };

typedef struct result {
  iso_code code;
  size_t nodes, classes, matches;
  char *text;
} result;

static bool count(void *ctx, eg_class root, const eg_class *var) {
  (void)root, (void)var;
  ++*(size_t *)ctx;
  return true;
}

static void *saturate(void *out) {
  static const eg_rule rules[] = {
      {.name = "comm", .lhs = "(+ ?a ?b)", .rhs = "(+ ?b ?a)"},
      {.name = "assoc", .lhs = "(+ ?a (+ ?b ?c))", .rhs = "(+ (+ ?a ?b) ?c)"},
      {.name = "zero", .lhs = "(+ ?a 0)", .rhs = "?a"}};
  static const char term[] = "(+ a (+ b (+ c (+ d (+ e (+ 0 f))))))",
                    pattern[] = "(+ ?a (+ ?b ?c))";
  result *r = out;
  eg_sat *s = NULL;
  eg_rules *set = NULL;
  eg_pattern *p = NULL;
  eg_extract *x = NULL;
  eg_graph *g = NULL;
  eg_class c;
  eg_run_report report;
  size_t n = 0;
  const eg_sat_options log = {.log = true};
  const eg_run_options o = eg_run_options_default();
  r->code = eg_sat_new(&log, &s, NULL);
  if (!r->code) r->code = eg_sat_add_term(s, term, strlen(term), &c, NULL);
  if (!r->code) r->code = eg_rules_new(s, &set, NULL);
  for (size_t i = 0; i < sizeof rules / sizeof *rules && !r->code; i++)
    r->code = eg_rules_add(set, &rules[i], NULL);
  if (!r->code) r->code = eg_sat_run(s, set, &o, &report, NULL);
  if (!r->code) r->code = eg_sat_check(s, NULL);
  if (!r->code) r->code = eg_pattern_parse(s, pattern, strlen(pattern), &p, NULL);
  if (!r->code) r->code = eg_sat_match(s, p, count, &r->matches, &n, NULL);
  if (!r->code) r->code = eg_extract_new(s, NULL, &x, NULL);
  if (!r->code) r->code = eg_extract_text(x, c, &r->text, NULL);
  if (!r->code) r->code = eg_sat_replay(s, set, &g, NULL, NULL);
  if (!r->code) r->nodes = eg_sat_count_nodes(s), r->classes = eg_sat_count_classes(s);
  eg_free(g);
  eg_extract_free(x);
  eg_pattern_free(p);
  eg_rules_free(set);
  eg_sat_free(s);
  return NULL;
}

START_TEST(e_graphs_share_nothing) {
  result alone = {0}, r[THREADS];
  pthread_t thread[THREADS];
  saturate(&alone);
  ck_assert_int_eq(alone.code, ISO_OK);
  ck_assert_uint_eq(alone.classes, 64); /* the subsets of six leaves, and 0 */
  for (int round = 0; round < ROUNDS; round++) {
    memset(r, 0, sizeof r);
    for (int i = 0; i < THREADS; i++)
      ck_assert_int_eq(pthread_create(&thread[i], NULL, saturate, &r[i]), 0);
    for (int i = 0; i < THREADS; i++) {
      ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
      ck_assert_int_eq(r[i].code, ISO_OK);
      ck_assert_uint_eq(r[i].nodes, alone.nodes);
      ck_assert_uint_eq(r[i].classes, alone.classes);
      ck_assert_uint_eq(r[i].matches, alone.matches);
      ck_assert_str_eq(r[i].text, alone.text);
      free(r[i].text);
    }
  }
  free(alone.text);
}
END_TEST

/* ---- one e-graph, searched by several threads ---- */

/* Associative and commutative operators, absorption, distribution: many matches, classes that merge
 * and long lists. The last ones have several classes, several terms, and nothing to find. */
static const eg_rule many[] = {
    {.name = "+comm", .lhs = "(+ ?a ?b)", .rhs = "(+ ?b ?a)"},
    {.name = "*comm", .lhs = "(* ?a ?b)", .rhs = "(* ?b ?a)"},
    {.name = "+assoc", .lhs = "(+ ?a (+ ?b ?c))", .rhs = "(+ (+ ?a ?b) ?c)"},
    {.name = "*assoc", .lhs = "(* ?a (* ?b ?c))", .rhs = "(* (* ?a ?b) ?c)"},
    {.name = "distribute", .lhs = "(* ?a (+ ?b ?c))", .rhs = "(+ (* ?a ?b) (* ?a ?c))"},
    {.name = "factor", .lhs = "(+ (* ?a ?b) (* ?a ?c))", .rhs = "(* ?a (+ ?b ?c))"},
    {.name = "zero", .lhs = "(+ ?a 0)", .rhs = "?a"},
    {.name = "one", .lhs = "(* ?a 1)", .rhs = "?a"},
    {.name = "twice", .lhs = "(+ ?a ?a)", .rhs = "(* 2 ?a)"},
    {.name = "shared", .lhs = "?v = (* ?a ?b), ?w = (* ?a ?c), ?u = (+ ?v ?w)", .rhs = "(+ ?w ?v)"},
    {.name = "both", .lhs = "?v = (+ ?a ?b) = (* ?c ?d)", .rhs = "?v = (+ ?b ?a)"},
    {.name = "none", .lhs = "(+ (* ?a ?b) (* ?b (- ?a)))", .rhs = "0"}};

typedef struct setting {
  unsigned jobs;
  size_t grain, first; /* rules from this one on, around the end */
  bool backoff, full, log;
  size_t match_limit, iterations;
} setting;

/* The result of a run, to the last id. */
static char *run_as(const setting *a) {
  static const char term[] = "(+ (* a (+ b (* 2 c))) (+ (* b (+ c d)) (+ (* a d) (* 1 (+ 0 e)))))";
  eg_sat *s = NULL;
  eg_rules *set = NULL;
  eg_class c;
  eg_run_report report;
  char *text = NULL;
  size_t size;
  const eg_sat_options so = {.log = a->log};
  eg_run_options o = eg_run_options_default();
  o.scheduler = a->backoff ? EG_BACKOFF : EG_SIMPLE;
  o.match_limit = a->match_limit;
  o.ban_length = 2;
  o.jobs = a->jobs;
  o.grain = a->grain;
  o.full_search = a->full;
  o.iteration_limit = a->iterations;
  o.node_limit = 20000;
  ck_assert_int_eq(eg_sat_new(&so, &s, NULL), ISO_OK);
  ck_assert_int_eq(eg_sat_add_term(s, term, strlen(term), &c, NULL), ISO_OK);
  ck_assert_int_eq(eg_rules_new(s, &set, NULL), ISO_OK);
  for (size_t i = 0; i < sizeof many / sizeof *many; i++)
    ck_assert_int_eq(eg_rules_add(set, &many[(i + a->first) % (sizeof many / sizeof *many)], NULL),
                     ISO_OK);
  ck_assert_int_eq(eg_sat_run(s, set, &o, &report, NULL), ISO_OK);
  FILE *f = open_memstream(&text, &size);
  ck_assert_ptr_nonnull(f);
  fprintf(f, "%s %zu %zu %zu\n", eg_stop_name(report.stop), report.iterations, report.culprit,
          eg_sat_count_ids(s));
  ck_assert(eg_sat_write_json(s, NULL, &c, 1, f));
  for (uint32_t i = 0; i < eg_sat_count_ids(s); i++)
    fprintf(f, "%u ", eg_sat_find(s, (eg_class){i}).i);
  ck_assert_int_eq(fclose(f), 0);
  ck_assert_int_eq(eg_sat_check(s, NULL), ISO_OK);
  eg_rules_free(set);
  eg_sat_free(s);
  return text;
}

START_TEST(threads_find_what_one_finds) {
  for (size_t k = 0; k < 24; k++) {
    setting a = {.grain = 16,
                 .first = k % 12,
                 .backoff = k % 3 != 0,
                 .full = k % 4 == 1,
                 .log = k % 8 == 7,
                 .match_limit = k % 2 ? 30 : 200,
                 .iterations = k % 3 ? 14 : 6};
    char *alone = run_as(&a);
    for (a.jobs = 2; a.jobs <= 4; a.jobs++)
      for (a.grain = 1; a.grain <= 64; a.grain *= 8) {
        char *text = run_as(&a);
        ck_assert_msg(!strcmp(alone, text), "run %zu: %u threads, %zu rows each", k, a.jobs,
                      a.grain);
        free(text);
      }
    free(alone);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sat_threads");
  TCase *t = tcase_create("threads");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, e_graphs_share_nothing);
  tcase_add_test(t, threads_find_what_one_finds);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
