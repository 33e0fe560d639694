/* Copies of long lists that serve search after search, and an arena without dead rows, against
 * copies made anew and an arena that keeps them: drawn graphs whose classes have many rows and
 * parents, changed and searched in drawn order. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "egraph/egraph.h"
#include "egraph/sat/query_int.h"
#include "tests/egraph/sat_api.h"
#include "tests/support/suite.h"

enum {
  LEAVES = 4,
  N_OPS = 3,
  STEPS = 40,
  MAX_MADE = 1000,
  MAX_MATCHES = 1 << 15,
  MAX_NODES = 1500
};

static const char *const patterns[] = {
    "(g ?x ?y)",        "(g (f ?x) ?y)",        "(g ?x (g ?y ?z))",  "(f (g ?x ?y))",
    "(h ?x (f ?x) ?y)", "(g (g ?x ?x) (f ?y))", "(g ?x ?y), (f ?x)", "?p = (f ?x), (g ?p ?y)"};
static const eg_rule drawn_rules[] = {
    {.name = "comm", .lhs = "(g ?x ?y)", .rhs = "(g ?y ?x)"},
    {.name = "assoc", .lhs = "(g ?x (g ?y ?z))", .rhs = "(g (g ?x ?y) ?z)"},
    {.name = "out", .lhs = "(g (f ?x) ?y)", .rhs = "(f (g ?x ?y))"},
    {.name = "drop", .lhs = "(h ?x (f ?x) ?y)", .rhs = "(g ?x ?y)"},
    {.name = "idem", .lhs = "(f (f (f ?x)))", .rhs = "(f ?x)"}};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns, N_RULES = 5, MAX_VARS = 4 };

typedef struct match {
  uint32_t cls[1 + MAX_VARS];
} match;
typedef struct matches {
  size_t n, n_vars;
  match at[MAX_MATCHES];
} matches;
static matches one, two;

/* The same calls made to both; `anew` forgets its copies before each search. */
typedef struct side {
  eg_sat *s;
  bool anew;
  eg_op leaf[LEAVES], op[N_OPS];
  eg_pattern *pattern[N_PATTERNS];
  eg_rules *rules;
  size_t n_made, n_rounds;
  eg_class made[MAX_MADE];
  iso_rng rng;                 /* of the callback */
  size_t round[STEPS * 12][3]; /* nodes, classes and matches of each iteration */
} side;

static bool collect(void *ctx, eg_class root, const eg_class *var) {
  matches *m = ctx;
  ck_assert_uint_lt(m->n, MAX_MATCHES);
  match *to = &m->at[m->n++];
  memset(to, 0, sizeof *to);
  to->cls[0] = root.i;
  for (size_t k = 0; k < m->n_vars; k++) to->cls[1 + k] = var[k].i;
  return true;
}

static int by_classes(const void *a, const void *b) { return memcmp(a, b, sizeof(match)); }

static void find(side *x, size_t k, matches *out) {
  size_t n;
  if (x->anew) egi_flat_drop(x->s);
  out->n = 0;
  out->n_vars = eg_pattern_count_vars(x->pattern[k]);
  ck_assert_int_eq(eg_sat_match(x->s, x->pattern[k], collect, out, &n, NULL), ISO_OK);
  qsort(out->at, out->n, sizeof *out->at, by_classes);
}

/* All that kept copies find is found again without them. */
static void expect_matches(side *x, size_t k) {
  find(x, k, &one);
  egi_flat_drop(x->s);
  find(x, k, &two);
  ck_assert_msg(one.n == two.n && !memcmp(one.at, two.at, one.n * sizeof *one.at),
                "%s: %zu matches, %zu anew", patterns[k], one.n, two.n);
}

static void add(side *x, size_t op, const size_t *kid) {
  eg_class child[N_OPS];
  for (size_t k = 0; k <= op; k++) child[k] = x->made[kid[k] % x->n_made];
  ck_assert_uint_lt(x->n_made, MAX_MADE);
  ck_assert_int_eq(eg_sat_add(x->s, x->op[op], child, &x->made[x->n_made], NULL), ISO_OK);
  x->n_made++;
}

static void begin(side *x, bool anew, uint64_t seed) {
  memset(x, 0, sizeof *x);
  x->s = graph(false);
  x->anew = anew;
  x->rng = iso_rng_new(seed, 5);
  for (size_t i = 0; i < LEAVES; i++) {
    ck_assert_int_eq(eg_sat_op(x->s, "abcd" + i, 1, 0, &x->leaf[i], NULL), ISO_OK);
    ck_assert_int_eq(eg_sat_add(x->s, x->leaf[i], NULL, &x->made[x->n_made++], NULL), ISO_OK);
  }
  for (size_t i = 0; i < N_OPS; i++)
    ck_assert_int_eq(eg_sat_op(x->s, "fgh" + i, 1, i + 1, &x->op[i], NULL), ISO_OK);
}

static void end(side *x) {
  for (size_t k = 0; k < N_PATTERNS; k++) eg_pattern_free(x->pattern[k]);
  eg_rules_free(x->rules);
  eg_sat_free(x->s);
}

/* Compiled when it is first asked for, between searches. */
static void need_pattern(side *x, size_t k) {
  if (x->pattern[k]) return;
  ck_assert_int_eq(eg_pattern_parse(x->s, patterns[k], strlen(patterns[k]), &x->pattern[k], NULL),
                   ISO_OK);
}

/* Of one side dead rows leave the arena; nobody may see it. */
static void compact(side *x) {
  iso_error err = {0};
  if (x->anew) return;
  egi_compact(x->s);
  ck_assert_uint_eq(x->s->n_dead, 0);
  ck_assert_msg(!eg_sat_check(x->s, &err), "%s", err.msg);
}

static bool note(void *ctx, eg_sat *s, size_t i, const eg_iteration *it) {
  side *x = ctx;
  (void)i;
  size_t *to = x->round[x->n_rounds++];
  to[0] = it->nodes, to[1] = it->classes, to[2] = it->matches;
  const size_t k = iso_rng_below(&x->rng, 3 * N_PATTERNS); /* drawn alike on both sides */
  if (k < N_PATTERNS && it->nodes < MAX_NODES) {
    need_pattern(x, k);
    if (!x->anew && iso_rng_below(&x->rng, 2)) expect_matches(x, k);
    else find(x, k, &one);
  }
  if (x->anew) egi_flat_drop(s);
  compact(x);
  return it->nodes < MAX_NODES;
}

static void saturate(side *x, uint64_t way) {
  eg_run_options o = eg_run_options_default();
  if (!x->rules) x->rules = rules(x->s, drawn_rules, N_RULES);
  o.iteration_limit = 3 + way % 6;
  if (way % 4) o.scheduler = EG_BACKOFF, o.match_limit = 20 << way % 4, o.ban_length = 1 + way % 2;
  o.each = note;
  o.ctx = x;
  run(x->s, x->rules, &o);
}

static void both(side *x, iso_rng *r, uint64_t what) {
  size_t n[4];
  for (size_t k = 0; k < 4; k++) n[k] = iso_rng_below(r, MAX_MADE);
  for (int i = 0; i < 2; i++) {
    side *y = &x[i];
    const eg_class a = y->made[n[0] % y->n_made], b = y->made[n[1] % y->n_made];
    if (what < 6) {
      need_pattern(y, n[3] % N_PATTERNS);
      if (y->anew) find(y, n[3] % N_PATTERNS, &one);
      else expect_matches(y, n[3] % N_PATTERNS);
    } else if (what < 8) {
      add(y, n[3] % N_OPS, n);
    } else if (what < 9) {
      ck_assert_int_eq(eg_sat_merge(y->s, a, b, (eg_why){1, 0}, NULL), ISO_OK);
    } else if (what < 10) {
      eg_sat_prune(y->s, a);
    } else {
      saturate(y, n[3]);
    }
    ck_assert_int_eq(eg_sat_rebuild(y->s, NULL), ISO_OK);
    compact(y);
  }
}

START_TEST(what_is_kept_or_moved_does_not_show) {
  static side x[2];
  iso_rng r = iso_rng_new((uint64_t)_i, 4);
  for (int i = 0; i < 2; i++) begin(&x[i], i == 1, (uint64_t)_i);
  for (size_t k = 0, n = 40 + iso_rng_below(&r, 200); k < n; k++) {
    const size_t op = iso_rng_below(&r, N_OPS),
                 kid[] = {iso_rng_below(&r, 6), iso_rng_below(&r, 20), iso_rng_below(&r, 200)};
    for (int i = 0; i < 2; i++) add(&x[i], op, kid);
  }
  for (int k = 0; k < STEPS && eg_sat_count_nodes(x[0].s) < MAX_NODES; k++) {
    both(x, &r, iso_rng_below(&r, 12));
    ck_assert_uint_eq(eg_sat_count_nodes(x[0].s), eg_sat_count_nodes(x[1].s));
    ck_assert_uint_eq(eg_sat_count_classes(x[0].s), eg_sat_count_classes(x[1].s));
    ck_assert_uint_eq(x[0].n_rounds, x[1].n_rounds);
    ck_assert_mem_eq(x[0].round, x[1].round, sizeof x[0].round);
  }
  for (int i = 0; i < 2; i++) end(&x[i]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("flat");
  TCase *t = tcase_create("flat");
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, what_is_kept_or_moved_does_not_show, 0, 300);
  suite_add_tcase(suite, t);
  return run_suite_here(suite);
}
