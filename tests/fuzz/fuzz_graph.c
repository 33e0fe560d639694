/* Any bytes as a graph.json: they parse and lower or give an error, and a loaded graph keeps the
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

static void check(const cap_graph *g) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    const cap_node *x = &g->node[i];
    if ((x->kind == CAP_OP) != (x->call != NULL) || x->n_outputs == 0) abort();
    if (x->call != NULL) check_term(g, x->call, i, x->call->u.s[0] == 'g');
    for (uint32_t d = 0; d < x->output[0].shape.rank; d++)
      if (x->output[0].shape.dim[d] < 0) abort();
  }
  for (size_t i = 0; i < g->n_results; i++)
    if (g->result[i].node >= g->n_nodes) abort();
}

/* The same at other sizes: the least, and a little more than the captured. Sizes that the symbols
 * and guards admit may still be refused for the shapes of nodes; sizes that they exclude may never
 * be accepted. */
static void at_sizes(const cap_graph *g, cap_text text, rule_schemas *schemas) {
  for (int k = 0; k < 2 && g->n_symbols > 0; k++) {
    cap_size size[64];
    int64_t value[64];
    const char *broken = NULL;
    cap_graph *other = NULL;
    for (size_t i = 0; i < g->n_symbols; i++) {
      const cap_symbol *s = &g->symbol[i];
      value[i] = k == 0 ? s->min : s->value < INT64_MAX ? s->value + 1 : s->value;
      size[i] = (cap_size){s->name, value[i]};
    }
    const cap_options o = {.size = size, .n_sizes = g->n_symbols};
    iso_error err;
    if (cap_admits(g, value, &broken, &err) != ISO_OK) continue;
    if (cap_parse(text, "fuzz", &o, schemas, &other, &err) != ISO_OK) continue;
    if (broken != NULL) abort();
    check(other);
    cap_free(other);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  rule_schemas *schemas = NULL;
  cap_graph *g = NULL;
  iso_error err;
  if (rule_schemas_new(&schemas, &err) != ISO_OK) return 0;
  const cap_text text = {(const char *)data, n};
  if (cap_parse(text, "fuzz", NULL, schemas, &g, &err) == ISO_OK) {
    check(g);
    at_sizes(g, text, schemas);
    cap_free(g);
  }
  rule_schemas_free(schemas);
  return 0;
}
