/* Loads the calls of both sides, and makes each side one graph. */
#include "capture/calls/calls.h"

#include <stdlib.h>
#include <string.h>

#include "capture/calls/calls_int.h"

static iso_code no_memory(const chain *x) { return cap_no_memory(x->err); }

/* Room for lines about outputs and inputs, and places for nodes and outputs. */
static iso_code open(chain *x) {
  size_t lines = 1;
  for (size_t k = 0; k < x->n; k++) {
    const cap_graph *g = x->g[k];
    lines += g->n_results + g->n_nodes;
    x->to[k] = malloc((g->n_nodes + 1) * sizeof *x->to[k]);
    x->used[k] = calloc(g->n_results + 1, 1);
    if (!x->to[k] || !x->used[k]) return no_memory(x);
    for (size_t i = 0; i < g->n_nodes; i++) x->to[k][i] = CALLS_NOWHERE;
    if (g->n_sets != x->g[0]->n_sets)
      return iso_fail(x->err, ISO_USAGE, "%s has %zu sets of inputs, and %s %zu", g->path,
                      g->n_sets, x->g[0]->path, x->g[0]->n_sets);
  }
  x->said = iso_arena_alloc(x->a, lines * sizeof *x->said);
  return x->said ? ISO_OK : no_memory(x);
}

static void close(chain *x) {
  for (size_t k = 0; k < x->n; k++) {
    free(x->to[k]);
    free(x->used[k]);
  }
  for (size_t i = 0; i < x->n_made; i++) rule_tensor_unref(x->made[i]);
  free(x->made);
  free(x->node);
  cap_names_fini(&x->ids);
  cap_names_fini(&x->inputs);
  cap_names_fini(&x->weights);
}

/* What the captures say beside their nodes: of all calls. */
static iso_code gather(chain *x) {
  cap_graph *g = x->g[0];
  size_t n[4] = {0};
  for (size_t k = 0; k < x->n; k++) {
    n[0] += x->g[k]->n_written, n[1] += x->g[k]->n_no_tensors, n[2] += x->g[k]->n_reads;
    n[3] += k > 0;
  }
  const char **written = iso_arena_alloc(x->a, (n[0] + 1) * sizeof *written),
             **read = iso_arena_alloc(x->a, (n[2] + 1) * sizeof *read),
             **then = iso_arena_alloc(x->a, (n[3] + 1) * sizeof *then);
  cap_no_tensor *no_tensor = iso_arena_alloc(x->a, (n[1] + 1) * sizeof *no_tensor);
  if (!written || !read || !then || !no_tensor) return no_memory(x);
  memset(n, 0, sizeof n);
  for (size_t k = 0; k < x->n; k++) {
    const cap_graph *from = x->g[k];
    for (size_t i = 0; i < from->n_written; i++) written[n[0]++] = from->written[i];
    for (size_t i = 0; i < from->n_reads; i++) read[n[2]++] = from->read[i];
    for (size_t i = 0; i < from->n_no_tensors; i++) {
      no_tensor[n[1]] = from->no_tensor[i];
      if (!(no_tensor[n[1]++].output = calls_later(x, k, from->no_tensor[i].output)))
        return no_memory(x);
    }
    if (k) then[n[3]++] = from->path;
  }
  g->written = written, g->n_written = n[0];
  g->no_tensor = no_tensor, g->n_no_tensors = n[1];
  g->read = read, g->n_reads = n[2];
  g->then = then, g->n_then = n[3];
  g->said = x->said, g->n_said = x->n_said;
  g->n_symbols = g->n_guards = g->n_numbers = 0;
  return ISO_OK;
}

/* The first call's graph becomes that of all, and holds the others. */
static iso_code compose(chain *x) {
  cap_graph *g = x->g[0];
  impl *m = g->impl;
  iso_code c = open(x);
  if (!c) c = calls_add_nodes(x);
  if (!c) c = calls_add_results(x);
  if (!c) c = gather(x);
  cap_graph **after = c ? NULL : calloc(x->n, sizeof *after);
  if (!c && !after) c = no_memory(x);
  if (!c) c = cap_replace_nodes(g, x->node, x->n_nodes, x->err);
  if (!c) c = cap_set_results(g, x->result, x->n_results, x->err);
  if (c) return free(after), c;
  cap_tensors_close(m->trace);
  m->trace = NULL;
  for (size_t k = 1; k < x->n; k++) after[k - 1] = x->g[k], x->g[k] = NULL;
  m->after = after;
  return ISO_OK;
}

static iso_code load_all(const calls_side *s, const cap_options *o, rule_schemas *schemas,
                         cap_graph **g, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t k = 0; k <= s->n && !c; k++)
    c = cap_load_with(k ? s->then[k - 1] : s->first, o, schemas, &g[k], err);
  return c;
}

bool calls_add(calls_side side[2], const char *left, const char *right) {
  const char *const path[2] = {left, right};
  for (int s = 0; s < 2; s++) {
    if (strcmp(path[s], "-") == 0) continue;
    if (side[s].n == CALLS_MOST) return false;
    side[s].then[side[s].n++] = path[s];
  }
  return true;
}

iso_code calls_load(const calls_side side[2], const cap_options *o, rule_schemas *schemas,
                    cap_graph *out[2], iso_error *err) {
  chain x[2] = {0};
  iso_code c = ISO_OK;
  if (side[0].n && side[1].n && side[0].n != side[1].n)
    return iso_fail(err, ISO_USAGE, "%zu calls on the left and %zu on the right: one, or as many",
                    side[0].n + 1, side[1].n + 1);
  for (int s = 0; s < 2 && !c; s++) {
    cap_options own = *o;
    own.keep_role = o->keep_role && s == 1 && !side[s].n; /* the ranks of the right side */
    c = load_all(&side[s], &own, schemas, x[s].g, err);
  }
  for (int s = 0; s < 2 && !c; s++) {
    x[s].n = side[s].n + 1;
    x[s].other_last = x[!s].g[side[!s].n];
    x[s].other = side[!s].n == 0 ? x[!s].g[0] : NULL;
    x[s].a = &x[s].g[0]->arena;
    x[s].err = err;
  }
  for (int s = 0; s < 2; s++) {
    if (!c && side[s].n) c = compose(&x[s]);
    close(&x[s]);
  }
  for (int s = 0; s < 2; s++) {
    for (size_t k = 0; c && k < CALLS_ALL; k++) cap_free(x[s].g[k]);
    out[s] = c ? NULL : x[s].g[0];
  }
  return c;
}
