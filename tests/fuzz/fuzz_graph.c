/* Any bytes as a graph.json: they parse and lower or give an error, and what loads keeps the
 * promises of capture.h. */
#include <stdint.h>
#include <stdlib.h>

#include "capture/capture_int.h"

/* Variables are earlier nodes; a whole node of several outputs stands below getitem only. */
static void check_term(const cap_graph *g, const rule_term *t, size_t at, bool projected) {
  if (t == NULL) abort();
  if (t->kind == RULE_VAR &&
      ((uint64_t)t->u.i >= at || (g->node[t->u.i].n_outputs != 1 && !projected)))
    abort();
  for (uint32_t i = 0; i < t->n; i++) check_term(g, t->child[i], at, projected && i == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  rule_schemas *schemas = NULL;
  cap_graph *g = NULL;
  iso_error err;
  if (rule_schemas_new(&schemas, &err) != ISO_OK) return 0;
  if (cap_parse((const char *)data, n, "fuzz", schemas, &g, &err) == ISO_OK) {
    for (size_t i = 0; i < g->n_nodes; i++) {
      const cap_node *x = &g->node[i];
      if ((x->kind == CAP_OP) != (x->call != NULL) || x->n_outputs == 0) abort();
      if (x->call != NULL) check_term(g, x->call, i, x->call->u.s[0] == 'g');
    }
    for (size_t i = 0; i < g->n_results; i++)
      if (g->result[i].node >= g->n_nodes) abort();
    cap_free(g);
  }
  rule_schemas_free(schemas);
  return 0;
}
