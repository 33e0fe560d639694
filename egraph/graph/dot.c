/* Graphviz: a cluster per e-class, its e-nodes in order of ids, an edge from an e-node to each
 * child's cluster. */
#include "egraph/graph/graph_int.h"

/* As much of a name as a picture needs, with characters that DOT strings cannot hold escaped or
 * replaced. */
static void put_label(FILE *f, const eg_graph *g, eg_node n) {
  const char *s = eg_symbol_name(g, eg_node_symbol(g, n));
  for (int i = 0; s[i] && i < 60; i++) {
    if (s[i] == '"' || s[i] == '\\') fputc('\\', f);
    fputc((unsigned char)s[i] < 32 ? ' ' : s[i], f);
  }
}

bool eg_dot(eg_graph *g, FILE *f) {
  const eg_node *list;
  fputs("digraph egraph {\n  compound=true;\n  node [shape=box];\n", f);
  for (uint32_t c = 0; c < g->n_nodes; c++) {
    if (g->up[c] != c) continue;
    const size_t n = eg_class_nodes(g, (eg_class){c}, &list);
    fprintf(f, "  subgraph cluster_%u {\n    label=\"%u\";\n", c, c);
    for (size_t i = 0; i < n; i++) {
      fprintf(f, "    n%u [label=\"", list[i].i);
      put_label(f, g, list[i]);
      fputs("\"];\n", f);
    }
    fputs("  }\n", f);
  }
  for (uint32_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < eg_node_arity(g, (eg_node){i}); k++) {
      const uint32_t c = eg_node_child(g, (eg_node){i}, k).i;
      /* A canonical class contains the e-node that has its id: the edge ends there, cut off at the
       * cluster. */
      fprintf(f, "  n%u -> n%u [lhead=cluster_%u, label=\"%zu\"];\n", i, c, c, k);
    }
  fputs("}\n", f);
  return fflush(f) == 0 && !ferror(f);
}
