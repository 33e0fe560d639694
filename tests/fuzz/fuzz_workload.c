/* Workload files, patterns and serialised e-graphs: any bytes give an error or an e-graph that
 * keeps its invariants; and written as JSON it reads back to as many e-nodes and classes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/egraph.h"
#include "egraph/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(eg_sat *s) {
  iso_error err;
  if (eg_sat_check(s, &err)) abort();
}

static void again(const eg_sat *s) {
  char *text = NULL;
  size_t n = 0;
  eg_sat *t = NULL;
  FILE *f = open_memstream(&text, &n);
  if (!f || !eg_sat_write_json(s, NULL, NULL, 0, f) || fclose(f) || eg_sat_new(NULL, &t, NULL))
    abort();
  if (eg_sat_read_json(t, text, n, NULL, NULL, NULL, NULL) == ISO_OK) {
    check(t);
    if (eg_sat_count_nodes(s) != eg_sat_count_nodes(t) ||
        eg_sat_count_classes(s) != eg_sat_count_classes(t))
      abort();
  } else if (memchr(text, '\\', n) == NULL) {
    abort(); /* all classes have terms here; names that need an escape may not survive */
  }
  eg_sat_free(t);
  free(text);
}

/* No class needs itself by the choices, and no bound is above their cost. */
static void extract(const eg_sat *s, const eg_class *root, size_t n_roots) {
  eg_extract *x = NULL;
  eg_dag dag;
  double cost;
  if (eg_extract_new(s, NULL, &x, NULL)) abort();
  if (eg_extract_dag_all(x, root, n_roots, 10000, &dag, NULL) || dag.bound > dag.cost) abort();
  for (size_t i = 0; i < n_roots; i++)
    if (eg_extract_dag_cost(x, root[i], &cost, NULL) || cost > dag.cost) abort();
  eg_extract_free(x);
}

static void run(const eg_workload *w, eg_sat *s) {
  eg_rules *r = NULL;
  eg_run_report report;
  eg_run_options o = eg_run_options_default();
  o.iteration_limit = 3;
  o.node_limit = 2000;
  o.mem_limit_bytes = 16 << 20; /* a pattern of several classes may match very often */
  if (eg_rules_new(s, &r, NULL)) abort();
  for (size_t i = 0; i < w->n_rules; i++) {
    const eg_rule rule = {.name = w->rule[i].name, .lhs = w->rule[i].lhs, .rhs = w->rule[i].rhs};
    (void)!eg_rules_add(r, &rule, NULL);
  }
  if (eg_sat_run(s, r, &o, &report, NULL) == ISO_OK) check(s);
  eg_rules_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const char *text = (const char *)data;
  eg_workload *w = NULL;
  eg_sat *s = NULL;
  eg_pattern *p = NULL;
  double *cost = NULL;
  eg_class *root = NULL;
  size_t n_roots = 0;
  if (eg_sat_new(NULL, &s, NULL)) abort();
  if (eg_workload_parse(text, n, "fuzz", &w, NULL) == ISO_OK && !w->closure &&
      eg_workload_start(w, s, NULL, NULL) == ISO_OK) {
    check(s);
    again(s);
    run(w, s);
  }
  eg_workload_free(w);
  if (eg_pattern_parse(s, text, n, &p, NULL) == ISO_OK) eg_pattern_free(p);
  eg_sat_free(s);
  if (eg_sat_new(NULL, &s, NULL)) abort();
  if (eg_sat_read_json(s, text, n, &root, &n_roots, &cost, NULL) == ISO_OK) {
    check(s);
    extract(s, root, n_roots);
    again(s);
  }
  free(cost);
  free(root);
  eg_sat_free(s);
  return 0;
}
