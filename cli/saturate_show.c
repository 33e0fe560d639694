/* What `isomer saturate` shows of an e-graph: smallest terms, and why they are equal to the start terms. */
#include <stdlib.h>
#include <string.h>

#include "cli/saturate.h"
#include "egraph/base/vec.h"

enum { MAX_STEPS = 200, MAX_DEPTH = 12 };

/* A term as it was added. Children are named by e-nodes, so this is the term that was meant. */
static void put_node(const eg_graph *g, eg_node n, int depth, FILE *f) {
  const size_t arity = eg_node_arity(g, n);
  if (arity == 0 || depth == MAX_DEPTH) {
    fputs(arity ? "..." : eg_symbol_name(g, eg_node_symbol(g, n)), f);
    return;
  }
  fprintf(f, "(%s", eg_symbol_name(g, eg_node_symbol(g, n)));
  for (size_t k = 0; k < arity; k++) {
    fputc(' ', f);
    put_node(g, (eg_node){eg_node_original(g, n, k).i}, depth + 1, f);
  }
  fputc(')', f);
}

static const char *reason(const eg_rules *r, eg_why why) {
  if (why.kind == EG_WHY_CONGRUENCE) return "congruence";
  if (why.kind >= EG_WHY_RULE && why.kind - EG_WHY_RULE < eg_rules_count(r)) return eg_rules_name(r, why.kind - EG_WHY_RULE);
  return why.data == 0 ? "given" : why.data == 1 ? "substitution" : "folded constant";
}

static void put_steps(const sat_shown *x, const eg_graph *g, const eg_step *step, size_t n) {
  fprintf(x->f, "    %zu steps, checked\n", n);
  for (size_t i = 0; i < n && i < MAX_STEPS; i++) {
    fputs("    ", x->f);
    put_node(g, step[i].from, 0, x->f);
    fputs(" = ", x->f);
    put_node(g, step[i].to, 0, x->f);
    fprintf(x->f, "  by %s\n", reason(x->rules, step[i].why));
  }
  if (n > MAX_STEPS) fprintf(x->f, "    ... %zu more\n", n - MAX_STEPS);
}

/* The chosen term in the graph of reasons: children first, each class once. */
static iso_code rebuild_term(const sat_shown *x, const eg_extract *e, eg_graph *g, eg_class c, eg_node *done, bool *has,
                             iso_error *err) {
  const uint32_t id = eg_sat_find(x->s, c).i;
  if (has[id]) return ISO_OK;
  const eg_row r = eg_extract_row(e, c);
  const eg_op op = eg_sat_row_op(x->s, r);
  const size_t n = eg_sat_op_arity(x->s, op);
  eg_class *child = malloc((n + 1) * sizeof *child);
  eg_symbol symbol;
  iso_code code = child ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory for a term");
  for (size_t k = 0; k < n && !code; k++) {
    const eg_class kid = eg_sat_row_child(x->s, r, k);
    code = rebuild_term(x, e, g, kid, done, has, err);
    if (!code) child[k].i = done[kid.i].i;
  }
  if (!code) code = eg_intern(g, eg_sat_op_name(x->s, op), strlen(eg_sat_op_name(x->s, op)), &symbol, err);
  if (!code) code = eg_add(g, symbol, child, n, &done[id], err);
  has[id] = true;
  free(child);
  return code;
}

static iso_code explain(const sat_shown *x, const eg_extract *e, eg_graph *g, const eg_node *node, eg_class root,
                        iso_error *err) {
  const size_t n_ids = eg_sat_count_ids(x->s);
  eg_node *done = calloc(n_ids + 1, sizeof *done);
  bool *has = calloc(n_ids + 1, sizeof *has), ok = false;
  eg_step *step = NULL;
  size_t n = 0;
  const char *why_not = NULL;
  iso_code code = done && has ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory for a proof");
  if (!code) code = rebuild_term(x, e, g, root, done, has, err);
  if (!code) code = eg_rebuild(g, err);
  const eg_node to = code ? (eg_node){0} : done[eg_sat_find(x->s, root).i];
  if (!code) code = eg_explain(g, node[root.i], to, &step, &n, err);
  if (!code) code = eg_proof_check(g, step, n, node[root.i], to, NULL, NULL, &ok, &why_not, err);
  if (!code && !ok) code = iso_fail(err, ISO_INTERNAL, "a proof does not hold: %s", why_not);
  if (!code) put_steps(x, g, step, n);
  free(step);
  free(done);
  free(has);
  return code;
}

iso_code sat_show(const sat_shown *x, iso_error *err) {
  if (!x->extract) return ISO_OK;
  eg_extract *e = NULL;
  eg_graph *g = NULL;
  eg_node *node = NULL;
  iso_code code = eg_extract_new(x->s, NULL, &e, err);
  if (!code && x->explain) code = eg_sat_replay(x->s, x->rules, &g, &node, err);
  for (size_t i = 0; i < x->n_roots && !code; i++) {
    char *text = NULL;
    code = eg_extract_text(e, x->root[i], &text, err);
    if (!code) fprintf(x->f, "  %s\n", text);
    free(text);
    if (!code && x->explain) code = explain(x, e, g, node, x->root[i], err);
  }
  eg_extract_free(e);
  eg_free(g);
  free(node);
  return code;
}
