/* Random rules run incrementally, in full, with a log, under backoff and joined, and by the
 * textbook e-graph, which must agree iteration by iteration. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "egraph/egraph.h"
#include "egraph/sat/query_int.h"
#include "tests/support/suite.h"
#include "tests/support/textbook.h"

enum { N_OPS = 5, N_RUNS = 400 };

static const struct {
  const char *name;
  uint32_t arity;
} ops[N_OPS] = {{"a", 0}, {"b", 0}, {"f", 1}, {"g", 2}, {"h", 3}};

/* ---- runs ---- */

static const char *const sides[] = {"?x",
                                    "a",
                                    "(f ?x)",
                                    "(g ?x ?y)",
                                    "(g ?y ?x)",
                                    "(g (f ?x) ?y)",
                                    "(f (g ?x ?y))",
                                    "(g ?x (g ?y ?z))",
                                    "(g (g ?x ?y) ?z)",
                                    "(f (f ?x))",
                                    "(g ?x a)",
                                    "(g ?x ?x)",
                                    "(h ?x ?y b)",
                                    "(g (f a) ?x)",
                                    "(h ?x (f ?y) ?x)",
                                    "(f a)"};
enum { N_SIDES = sizeof sides / sizeof *sides, MAX_ITER = 5 };

/* Rules that exchange children: what they make they need not be shown, where doing it twice does
 * nothing, and must be where it takes three times, or where a variable stands twice. */
static const char *const exchanges[][2] = {
    {"(g ?x ?y)", "(g ?y ?x)"},       {"(h ?x ?y ?z)", "(h ?y ?x ?z)"},
    {"(h ?x ?y ?z)", "(h ?z ?y ?x)"}, {"(h ?x ?y ?z)", "(h ?y ?z ?x)"},
    {"(h ?x ?y ?z)", "(h ?z ?x ?y)"}, {"(h ?x ?y ?x)", "(h ?y ?x ?y)"},
    {"(g ?x ?y)", "(g ?x ?x)"},       {"(h ?x ?y ?z)", "(h ?y ?x ?x)"}};
enum { N_EXCHANGES = sizeof exchanges / sizeof *exchanges };

/* Does every variable of b occur in a? */
static bool covers(const char *a, const char *b) {
  for (const char *v = "xyz"; *v; v++) {
    const char name[3] = {'?', *v, 0};
    if (strstr(b, name) && !strstr(a, name)) return false;
  }
  return true;
}

static size_t random_term(iso_rng *r, int depth, char *out) {
  const uint32_t op = depth ? (uint32_t)iso_rng_below(r, N_OPS) : (uint32_t)iso_rng_below(r, 2);
  if (!ops[op].arity) return (size_t)sprintf(out, "%s", ops[op].name);
  size_t n = (size_t)sprintf(out, "(%s", ops[op].name);
  for (uint32_t k = 0; k < ops[op].arity; k++) {
    out[n++] = ' ';
    n += random_term(r, depth - 1, out + n);
  }
  return n + (size_t)sprintf(out + n, ")");
}

static size_t random_workload(iso_rng *r, char *out) {
  size_t n = (size_t)sprintf(out, "(workload (rules");
  for (uint64_t i = 0, m = 1 + iso_rng_below(r, 4); i < m;) {
    const char *a = sides[iso_rng_below(r, N_SIDES)], *b = sides[iso_rng_below(r, N_SIDES)];
    if (iso_rng_below(r, 4) == 0) {
      const char *const *both = exchanges[iso_rng_below(r, N_EXCHANGES)];
      a = both[0], b = both[1];
    }
    if (!covers(a, b)) continue;
    n += (size_t)sprintf(out + n, " (rule r%d %s %s)", (int)i++, a, b);
  }
  n += (size_t)sprintf(out + n, ") (start");
  for (uint64_t i = 0, m = 1 + iso_rng_below(r, 3); i < m; i++) {
    n += (size_t)sprintf(out + n, " (term ");
    n += random_term(r, 3, out + n);
    n += (size_t)sprintf(out + n, ")");
  }
  return n + (size_t)sprintf(out + n, ") (measure (run (scheduler simple) (iteration-limit %d))))",
                             MAX_ITER);
}

typedef struct counts {
  size_t n, nodes[MAX_ITER + 1], classes[MAX_ITER + 1], matches[MAX_ITER + 1];
} counts;

static bool note(void *ctx, eg_sat *s, size_t i, const eg_iteration *it) {
  counts *c = ctx;
  iso_error err;
  ck_assert_msg(!eg_sat_check(s, &err), "iteration %zu: %s", i, err.msg);
  c->nodes[i] = it->nodes;
  c->classes[i] = it->classes;
  c->matches[i] = it->matches;
  c->n = i;
  return it->nodes < 3000;
}

static iso_code always(void *ctx, eg_sat *s, const eg_class *var, bool *holds, iso_error *err) {
  (void)ctx, (void)s, (void)var, (void)err;
  *holds = true;
  return ISO_OK;
}

/* How: incrementally; in full; in full with a log; under backoff; likewise with a condition, so
 * that no match may be left out as one that was applied before; and both with programs that are
 * given up soon, and with patterns that are joined at once. */
enum {
  INCREMENTAL,
  FULL,
  LOGGED,
  BACKOFF,
  BACKOFF_ALL,
  GIVEN_UP,
  GIVEN_UP_BACKOFF,
  JOINED,
  JOINED_BACKOFF,
  N_WAYS
};

/* All of a graph: its e-nodes with their classes, and the class of each id. Owns: the text. */
static char *whole(const eg_sat *s) {
  char *text = NULL;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  ck_assert_ptr_nonnull(f);
  ck_assert(eg_sat_write_json(s, NULL, NULL, 0, f));
  for (uint32_t i = 0; i < eg_sat_count_ids(s); i++)
    fprintf(f, "%u ", eg_sat_find(s, (eg_class){i}).i);
  ck_assert_int_eq(fclose(f), 0);
  return text;
}

/* Returns: the graph that `jobs` threads came to. */
static char *run_by(const eg_workload *w, int way, unsigned jobs, counts *out) {
  const bool log = way == LOGGED;
  const eg_sat_options so = {.log = log};
  eg_sat *s;
  eg_rules *r;
  eg_run_report report;
  eg_run_options o = eg_run_options_default();
  ck_assert_int_eq(eg_sat_new(&so, &s, NULL), ISO_OK);
  ck_assert_int_eq(eg_workload_start(w, s, NULL, NULL), ISO_OK);
  ck_assert_int_eq(eg_rules_new(s, &r, NULL), ISO_OK);
  for (size_t i = 0; i < w->n_rules; i++) {
    const eg_rule rule = {.name = w->rule[i].name,
                          .lhs = w->rule[i].lhs,
                          .rhs = w->rule[i].rhs,
                          .condition = way == BACKOFF_ALL ? always : NULL};
    ck_assert_int_eq(eg_rules_add(r, &rule, NULL), ISO_OK);
  }
  o.iteration_limit = MAX_ITER;
  o.jobs = jobs;
  o.grain = 1;
  for (size_t k = 0; way >= GIVEN_UP && k < r->n; k++)
    if (egi_join_can(r->rule[k].query))
      r->rule[k].query->patience = way < JOINED, r->rule[k].query->least = 0;
  o.full_search = way != INCREMENTAL && way != GIVEN_UP && way != JOINED;
  if (way >= BACKOFF && way != GIVEN_UP && way != JOINED)
    o.scheduler = EG_BACKOFF, o.match_limit = 6, o.ban_length = 1;
  o.each = note;
  o.ctx = out;
  ck_assert_int_eq(eg_sat_run(s, r, &o, &report, NULL), ISO_OK);
  if (log) {
    eg_graph *g;
    eg_node *node;
    ck_assert_int_eq(eg_sat_replay(s, r, &g, &node, NULL), ISO_OK);
    for (uint32_t c = 0; c < eg_sat_count_ids(s); c++)
      ck_assert_msg(eg_equal(g, node[c], node[eg_sat_find(s, (eg_class){c}).i]),
                    "class %u has no reason", c);
    free(node);
    eg_free(g);
  }
  char *text = whole(s);
  eg_rules_free(r);
  eg_sat_free(s);
  return text;
}

/* Threads come to the same graph, to the last id. */
static void run(const eg_workload *w, int way, counts *out) {
  counts c = {0};
  char *alone = run_by(w, way, 1, out), *text = run_by(w, way, 3, &c);
  ck_assert_msg(!memcmp(out, &c, sizeof c) && !strcmp(alone, text), "threads, way %d", way);
  free(alone);
  free(text);
}

/* How many matches are new depends on which ids survive, and so on the order of matches. */
static void expect_same_however_searched(const counts *c, const char *text) {
  const counts *full = &c[BACKOFF], *part = &c[INCREMENTAL];
  for (int way = GIVEN_UP; way < N_WAYS; way += 2) {
    ck_assert_msg(!memcmp(full, &c[way + 1], sizeof *c), "%s: way %d", text, way + 1);
    ck_assert_msg(part->n == c[way].n && !memcmp(part->nodes, c[way].nodes, sizeof part->nodes) &&
                      !memcmp(part->classes, c[way].classes, sizeof part->classes),
                  "%s: way %d", text, way);
  }
}

START_TEST(runs_agree) {
  static char text[1 << 16];
  iso_rng rng = iso_rng_new((uint64_t)_i, 9);
  for (int k = 0; k < N_RUNS / 20; k++) {
    eg_workload *w;
    counts c[N_WAYS] = {0};
    const size_t n = random_workload(&rng, text);
    ck_assert_int_eq(eg_workload_parse(text, n, "random", &w, NULL), ISO_OK);
    for (int way = 0; way < N_WAYS; way++) run(w, way, &c[way]);
    ck_assert_msg(!memcmp(&c[BACKOFF], &c[BACKOFF_ALL], sizeof *c), "%s: under backoff", text);
    expect_same_however_searched(c, text);
    textbook *t = textbook_new();
    ck_assert(textbook_load(t, w));
    for (size_t i = 0; i <= c[1].n; i++) {
      bool changed;
      const size_t matches = i ? textbook_iterate(t, &changed) : 0;
      ck_assert_msg(c[1].nodes[i] == textbook_count_nodes(t) &&
                        c[1].classes[i] == textbook_count_classes(t) &&
                        (!i || c[1].matches[i] == matches),
                    "%s: iteration %zu: %zu %zu %zu, textbook %zu %zu %zu", text, i, c[1].nodes[i],
                    c[1].classes[i], c[1].matches[i], textbook_count_nodes(t),
                    textbook_count_classes(t), matches);
      for (int m = INCREMENTAL; m <= LOGGED; m += LOGGED)
        ck_assert_msg(c[m].nodes[i] == c[1].nodes[i] && c[m].classes[i] == c[1].classes[i],
                      "%s: mode %d, iteration %zu", text, m, i);
    }
    textbook_free(t);
    eg_workload_free(w);
  }
}
END_TEST

/* ---- rules of several classes: incrementally, in full, and with a log ---- */

static const char *const several[][2] = {{"?p = (g ?x ?y), ?q = (g ?y ?z)", "?p = (g ?x ?z)"},
                                         {"?p = (f ?x), ?q = (g ?x ?y)", "?p = ?q"},
                                         {"(f ?x), (f ?y)", "(g ?x ?y)"},
                                         {"?p = (f ?x), (g ?p ?y)", "?x = (f ?y)"},
                                         {"?p = (g ?x ?x), a", "?p = a, ?x = (f a)"},
                                         {"(g ?x ?y)", "?y = (f ?x)"},
                                         {"(h ?x ?y ?z), (f ?x)", "(g ?y ?z)"},
                                         {"?p = (f ?x) = (g ?x ?y)", "?p = (f ?y) = ?y"},
                                         {"?p = (g ?x ?y), (g ?y ?z), (g ?z ?x)", "?p = (f ?x)"},
                                         {"(g ?x ?y), (f ?y), (g ?y ?z)", "(g ?x ?z)"}};
enum { N_SEVERAL = sizeof several / sizeof *several };

static size_t random_several(iso_rng *r, char *out) {
  size_t n = (size_t)sprintf(out, "(workload (rules");
  for (int i = 0, m = 1 + (int)iso_rng_below(r, 3); i < m; i++) {
    const size_t k = iso_rng_below(r, N_SEVERAL);
    n += (size_t)sprintf(out + n, " (multi-rule r%d \"%s\" \"%s\")", i, several[k][0],
                         several[k][1]);
  }
  n += (size_t)sprintf(out + n, " (rule s (g ?x (f ?y)) (g (f ?x) ?y))) (start");
  for (uint64_t i = 0, m = 2 + iso_rng_below(r, 3); i < m; i++) {
    n += (size_t)sprintf(out + n, " (term ");
    n += random_term(r, 3, out + n);
    n += (size_t)sprintf(out + n, ")");
  }
  return n + (size_t)sprintf(out + n, ") (measure (run (scheduler simple) (iteration-limit %d))))",
                             MAX_ITER);
}

START_TEST(several_classes_agree) {
  static char text[1 << 16];
  iso_rng rng = iso_rng_new((uint64_t)_i, 11);
  for (int k = 0; k < N_RUNS / 20; k++) {
    eg_workload *w;
    counts c[N_WAYS] = {0};
    const size_t n = random_several(&rng, text);
    ck_assert_int_eq(eg_workload_parse(text, n, "random", &w, NULL), ISO_OK);
    for (int way = INCREMENTAL; way < N_WAYS; way++) run(w, way, &c[way]);
    expect_same_however_searched(c, text);
    for (int mode = 0; mode < 3; mode += 2)
      for (size_t i = 0; i <= c[1].n; i++)
        ck_assert_msg(c[mode].n == c[1].n && c[mode].nodes[i] == c[1].nodes[i] &&
                          c[mode].classes[i] == c[1].classes[i],
                      "%s: mode %d, iteration %zu", text, mode, i);
    eg_workload_free(w);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("runs");
  TCase *t = tcase_create("runs");
  tcase_set_timeout(t, 3600);
  tcase_add_loop_test(t, runs_agree, 0, 20);
  tcase_add_loop_test(t, several_classes_agree, 0, 20);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
