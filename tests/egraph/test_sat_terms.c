/* Results of an eg_sat: terms of least cost by a caller's prices, explanations whose steps
 * are held against the rules, terms looked up, files. */
#include "tests/egraph/sat_api.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

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

/* A class's name is not to be read off a step: neither accepted nor refused by the library.
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

/* A pruned class without a leaf cannot be named: the terms above it are left out. */
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

int main(void) {
  Suite *suite = suite_create("sat_terms");
  TCase *t = tcase_create("sat_terms");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, cost_sees_the_e_node);
  tcase_add_test(t, terms_are_explained_as_written);
  tcase_add_test(t, names_of_classes_are_asked_about);
  tcase_add_test(t, congruent_terms_keep_their_spelling);
  tcase_add_test(t, costs_go_through_files);
  tcase_add_test(t, files_in_any_order);
  tcase_add_test(t, files_of_pruned_classes);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
