/* The part of two captures that is compared: the nodes that the outputs depend on, in the
 * comparison's own spelling. A graph that is no function of its inputs, or that reads data that a
 * capture does not hold, is refused here, so that no later stage meets one. */
#include "synth/loop.h"
#include "rules/operators.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- what the outputs depend on ---- */

static void mark_live(const synth_graph *g, const rule_term *t, bool *live) {
  if (t->kind == RULE_VAR) live[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark_live(g, t->child[i], live);
}

/* A graph of live nodes only: a node that no output depends on is not part of the function (and may
 * be unspecified memory). */
static iso_code live_nodes(const synth_graph *g, bool **out, iso_error *err) {
  bool *live = calloc(g->n_nodes + 1, 1);
  if (!live) return nomem(err);
  for (size_t i = 0; i < g->n_outputs; i++) live[g->output[i].node] = true;
  for (size_t i = g->n_nodes; i-- > 0;)
    if (live[i] && g->node[i].kind == SYNTH_OP) mark_live(g, g->node[i].call, live);
  *out = live;
  return ISO_OK;
}

/* Operators that compute no function of their arguments are refused. */
static iso_code refuse(state *s, const synth_graph *g, const synth_node *n, iso_error *err) {
  if (n->kind != SYNTH_OP || rule_is_getitem(n->call->u.s)) return ISO_OK;
  if (rule_writes(s->schemas, n->call, n->n_outputs))
    return iso_fail(err, ISO_UNSUPPORTED,
                    rule_schemas_find(s->schemas, n->op) || !rule_is_aten(n->op)
                        ? "%s: node \"%s\": %s writes to an argument; captures hold functions only"
                        : "%s: node \"%s\": PyTorch has no function %s: there is no such overload, "
                          "or it writes to an argument",
                    g->path, n->id, n->op);
  if (rule_draws(s->schemas, n->call))
    return iso_fail(
        err, ISO_UNSUPPORTED,
        "%s: node \"%s\": %s draws random numbers: its output is no function of its inputs",
        g->path, n->id, n->op);
  return ISO_OK;
}

/* Strides are not captured: a call that reads by strides needs a row-major operand. */
static iso_code refuse_strides(const synth_graph *g, const bool *live, iso_error *err) {
  bool *dense = NULL;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const synth_node *n = &g->node[i];
    if (n->kind != SYNTH_OP || !live[i] || !rule_reads_memory(n->call)) continue;
    if (!dense) {
      if (!(dense = calloc(g->n_nodes + 1, 1))) return nomem(err);
      for (size_t k = 0; k < g->n_nodes; k++)
        dense[k] = !g->node[k].reordered &&
                   (g->node[k].kind != SYNTH_OP || rule_gives_dense(g->node[k].call, dense));
    }
    const rule_term *self = n->call->child[0];
    if (self->kind != RULE_VAR || !dense[self->u.i])
      c = iso_fail(err, ISO_UNSUPPORTED,
                   "%s: node \"%s\": %s reads memory whose order is not in the capture; put "
                   "contiguous before it",
                   g->path, n->id, n->op);
  }
  free(dense);
  return c;
}

/* No output reads the result of a dead node, but one may read the memory that it writes. */
static iso_code refuse_writers(state *s, const synth_graph *g, const bool *live, iso_error *err) {
  const rule_term **call = calloc(g->n_nodes + 1, sizeof *call);
  uint32_t *output = calloc(g->n_outputs + 1, sizeof *output);
  iso_code c = call && output ? ISO_OK : nomem(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const synth_node *n = &g->node[i];
    if (n->kind != SYNTH_OP) continue;
    call[i] = n->call;
    if (live[i] || rule_writes(s->schemas, n->call, n->n_outputs)) c = refuse(s, g, n, err);
  }
  for (size_t i = 0; i < g->n_outputs && !c; i++) output[i] = g->output[i].node;
  const size_t at = c ? SIZE_MAX : rule_shared_write(call, g->n_nodes, output, g->n_outputs);
  if (at != SIZE_MAX)
    c = iso_fail(err, ISO_UNSUPPORTED,
                 "%s: node \"%s\": %s writes its running statistics, which something else reads; "
                 "captures hold functions only",
                 g->path, g->node[at].id, g->node[at].op);
  free(call);
  free(output);
  return c;
}

/* Our own copy of the nodes: literals may be read as something else. */
static iso_code own_nodes(state *s, const synth_graph *g, synth_graph *copy, iso_error *err) {
  synth_node *node = iso_arena_alloc(&s->arena, (g->n_nodes + 1) * sizeof *node);
  if (!node) return nomem(err);
  memcpy(node, g->node, g->n_nodes * sizeof *node);
  *copy = *g;
  copy->node = node;
  return ISO_OK;
}

iso_code st_look_over(state *s, synth_graph own[2], bool *live[2], iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    if ((c = own_nodes(s, s->graph[side], &own[side], err))) break;
    s->constants.as_given[side] = s->graph[side]->node;
    const synth_graph *g = s->graph[side] = &own[side];
    c = live_nodes(g, &live[side], err);
    if (!c) c = refuse_writers(s, g, live[side], err);
    if (!c) c = refuse_strides(g, live[side], err);
    if (!c && rule_schemas_starved(s->schemas)) c = nomem(err); /* something was not looked at */
  }
  return c;
}
