/* Extraction on the command line: of start terms, and of e-graphs that other programs wrote
 * (`--import`, the extraction gym's JSON). */
#include <stdlib.h>
#include <string.h>

#include "cli/saturate/saturate.h"
#include "egraph/base/vec.h"

/* ---- what is chosen, a line for each class, children first ---- */

typedef struct listing {
  const eg_sat *s;
  const eg_extract *x;
  const double *cost; /* per row; NULL: 1 each */
  uint32_t *stack;    /* classes to write; twice and one once their children are */
  size_t n, cap;
  uint32_t *number; /* per class, from 1 on; 0: not written */
  uint32_t n_written;
  FILE *text, *json;
} listing;

static eg_row chosen(const listing *l, uint32_t c) { return eg_extract_row(l->x, (eg_class){c}); }
static size_t arity_of(const listing *l, eg_row r) {
  return eg_sat_op_arity(l->s, eg_sat_row_op(l->s, r));
}

static void put_string(FILE *f, const char *s) {
  fputc('"', f);
  for (; *s; s++) {
    const unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
    else if (c < 32) fprintf(f, "\\u%04x", c);
    else fputc(c, f);
  }
  fputc('"', f);
}

static void put_line(listing *l, uint32_t c) {
  const eg_row r = chosen(l, c);
  const char *name = eg_sat_op_name(l->s, eg_sat_row_op(l->s, r));
  const size_t n = arity_of(l, r);
  l->number[c] = ++l->n_written;
  if (l->text) fprintf(l->text, "  $%u = %s%s", l->n_written, n ? "(" : "", name);
  if (l->json) {
    fprintf(l->json, "%s\n    {\"id\": %u, \"op\": ", l->n_written > 1 ? "," : "", l->n_written);
    put_string(l->json, name);
    fputs(", \"children\": [", l->json);
  }
  for (size_t k = 0; k < n; k++) {
    const uint32_t at = l->number[eg_sat_row_child(l->s, r, k).i];
    if (l->text) fprintf(l->text, " $%u", at);
    if (l->json) fprintf(l->json, "%s%u", k ? ", " : "", at);
  }
  if (l->text) fputs(n ? ")\n" : "\n", l->text);
  if (l->json) fprintf(l->json, "], \"cost\": %.17g}", l->cost ? l->cost[r.i] : 1);
}

/* Returns: false without memory. */
static bool put_class(listing *l, uint32_t root) {
  if (!iso_grow(l->stack, l->cap, 1)) return false;
  l->stack[l->n++] = 2 * root;
  while (l->n > 0) {
    const uint32_t entry = l->stack[--l->n], c = entry / 2;
    if (l->number[c]) continue;
    if (entry % 2) {
      put_line(l, c);
      continue;
    }
    const eg_row r = chosen(l, c);
    const size_t n = arity_of(l, r);
    if (!iso_grow(l->stack, l->cap, l->n + n + 1)) return false;
    l->stack[l->n++] = entry + 1;
    for (size_t k = n; k-- > 0;) l->stack[l->n++] = 2 * eg_sat_row_child(l->s, r, k).i;
  }
  return true;
}

/* ---- choosing ---- */

static double node_cost(void *ctx, const eg_sat *s, eg_row row) {
  const double *cost = ctx;
  (void)s;
  return cost ? cost[row.i] : 1;
}
static double tree_cost(void *ctx, const eg_sat *s, eg_row row, const double *child, size_t n) {
  double sum = node_cost(ctx, s, row);
  for (size_t k = 0; k < n; k++) sum += child[k];
  return sum;
}

static void put_cost(const cli_sat_extraction *a, const eg_dag *dag) {
  fprintf(a->text, "  dag cost %.12g, ", dag->cost);
  if (dag->optimal) fputs("optimal\n", a->text);
  else
    fprintf(a->text, "not shown to be optimal in %zu steps: none is below %.12g\n", a->work,
            dag->bound);
  if (a->json)
    fprintf(a->json, "\"cost\": %.17g, \"bound\": %.17g, \"optimal\": %s,\n   \"terms\": [",
            dag->cost, dag->bound, dag->optimal ? "true" : "false");
}

static iso_code put_dag(const cli_sat_extraction *a, eg_extract *x, iso_error *err) {
  eg_dag dag;
  listing l = {.s = a->s, .x = x, .cost = a->cost, .text = a->text, .json = a->json};
  iso_code code = eg_extract_dag_all(x, a->root, a->n_roots, a->work, &dag, err);
  if (code) return code;
  put_cost(a, &dag);
  bool ok = (l.number = calloc(eg_sat_count_ids(a->s) + 1, sizeof *l.number));
  for (size_t i = 0; ok && i < a->n_roots; i++) ok = put_class(&l, eg_sat_find(a->s, a->root[i]).i);
  if (a->json) fputs("\n  ], \"roots\": [", a->json);
  for (size_t i = 0; ok && i < a->n_roots; i++) {
    const uint32_t at = l.number[eg_sat_find(a->s, a->root[i]).i];
    fprintf(a->text, "  root $%u\n", at);
    if (a->json) fprintf(a->json, "%s%u", i ? ", " : "", at);
  }
  if (a->json) fputs("]", a->json);
  free(l.number);
  free(l.stack);
  return ok ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory for an extraction");
}

static iso_code put_trees(const cli_sat_extraction *a, const eg_extract *x, iso_error *err) {
  iso_code code = ISO_OK;
  if (a->json) fputs("\"trees\": [", a->json);
  for (size_t i = 0; !code && i < a->n_roots; i++) {
    char *text = NULL;
    code = eg_extract_text(x, a->root[i], &text, err);
    if (!code) fprintf(a->text, "  tree cost %.12g: %s\n", eg_extract_cost(x, a->root[i]), text);
    if (!code && a->json)
      fprintf(a->json, "%s%.17g", i ? ", " : "", eg_extract_cost(x, a->root[i]));
    free(text);
  }
  if (a->json) fputs("]", a->json);
  return code;
}

iso_code cli_sat_extract(const cli_sat_extraction *a, iso_error *err) {
  const eg_cost cost = {.ctx = (void *)(uintptr_t)a->cost, .tree = tree_cost, .node = node_cost};
  eg_extract *x = NULL;
  iso_code code = eg_extract_new(a->s, &cost, &x, err);
  if (!code) code = a->dag ? put_dag(a, x, err) : put_trees(a, x, err);
  eg_extract_free(x);
  return code;
}

iso_code cli_sat_import(const char *path, const char *text, size_t n, cli_sat_extraction *a,
                        iso_error *err) {
  eg_sat *s = NULL;
  eg_class *root = NULL;
  double *cost = NULL;
  iso_code code = eg_sat_new(NULL, &s, err);
  if (!code) code = eg_sat_read_json(s, text, n, &root, &a->n_roots, &cost, err);
  if (!code) {
    const size_t nodes = eg_sat_count_nodes(s), classes = eg_sat_count_classes(s);
    fprintf(a->text, "%s: %zu e-nodes, %zu e-classes, %zu root%s\n", path, nodes, classes,
            a->n_roots, a->n_roots == 1 ? "" : "s");
    if (a->json) fprintf(a->json, "{\"nodes\": %zu, \"classes\": %zu, ", nodes, classes);
    a->s = s;
    a->root = root;
    a->cost = cost;
    code = cli_sat_extract(a, err);
    if (a->json) fputs("}\n", a->json);
  }
  if (code) iso_prefix(err, "%s: ", path);
  free(root);
  free(cost);
  eg_sat_free(s);
  return code;
}
