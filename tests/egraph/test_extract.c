/* The best DAGs against all choices there are: drawn graphs with circles, and families of exclusive
 * choices that share sub-terms. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "egraph/egraph.h"
#include "tests/support/suite.h"

enum { MAX_CLASSES = 24, MAX_NODES = 6, MAX_KIDS = 8, N_GRAPHS = 400 };

typedef struct graph {
  int n_cls, n_root, root[3];
  int n_node[MAX_CLASSES], n_kid[MAX_CLASSES][MAX_NODES], kid[MAX_CLASSES][MAX_NODES][MAX_KIDS];
  double cost[MAX_CLASSES][MAX_NODES];
} graph;

static int below(iso_rng *r, int n) { return (int)iso_rng_below(r, (uint64_t)n); }

/* Any class may need any: many a choice runs in a circle. */
static void draw(iso_rng *r, graph *g) {
  *g = (graph){.n_cls = 2 + below(r, 6), .n_root = 1 + below(r, 2)};
  const double unit = below(r, 3) ? 1 : 0.37;
  for (int c = 0; c < g->n_cls; c++) {
    g->n_node[c] = 1 + below(r, 4);
    for (int m = 0; m < g->n_node[c]; m++) {
      g->n_kid[c][m] = below(r, 4);
      g->cost[c][m] = unit * below(r, 10);
      for (int k = 0; k < g->n_kid[c][m]; k++)
        g->kid[c][m][k] = below(r, 3) ? below(r, g->n_cls) : g->n_cls - 1 - below(r, (c / 2) + 1);
    }
  }
  for (int i = 0; i < g->n_root; i++) g->root[i] = below(r, g->n_cls);
}

/* The root needs some classes, each of which chooses among sets of shared ones. */
static void exclusive(iso_rng *r, graph *g) {
  const int n_choice = 3 + below(r, 4), n_shared = 4 + below(r, 8);
  *g = (graph){.n_cls = 1 + n_choice + n_shared, .n_root = 1};
  g->n_node[0] = 1;
  g->n_kid[0][0] = n_choice;
  for (int i = 0; i < n_choice; i++) {
    const int c = g->kid[0][0][i] = 1 + i;
    g->n_node[c] = 2 + below(r, 3);
    for (int m = 0; m < g->n_node[c]; m++) {
      g->cost[c][m] = below(r, 3);
      g->n_kid[c][m] = 1 + below(r, 4);
      for (int k = 0; k < g->n_kid[c][m]; k++) g->kid[c][m][k] = 1 + n_choice + below(r, n_shared);
    }
  }
  for (int c = 1 + n_choice; c < g->n_cls; c++) {
    g->n_node[c] = 1;
    g->cost[c][0] = 1 + below(r, 12);
  }
}

static eg_sat *read_graph(const graph *g, eg_class **root, double **cost) {
  static char text[1 << 16];
  size_t n = (size_t)sprintf(text, "{\"nodes\": {"), n_root;
  for (int c = 0; c < g->n_cls; c++)
    for (int m = 0; m < g->n_node[c]; m++) {
      n += (size_t)sprintf(text + n,
                           "%s\"%d.%d\": {\"op\": \"f%d.%d\", \"eclass\": \"%d\", \"cost\": %.17g, "
                           "\"children\": [",
                           c || m ? ", " : "", c, m, c, m, c, g->cost[c][m]);
      for (int k = 0; k < g->n_kid[c][m]; k++)
        n += (size_t)sprintf(text + n, "%s\"%d.0\"", k ? ", " : "", g->kid[c][m][k]);
      n += (size_t)sprintf(text + n, "]}");
    }
  n += (size_t)sprintf(text + n, "}, \"root_eclasses\": [");
  for (int i = 0; i < g->n_root; i++)
    n += (size_t)sprintf(text + n, "%s\"%d\"", i ? ", " : "", g->root[i]);
  n += (size_t)sprintf(text + n, "]}");
  eg_sat *s;
  ck_assert_int_eq(eg_sat_new(NULL, &s, NULL), ISO_OK);
  if (!eg_sat_read_json(s, text, n, root, &n_root, cost, NULL)) return s;
  eg_sat_free(s); /* a class without a finite term */
  return NULL;
}

/* Of one choice for each class. HUGE_VAL where a class would need itself. */
static double cost_of(const graph *g, const int *choice, int c, int *seen) {
  if (seen[c]) return seen[c] == 1 ? HUGE_VAL : 0;
  seen[c] = 1;
  double sum = g->cost[c][choice[c]];
  for (int k = 0; k < g->n_kid[c][choice[c]]; k++)
    sum += cost_of(g, choice, g->kid[c][choice[c]][k], seen);
  seen[c] = 2;
  return sum;
}

static double best_of_all(const graph *g) {
  int choice[MAX_CLASSES] = {0}, c = 0;
  double best = HUGE_VAL;
  while (c < g->n_cls) {
    int seen[MAX_CLASSES] = {0};
    double sum = 0;
    for (int i = 0; i < g->n_root; i++) sum += cost_of(g, choice, g->root[i], seen);
    if (sum < best) best = sum;
    for (c = 0; c < g->n_cls && ++choice[c] == g->n_node[c]; c++) choice[c] = 0;
  }
  return best;
}

static double node_cost(void *ctx, const eg_sat *s, eg_row row) {
  (void)s;
  return ((const double *)ctx)[row.i];
}
static double tree_cost(void *ctx, const eg_sat *s, eg_row row, const double *child, size_t n) {
  double sum = node_cost(ctx, s, row);
  for (size_t k = 0; k < n; k++) sum += child[k];
  return sum;
}

/* Returns: whether it could be read, and how much better than one choice after another it got. */
static bool expect_best(iso_rng *r, const graph *g, double *gain) {
  eg_class *root = NULL;
  double *cost = NULL, one = 0;
  eg_sat *s = read_graph(g, &root, &cost);
  if (!s) return false;
  const double truth = best_of_all(g);
  const eg_cost how = {.ctx = cost, .tree = tree_cost, .node = node_cost};
  const size_t n = (size_t)g->n_root, works[] = {0, 1 + iso_rng_below(r, 400), 100000000};
  for (size_t i = 0; i < 3; i++) {
    eg_extract *x;
    eg_dag dag;
    double again;
    ck_assert_int_eq(eg_extract_new(s, &how, &x, NULL), ISO_OK);
    ck_assert_int_eq(eg_extract_dag_all(x, root, n, works[i], &dag, NULL), ISO_OK);
    ck_assert_msg(dag.cost >= truth - 1e-9, "%g, but %g is the best", dag.cost, truth);
    ck_assert_msg(dag.bound <= truth + 1e-9, "bound %g, best %g", dag.bound, truth);
    if (dag.optimal || i == 2) ck_assert(dag.optimal && fabs(dag.cost - truth) < 1e-9);
    if (i == 0) one = dag.cost;
    ck_assert_int_eq(eg_extract_dag_cost(x, root[0], &again, NULL), ISO_OK);
    ck_assert(n > 1 ? again <= dag.cost + 1e-9 : fabs(again - dag.cost) < 1e-9);
    for (uint32_t c = 0; c < eg_sat_count_ids(s); c++) { /* no class needs itself */
      ck_assert_int_eq(eg_extract_dag_cost(x, (eg_class){c}, &again, NULL), ISO_OK);
      ck_assert(again < HUGE_VAL);
    }
    eg_extract_free(x);
  }
  *gain += one - truth;
  free(root);
  free(cost);
  eg_sat_free(s);
  return true;
}

START_TEST(nothing_is_better) {
  iso_rng r = iso_rng_new((uint64_t)_i, 5);
  int n_read = 0;
  double gain = 0;
  for (int i = 0; i < N_GRAPHS; i++) {
    static graph g;
    if (i % 4) draw(&r, &g);
    else exclusive(&r, &g);
    n_read += expect_best(&r, &g, &gain);
  }
  ck_assert_int_gt(n_read, N_GRAPHS / 3);
  ck_assert(gain > 0); /* or these graphs would show nothing */
}
END_TEST

/* Items that are covered by lists of them; each list is paid once. By one choice after another no
 * change of one item's list helps. */
START_TEST(a_list_for_all_is_found) {
  enum { ITEMS = 12 };
  static graph g;
  eg_class *root = NULL;
  double *cost = NULL, gain = 0;
  iso_rng r = iso_rng_new(1, 6);
  g = (graph){.n_cls = 1 + ITEMS + 5, .n_root = 1};
  g.n_node[0] = 1;
  for (int c = 0; c < 5; c++) {
    const int list = 1 + ITEMS + c;
    g.n_node[list] = 1;
    g.cost[list][0] = c ? 13 : 37;
  }
  for (int i = 0; i < ITEMS; i++) {
    const int c = 1 + i;
    if (i < MAX_KIDS) g.kid[0][0][g.n_kid[0][0]++] = c;
    g.n_node[c] = 2;
    g.n_kid[c][0] = g.n_kid[c][1] = 1;
    g.kid[c][0][0] = 1 + ITEMS + 1 + i % 4; /* four lists of 13: 52 */
    g.kid[c][1][0] = 1 + ITEMS;             /* one list of 37 */
  }
  ck_assert(best_of_all(&g) == 37);
  ck_assert(expect_best(&r, &g, &gain));
  ck_assert(gain == 15);
  eg_sat *s = read_graph(&g, &root, &cost);
  eg_extract *x;
  eg_dag dag;
  const eg_cost how = {.ctx = cost, .tree = tree_cost, .node = node_cost};
  ck_assert_int_eq(eg_extract_new(s, &how, &x, NULL), ISO_OK);
  ck_assert_int_eq(eg_extract_dag(x, root[0], NULL), ISO_OK);
  ck_assert_int_eq(eg_extract_dag_cost(x, root[0], &gain, NULL), ISO_OK);
  ck_assert(gain == 52);
  ck_assert_int_eq(eg_extract_dag_all(x, root, 1, 10000, &dag, NULL), ISO_OK);
  ck_assert(dag.optimal && dag.cost == 37 && dag.bound == 37);
  eg_extract_free(x);
  eg_sat_free(s);
  free(root);
  free(cost);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("extract");
  TCase *t = tcase_create("extract");
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, nothing_is_better, 0, 20);
  tcase_add_test(t, a_list_for_all_is_found);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
