/* Output of `isomer saturate` about an e-graph: smallest terms, and why they are equal to the start
 * terms. */
#include <stdlib.h>
#include <string.h>

#include "cli/saturate/saturate.h"

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
  if (why.kind >= EG_WHY_RULE && why.kind - EG_WHY_RULE < eg_rules_count(r))
    return eg_rules_name(r, why.kind - EG_WHY_RULE);
  return why.data == 0 ? "given" : why.data == 1 ? "substitution" : "folded constant";
}

static void put_steps(const cli_sat_shown *x, const eg_graph *g, const eg_step *step, size_t n) {
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

/* A step that is no instance of a rule is an equation of the input, or was made by an applier or an
 * analysis. */
static bool other(void *ctx, const eg_step *step) {
  (void)ctx, (void)step;
  return true;
}

/* Why the term that was added is equal to the one in `text`. */
static iso_code explain(const cli_sat_shown *x, eg_graph *g, eg_node from, const char *text,
                        iso_error *err) {
  eg_rule_check check = {g, x->rules, other, NULL};
  eg_step *step = NULL;
  eg_node to;
  size_t n = 0;
  bool ok = false;
  const char *why_not = NULL;
  iso_code code = eg_add_term(g, text, strlen(text), &to, err);
  if (!code) code = eg_rebuild(g, err);
  if (!code) code = eg_explain(g, from, to, &step, &n, err);
  if (!code)
    code = eg_proof_check(g, step, n, from, to, eg_rule_check_step, &check, &ok, &why_not, err);
  if (!code && !ok) code = iso_fail(err, ISO_INTERNAL, "a proof does not hold: %s", why_not);
  if (!code) put_steps(x, g, step, n);
  free(step);
  return code;
}

iso_code cli_sat_show(const cli_sat_shown *x, iso_error *err) {
  if (!x->extract) return ISO_OK;
  if (x->dag && !x->explain)
    return cli_sat_extract(&(cli_sat_extraction){.s = x->s,
                                                 .root = x->root,
                                                 .n_roots = x->n_roots,
                                                 .dag = true,
                                                 .work = x->work,
                                                 .text = x->f},
                           err);
  eg_extract *e = NULL;
  eg_graph *g = NULL;
  eg_node *node = NULL;
  iso_code code = eg_extract_new(x->s, NULL, &e, err);
  if (!code && x->explain) code = eg_sat_replay(x->s, x->rules, &g, &node, err);
  for (size_t i = 0; i < x->n_roots && !code; i++) {
    char *text = NULL;
    code = eg_extract_text(e, x->root[i], &text, err);
    if (!code) fprintf(x->f, "  %s\n", text);
    if (!code && x->explain) code = explain(x, g, node[x->root[i].i], text, err);
    free(text);
  }
  eg_extract_free(e);
  eg_free(g);
  free(node);
  return code;
}
