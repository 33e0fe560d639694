/* Several e-graphs in several threads at once: each must come to what one alone comes to. `make
 * tsan` runs this under -fsanitize=thread, where anything that two e-graphs share is an error. */
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

int main(void) {
  Suite *suite = suite_create("sat_threads");
  TCase *t = tcase_create("threads");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, e_graphs_share_nothing);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
