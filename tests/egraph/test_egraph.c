/* Units of the engine: ids, getters, merges, congruence, analysis, the check, pictures, size. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "egraph/egraph.h"
#include "egraph/graph/graph_int.h"
#include "tests/support/suite.h"

static eg_symbol sym(eg_graph *g, const char *name) {
  eg_symbol s;
  ck_assert_int_eq(eg_intern(g, name, strlen(name), &s, NULL), ISO_OK);
  return s;
}
static eg_node add(eg_graph *g, const char *name, size_t n, const eg_node *child) {
  eg_class c[8];
  eg_node out;
  for (size_t i = 0; i < n; i++) c[i] = eg_class_of(g, child[i]);
  ck_assert_int_eq(eg_add(g, sym(g, name), c, n, &out, NULL), ISO_OK);
  return out;
}
#define ADD(g, ...) ADD_(g, __VA_ARGS__, {EG_NONE})
#define ADD_(g, name, ...) \
  add(g, name, sizeof((eg_node[]){__VA_ARGS__}) / sizeof(eg_node) - 1, (eg_node[]){__VA_ARGS__})
static void merge(eg_graph *g, eg_node a, eg_node b) {
  ck_assert_int_eq(eg_merge(g, a, b, (eg_why){1, 0}, NULL), ISO_OK);
}
static void rebuild(eg_graph *g) {
  iso_error err;
  ck_assert_msg(!eg_rebuild(g, &err), "%s", err.msg);
  ck_assert_msg(!eg_check(g, &err), "%s", err.msg);
}
static eg_graph *graph(const eg_analysis *a) {
  eg_graph *g = NULL;
  ck_assert_int_eq(eg_new(a, &g, NULL), ISO_OK);
  return g;
}

START_TEST(empty_graph) {
  eg_graph *g = graph(NULL);
  rebuild(g);
  ck_assert_uint_eq(eg_count_nodes(g) + eg_count_classes(g) + eg_count_added(g), 0);
  eg_free(g);
  eg_free(NULL);
}
END_TEST

START_TEST(symbols) {
  eg_graph *g = graph(NULL);
  eg_symbol a = sym(g, "aten::mm"), b, c, e;
  ck_assert_int_eq(eg_intern(g, "x\0y", 3, &b, NULL), ISO_OK);
  ck_assert_int_eq(eg_intern(g, "x\0z", 3, &c, NULL), ISO_OK);
  ck_assert_int_eq(eg_intern(g, "", 0, &e, NULL), ISO_OK);
  ck_assert(a.i == 0 && b.i == 1 && c.i == 2 && e.i == 3);
  ck_assert_str_eq(eg_symbol_name(g, e), "");
  const char *name = eg_symbol_name(g, a);
  char many[16];
  for (int i = 0; i < 5000; i++) {
    snprintf(many, sizeof many, "s%d", i);
    ck_assert_uint_eq(sym(g, many).i, (unsigned)i + 4);
  }
  ck_assert_uint_eq(sym(g, "s4321").i, 4325);
  ck_assert_str_eq(name, "aten::mm"); /* borrowed until eg_free */
  eg_free(g);
}
END_TEST

START_TEST(equal_nodes_are_found) {
  eg_graph *g = graph(NULL);
  eg_node a = ADD(g, "a"), b = ADD(g, "b"), f = ADD(g, "f", a, b);
  ck_assert_uint_eq(ADD(g, "f", a, b).i, f.i);
  ck_assert_uint_ne(ADD(g, "f", b, a).i, f.i);
  ck_assert_uint_ne(ADD(g, "f", a).i, f.i);
  ck_assert_uint_ne(ADD(g, "g", a, b).i, f.i);
  ck_assert_uint_eq(eg_count_added(g), 6);
  ck_assert_uint_eq(eg_node_arity(g, f), 2);
  ck_assert_uint_eq(eg_node_symbol(g, f).i, sym(g, "f").i);
  merge(g, a, b);
  rebuild(g);
  /* f(a, b) = f(b, a) now, and both are found under either name. */
  eg_node again = ADD(g, "f", b, b);
  ck_assert(eg_equal(g, again, f));
  ck_assert_uint_eq(eg_count_added(g), 6);
  ck_assert_uint_eq(eg_count_nodes(g), 5);
  eg_free(g);
}
END_TEST

START_TEST(survivor_has_more_parents) {
  eg_graph *g = graph(NULL);
  eg_node a = ADD(g, "a"), b = ADD(g, "b"), c = ADD(g, "c");
  ADD(g, "f", b);
  merge(g, a, b);
  ck_assert_uint_eq(eg_class_of(g, a).i, b.i);
  eg_node d = ADD(g, "d");
  merge(g, d, c);
  ck_assert_uint_eq(eg_class_of(g, d).i, c.i); /* none has any: the smaller id */
  ck_assert_uint_eq(eg_find(g, (eg_class){d.i}).i, c.i);
  rebuild(g);
  eg_free(g);
}
END_TEST

START_TEST(congruence_goes_up) {
  eg_graph *g = graph(NULL);
  eg_node a = ADD(g, "a"), b = ADD(g, "b"), x = a, y = b;
  for (int i = 0; i < 100; i++) {
    x = ADD(g, "f", x);
    y = ADD(g, "f", y);
  }
  merge(g, a, b);
  ck_assert(!eg_equal(g, x, y)); /* deferred */
  rebuild(g);
  ck_assert(eg_equal(g, x, y));
  ck_assert_uint_eq(eg_count_classes(g), 101);
  ck_assert_uint_eq(eg_count_nodes(g), 102); /* a and b, and each f once */
  ck_assert_uint_eq(eg_count_added(g), 202);
  eg_free(g);
}
END_TEST

START_TEST(cycles) {
  eg_graph *g = graph(NULL);
  eg_node a = ADD(g, "a"), f = ADD(g, "f", a, a), h = ADD(g, "h", f);
  merge(g, a, f);
  rebuild(g);
  ck_assert_uint_eq(ADD(g, "f", f, a).i, f.i);
  merge(g, h, a);
  rebuild(g);
  ck_assert_uint_eq(eg_count_classes(g), 1);
  const eg_node *list;
  ck_assert_uint_eq(eg_class_parents(g, (eg_class){a.i}, &list), 2);
  ck_assert(list[0].i == f.i && list[1].i == h.i);
  eg_free(g);
}
END_TEST

START_TEST(lists_are_in_order) {
  eg_graph *g = graph(NULL);
  eg_node n[200], p[200];
  iso_rng rng = iso_rng_new(3, 0);
  char name[16];
  const eg_node *list;
  for (int i = 0; i < 200; i++) {
    snprintf(name, sizeof name, "v%d", i);
    n[i] = ADD(g, name);
  }
  for (int i = 0; i < 200; i++) {
    snprintf(name, sizeof name, "p%d", i);
    p[i] = ADD(g, name, n[i], n[(i + 1) % 200]);
  }
  for (int i = 0; i < 2000; i++) {
    merge(g, n[iso_rng_below(&rng, 200)], n[iso_rng_below(&rng, 200)]);
    if (i % 5 == 0) rebuild(g);
  }
  rebuild(g);
  size_t k = eg_class_nodes(g, (eg_class){0}, &list);
  ck_assert_uint_eq(k, 200);
  for (uint32_t i = 0; i < 200; i++) ck_assert_uint_eq(list[i].i, n[i].i);
  k = eg_class_parents(g, (eg_class){0}, &list);
  ck_assert_uint_eq(k, 200);
  for (uint32_t i = 0; i < 200; i++) ck_assert_uint_eq(list[i].i, p[i].i);
  eg_free(g);
}
END_TEST

/* Looking at lists changes no result. */
START_TEST(getters_leave_no_trace) {
  eg_graph *g[2] = {graph(NULL), graph(NULL)};
  for (int k = 0; k < 2; k++) {
    iso_rng rng = iso_rng_new(11, (uint64_t)_i);
    const eg_node *list;
    eg_node n[300];
    size_t m = 0;
    for (; m < 10; m++) n[m] = ADD(g[k], ((char[]){(char)('a' + m), 0}));
    while (m < 300) {
      n[m] = ADD(g[k], "f", n[iso_rng_below(&rng, m)], n[iso_rng_below(&rng, m)]);
      m++;
      if (m % 4 == 0) merge(g[k], n[iso_rng_below(&rng, m)], n[iso_rng_below(&rng, m)]);
      if (k)
        for (uint32_t i = 0; i < eg_count_added(g[k]); i++) {
          eg_class_nodes(g[k], (eg_class){i}, &list);
          eg_class_parents(g[k], (eg_class){i}, &list);
        }
      if (m % 50 == 0) ck_assert_int_eq(eg_rebuild(g[k], NULL), ISO_OK);
    }
    rebuild(g[k]);
  }
  ck_assert_uint_eq(eg_count_added(g[0]), eg_count_added(g[1]));
  ck_assert_uint_eq(g[0]->n_edges, g[1]->n_edges);
  ck_assert(!memcmp(g[0]->edge, g[1]->edge, g[0]->n_edges * sizeof *g[0]->edge));
  for (uint32_t i = 0; i < eg_count_added(g[0]); i++)
    ck_assert_uint_eq(eg_class_of(g[0], (eg_node){i}).i, eg_class_of(g[1], (eg_node){i}).i);
  eg_free(g[0]);
  eg_free(g[1]);
}
END_TEST

/* ---- analysis: constants folded; data is a malloc'ed long ---- */

typedef struct folding {
  long alive;
  int repairs, refuse; /* refuse so many repairs */
  bool clash;
} folding;

static long *number(folding *c, long v) {
  long *p = malloc(sizeof *p);
  *p = v;
  c->alive++;
  return p;
}
static void fold_free(void *ctx, void *data) {
  ((folding *)ctx)->alive--;
  free(data);
}
static void *fold_make(void *ctx, eg_graph *g, eg_node n) {
  const char *name = eg_symbol_name(g, eg_node_symbol(g, n));
  if (eg_node_arity(g, n) == 0)
    return name[0] >= '0' && name[0] <= '9' ? number(ctx, atol(name)) : NULL;
  if (strcmp(name, "+") != 0) return NULL;
  const long *a = eg_data(g, eg_node_child(g, n, 0)), *b = eg_data(g, eg_node_child(g, n, 1));
  return a && b ? number(ctx, *a + *b) : NULL;
}
static void *fold_join(void *ctx, eg_graph *g, eg_class c, void *into, void *from, bool *changed) {
  ck_assert_uint_eq(eg_find(g, c).i, c.i);
  if (*(long *)into != *(long *)from) ((folding *)ctx)->clash = true;
  fold_free(ctx, from);
  *changed = false;
  return into;
}
static iso_code fold_repair(void *ctx, eg_graph *g, eg_class c, void *data, iso_error *err) {
  folding *f = ctx;
  char name[24];
  eg_symbol s;
  eg_node n;
  f->repairs++;
  if (f->refuse > 0) {
    f->refuse--;
    return iso_fail(err, ISO_LIMIT, "not now");
  }
  snprintf(name, sizeof name, "%ld", *(long *)data);
  iso_code code = eg_intern(g, name, strlen(name), &s, err);
  if (!code) code = eg_add(g, s, NULL, 0, &n, err);
  if (!code) code = eg_merge(g, n, (eg_node){c.i}, (eg_why){2, 0}, err);
  return code;
}

START_TEST(analysis_folds_constants) {
  folding f = {0};
  const eg_analysis a = {&f, fold_make, fold_join, fold_repair, fold_free};
  eg_graph *g = graph(&a);
  eg_node x = ADD(g, "x"), two = ADD(g, "2"), sum = ADD(g, "+", x, two),
          top = ADD(g, "+", sum, sum);
  rebuild(g);
  ck_assert_ptr_null(eg_data(g, eg_class_of(g, top)));
  merge(g, x, ADD(g, "3"));
  rebuild(g);
  ck_assert_int_eq(*(long *)eg_data(g, eg_class_of(g, top)), 10);
  ck_assert(eg_equal(g, top, ADD(g, "10")) && eg_equal(g, sum, ADD(g, "5")));
  ck_assert(!f.clash && f.repairs >= 5);
  merge(g, top, two);
  rebuild(g);
  ck_assert(f.clash);
  eg_free(g);
  ck_assert_int_eq(f.alive, 0);
}
END_TEST

START_TEST(refused_repair_is_due_again) {
  folding f = {.refuse = 1};
  const eg_analysis a = {&f, fold_make, fold_join, fold_repair, fold_free};
  eg_graph *g = graph(&a);
  iso_error err;
  eg_node two = ADD(g, "2"), sum = ADD(g, "+", two, two);
  ck_assert_int_eq(eg_rebuild(g, &err), ISO_LIMIT);
  ck_assert_str_eq(err.msg, "not now");
  ck_assert_int_eq(eg_check(g, &err), ISO_INTERNAL); /* not rebuilt */
  rebuild(g);
  ck_assert(eg_equal(g, sum, ADD(g, "4")));
  eg_free(g);
  ck_assert_int_eq(f.alive, 0);
}
END_TEST

START_TEST(data_set_from_outside_goes_up) {
  folding f = {0};
  const eg_analysis a = {&f, fold_make, fold_join, NULL, fold_free};
  eg_graph *g = graph(&a);
  eg_node x = ADD(g, "x"), sum = ADD(g, "+", x, x), top = ADD(g, "+", sum, x);
  long *p = number(&f, 7);
  eg_set_data(g, eg_class_of(g, x), p);
  eg_set_data(g, eg_class_of(g, x), p);
  ck_assert_ptr_eq(eg_data(g, eg_class_of(g, x)), p);
  rebuild(g);
  ck_assert_int_eq(*(long *)eg_data(g, eg_class_of(g, top)), 21);
  eg_set_data(g, eg_class_of(g, x), NULL);
  rebuild(g);
  eg_free(g);
  ck_assert_int_eq(f.alive, 0);
}
END_TEST

START_TEST(data_without_callbacks) {
  eg_graph *g = graph(NULL);
  int one, two;
  eg_node a = ADD(g, "a"), b = ADD(g, "b"), c = ADD(g, "c");
  eg_set_data(g, eg_class_of(g, b), &one);
  merge(g, a, b);
  ck_assert_ptr_eq(eg_data(g, eg_class_of(g, a)), &one);
  eg_set_data(g, eg_class_of(g, c), &two);
  merge(g, c, a);
  ck_assert_ptr_eq(eg_data(g, eg_class_of(g, a)), &one);
  rebuild(g);
  eg_free(g);
}
END_TEST

/* ---- the check finds what is broken ---- */

enum { N_BREAKS = 14 };

static void break_it(eg_graph *g, int how, eg_node a, eg_node f, eg_node h) {
  switch (how) {
  case 0: g->up[a.i] = a.i, g->up[1] = 1; break;
  case 1: g->up[h.i] = eg_class_of(g, a).i; break;
  case 2: g->key[g->node[f.i].key] = sym(g, "other").i; break;
  case 3: g->cls[egi_find(g, a.i)].parents.n = g->cls[egi_find(g, a.i)].parents.sorted = 1; break;
  case 4: g->cls[egi_find(g, a.i)].nodes.n = g->cls[egi_find(g, a.i)].nodes.sorted = 1; break;
  case 5: egi_table_remove(&g->hashcons, egi_key_hash(g->key + g->node[h.i].key, 2), h.i); break;
  case 6: g->node[h.i].twin = true; break;
  case 7: g->edge[0].to = h.i; break;
  case 8: g->edge[g->n_edges - 1].why.kind = 1, g->edge[0].why.kind = EG_WHY_CONGRUENCE; break;
  case 9: {
    egi_edge t = g->edge[0];
    g->edge[0] = g->edge[1], g->edge[1] = t;
    break;
  }
  case 10: g->node[h.i].proof_up = a.i, g->node[h.i].proof_edge = 0; break;
  case 11: g->original[g->node[f.i].key - f.i] = h.i; break;
  case 12: egi_queue_push(&g->stale, h.i); break;
  case 13: g->edge[1] = g->edge[0]; break;
  default: break;
  }
}

START_TEST(check_finds_damage) {
  eg_graph *g = graph(NULL);
  iso_error err;
  eg_node a = ADD(g, "a"), b = ADD(g, "b"), f = ADD(g, "f", a), fb = ADD(g, "f", b),
          h = ADD(g, "h", f);
  merge(g, a, b);
  rebuild(g);
  ck_assert(eg_equal(g, f, fb) && g->n_edges == 2);
  break_it(g, _i, a, f, h);
  ck_assert_msg(eg_check(g, &err) == ISO_INTERNAL, "damage %d was not found", _i);
  ck_assert_int_eq(err.code, ISO_INTERNAL);
  eg_free(g);
}
END_TEST

START_TEST(dot) {
  eg_graph *g = graph(NULL);
  eg_node a = ADD(g, "say \"a\"\n"), b = ADD(g, "b");
  ADD(g, "f", a, b);
  merge(g, a, b);
  rebuild(g);
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  ck_assert(eg_dot(g, f));
  fclose(f);
  ck_assert_str_eq(text,
                   "digraph egraph {\n  compound=true;\n  node [shape=box];\n"
                   "  subgraph cluster_0 {\n    label=\"0\";\n    n0 [label=\"say \\\"a\\\" \"];\n"
                   "    n1 [label=\"b\"];\n  }\n"
                   "  subgraph cluster_2 {\n    label=\"2\";\n    n2 [label=\"f\"];\n  }\n"
                   "  n2 -> n0 [lhead=cluster_0, label=\"0\"];\n  n2 -> n0 [lhead=cluster_0, "
                   "label=\"1\"];\n}\n");
  free(text);
  f = fopen("/dev/null", "r"); /* a stream that refuses to be written to */
  ck_assert_ptr_nonnull(f);
  ck_assert(!eg_dot(g, f));
  fclose(f);
  eg_free(g);
}
END_TEST

/* A large graph in one go: binary terms over random children, random unions, closed. */
START_TEST(large_graph) {
  enum { N = 200000 };
  eg_graph *g = graph(NULL);
  iso_rng rng = iso_rng_new(5, 0);
  eg_symbol f = sym(g, "f"), leaf[1000];
  eg_node n;
  char name[16];
  for (int i = 0; i < 1000; i++) {
    snprintf(name, sizeof name, "v%d", i);
    leaf[i] = sym(g, name);
    ck_assert(!eg_add(g, leaf[i], NULL, 0, &n, NULL));
  }
  while (eg_count_added(g) < N) {
    eg_class c[2];
    for (int k = 0; k < 2; k++) c[k].i = (uint32_t)iso_rng_below(&rng, eg_count_added(g));
    ck_assert(!eg_add(g, f, c, 2, &n, NULL));
  }
  for (int i = 0; i < N / 20; i++) {
    eg_node a = {(uint32_t)iso_rng_below(&rng, N)}, b = {(uint32_t)iso_rng_below(&rng, N)};
    merge(g, a, b);
  }
  rebuild(g);
  eg_free(g);
}
END_TEST

int main(void) {
  Suite *s = suite_create("egraph");
  TCase *t = tcase_create("engine");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, empty_graph);
  tcase_add_test(t, symbols);
  tcase_add_test(t, equal_nodes_are_found);
  tcase_add_test(t, survivor_has_more_parents);
  tcase_add_test(t, congruence_goes_up);
  tcase_add_test(t, cycles);
  tcase_add_test(t, lists_are_in_order);
  tcase_add_loop_test(t, getters_leave_no_trace, 0, 20);
  tcase_add_test(t, analysis_folds_constants);
  tcase_add_test(t, refused_repair_is_due_again);
  tcase_add_test(t, data_set_from_outside_goes_up);
  tcase_add_test(t, data_without_callbacks);
  tcase_add_loop_test(t, check_finds_damage, 0, N_BREAKS);
  tcase_add_test(t, dot);
  tcase_add_test(t, large_graph);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
