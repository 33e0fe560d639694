/* Helpers of the tests of eg_sat's interface: graphs, terms, rules, a run that is checked. */
#ifndef TESTS_EGRAPH_SAT_API_H
#define TESTS_EGRAPH_SAT_API_H

#include <check.h>
#include <string.h>

#include "egraph/egraph.h"

static inline eg_sat *graph(bool log) {
  const eg_sat_options o = {.log = log};
  eg_sat *s;
  ck_assert_int_eq(eg_sat_new(&o, &s, NULL), ISO_OK);
  return s;
}
static inline eg_class term(eg_sat *s, const char *text) {
  eg_class c;
  iso_error err;
  ck_assert_msg(!eg_sat_add_term(s, text, strlen(text), &c, &err), "%s", err.msg);
  return c;
}
static inline eg_rules *rules(eg_sat *s, const eg_rule *rule, size_t n) {
  eg_rules *r;
  iso_error err;
  ck_assert_int_eq(eg_rules_new(s, &r, NULL), ISO_OK);
  for (size_t i = 0; i < n; i++) ck_assert_msg(!eg_rules_add(r, &rule[i], &err), "%s", err.msg);
  return r;
}
static inline bool equal(const eg_sat *s, eg_class a, eg_class b) {
  return eg_sat_find(s, a).i == eg_sat_find(s, b).i;
}
static inline bool has(eg_sat *s, const char *text, eg_class *c) {
  bool found;
  ck_assert_int_eq(eg_sat_lookup_term(s, text, strlen(text), &found, c, NULL), ISO_OK);
  return found;
}
static inline eg_run_report run(eg_sat *s, eg_rules *r, const eg_run_options *o) {
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

#endif
